// SPDX-License-Identifier: Apache-2.0
// Network policies by the JavaScript client, with the names of tests/helpers/networld.py.
// usage: policy.mjs HOST:PORT IMAGE, with node_modules in the working directory
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const { Sandbox, ConnectionConfig } = await import(pathToFileURL(require.resolve('@alibaba-group/opensandbox')).href);

const egress = [{ action: 'allow', target: 'allowed.test' }, { action: 'deny', target: 'cdn.test' }];
const sandbox = await Sandbox.create({
  image: process.argv[3], entrypoint: ['sleep', '1000'], timeoutSeconds: 600, networkPolicy: { defaultAction: 'deny', egress },
  connectionConfig: new ConnectionConfig({ domain: process.argv[2] }),
});
const reached = async (name) => {
  const { logs } = await sandbox.commands.run(`curl -s -o /dev/null -m 20 -w '%{http_code}' http://${name}`);
  return logs.stdout.map((m) => m.text).join('');
};
const rules = async () => (await sandbox.getEgressPolicy()).egress;

assert.equal((await sandbox.getEgressPolicy()).defaultAction, 'deny');
assert.deepEqual(await rules(), egress);
assert.equal(await reached('allowed.test'), '200');
assert.equal(await reached('other.test'), '000');
await sandbox.patchEgressRules([{ action: 'allow', target: 'other.test' }, { action: 'deny', target: 'allowed.test' }]);
assert.deepEqual(await rules(), [{ action: 'allow', target: 'other.test' }, { action: 'deny', target: 'allowed.test' }, egress[1]]);
assert.equal(await reached('other.test'), '200');
assert.equal(await reached('allowed.test'), '000');
await sandbox.deleteEgressRules(['other.test', 'nobody.test']);
assert.equal(await reached('other.test'), '000');
assert.deepEqual(await rules(), [{ action: 'deny', target: 'allowed.test' }, egress[1]]);
await sandbox.kill();
await sandbox.close?.();
