// SPDX-License-Identifier: Apache-2.0
// The JavaScript client against a server. usage: js.mjs HOST:PORT IMAGE, with node_modules in the working directory
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const { Sandbox, ConnectionConfig } = await import(pathToFileURL(require.resolve('@alibaba-group/opensandbox')).href);

const connectionConfig = new ConnectionConfig({ domain: process.argv[2] });
const sandbox = await Sandbox.create({
  image: process.argv[3], entrypoint: ['sleep', '1000'], timeoutSeconds: 600, metadata: { lang: 'js' }, connectionConfig,
});
const execution = await sandbox.commands.run('echo hello; exit 4');
assert.equal(execution.exitCode, 4);
assert.deepEqual(execution.logs.stdout.map((m) => m.text), ['hello']);
await sandbox.files.writeFiles([{ path: '/tmp/js.txt', data: 'from js', mode: 644 }]);
assert.equal(await sandbox.files.readFile('/tmp/js.txt'), 'from js');
assert.equal((await sandbox.getInfo()).status.state, 'Running');
if (!process.argv.includes('--no-pause')) {
  await sandbox.pause();
  assert.equal((await sandbox.getInfo()).status.state, 'Paused');
  await sandbox.resume();
}
await sandbox.kill();
await sandbox.close?.();
