// SPDX-License-Identifier: Apache-2.0
// JavaScript and TypeScript, by node 18 and later. The channel is descriptor 3 (code_frame.h).
//
// V8 evaluates as for the console of its debugger: declarations last and may be repeated, await needs no function.
// The code runs in the realm of the driver; what it may replace (console, JSON, process.stdout) is kept here from before.
//
// An interrupt ends the code wherever it is, in stream_write() and sync() too: so nothing but "S" is sent from below the
// code, and an acknowledgement that nobody waits for is passed over. PID 1 reads the pipes before it looks behind an "S":
// only text that follows has to wait for the answer.
(function (require, load, language) {
'use strict';
const { Promise, Buffer, Error, SyntaxError, String, Number, Boolean, Object } = globalThis;
const fs = require('fs');
const vm = require('vm');
const util = require('util');
const path = require('path');
const modules = require('module');
const inspector = require('inspector');
const { Socket } = require('net');
const { Writable } = require('stream');
const { writeSync, readSync } = fs;
const { inspect } = util;
const { stringify } = JSON;
const { keys, defineProperty, getOwnPropertyDescriptor, prototype: any } = Object;
const { isArray } = Array;
const { wait } = Atomics;
const { isNativeError, isUint8Array: is_bytes } = util.types;
const bytes = Buffer.from;
const concat = Buffer.concat;
const later = setImmediate;
const next = process.nextTick.bind(process);
const leave = process.exit.bind(process);
const Script = vm.Script;

const RESULT_MAX = 2 << 20;
const TEXT_MAX = 64 << 10;
const TRACE_MAX = 256 << 10;
const SYNC = bytes('S 0\n');
const never = new Int32Array(new SharedArrayBuffer(4));
const answer = Buffer.alloc(64);

let count = 0;
let running = false;
let last_fd = 0;
let stop = null;
let stray = [];
let kept;

function write_all(fd, data) {
	while (data.length > 0) {
		try {
			data = data.subarray(writeSync(fd, data));
		} catch (e) {
			if (e.code !== 'EAGAIN') {
				return;
			}
			wait(never, 0, 0, 1);
		}
	}
}

function send(kind, text) {
	const payload = bytes(text, 'utf8');
	write_all(3, concat([bytes(kind + ' ' + payload.length + '\n'), payload]));
}

function sync() {
	write_all(3, SYNC);
	for (let got = ''; !got.includes('A 0\n');) {
		try {
			const n = readSync(3, answer, 0, answer.length, null);
			if (n === 0) {
				leave(0);
			}
			got += answer.latin1Slice(0, n);
		} catch (e) {
			if (e.code !== 'EAGAIN') {
				return;
			}
			wait(never, 0, 0, 0.05);
		}
	}
}

function stream_write(fd, chunk) {
	if (running && last_fd !== fd) {
		if (last_fd !== 0) {
			sync();
		}
		last_fd = fd;
	}
	write_all(fd, chunk);
}

function stream_of(fd) {
	const stream = new Writable({
		decodeStrings: true,
		write(chunk, _encoding, done) {
			stream_write(fd, chunk);
			done();
		},
	});
	// An interrupt in the middle of a write would leave its state behind, and nothing would ever be written again.
	stream.write = (chunk, encoding, done) => {
		const callback = typeof encoding === 'function' ? encoding : done;
		if (typeof chunk !== 'string' && !is_bytes(chunk)) {
			throw new TypeError('a stream takes text or bytes');
		}
		stream_write(fd, typeof chunk === 'string' ? bytes(chunk, typeof encoding === 'string' ? encoding : 'utf8') : chunk);
		if (typeof callback === 'function') {
			next(callback);
		}
		return true;
	};
	stream.fd = fd;
	stream._type = 'pipe';
	stream._isStdio = true;
	return stream;
}

function cut(text, most) {
	return text.length <= most ? text : text.slice(0, most) + '\n... (' + (text.length - most) + ' characters more)';
}

function shown(value) {
	try {
		return inspect(value);
	} catch (e) {
		return '(a value that cannot be shown: its inspection failed)';
	}
}

// Objects and arrays of the code may have got a toJSON() from their prototypes.
function encoded(value) {
	if (typeof value !== 'object') {
		return stringify(value);
	}
	let text = '';
	for (const key of keys(value)) {
		text += (text ? ',' : '') + (isArray(value) ? '' : stringify(key) + ':') + encoded(value[key]);
	}
	return isArray(value) ? '[' + text + ']' : '{' + text + '}';
}

function tell(kind, value) {
	write_all(3, SYNC);
	send(kind, encoded(value));
}

// Down to what is ours.
function trace_of(error) {
	const lines = [];
	for (const line of String(error.stack).split('\n')) {
		if (line.includes('Session.post (node:inspector') || line.includes('(node:internal/modules/typescript') || line.includes('<osbx>')) {
			break;
		}
		lines.push(line);
	}
	return cut(lines.join('\n'), TRACE_MAX).split('\n');
}

function error_of(error, place) {
	if (!isNativeError(error)) {
		const text = cut(shown(error), TEXT_MAX);
		return { ename: 'Error', evalue: text, traceback: ['Uncaught ' + text] };
	}
	let found = { ename: 'Error', evalue: '(an error that cannot be shown)', traceback: [] };
	try {
		found = { ename: String(error.name), evalue: cut(String(error.message), TEXT_MAX), traceback: [] };
		found.traceback = place ? place.concat(found.ename + ': ' + found.evalue) : trace_of(error);
		if (error.cause !== undefined && !place) {
			found.traceback.push('[cause]: ' + cut(shown(error.cause), TEXT_MAX));
		}
	} catch (e) {
		found.traceback = [];
	}
	return found;
}

// The evaluation is asked for over the debugger's protocol, in this thread.
const session = new inspector.Session();
session.connect();

// What is asked becomes JSON first, and a toJSON() that all objects have would be asked for the whole message. It steps
// aside for that one look.
function post(method, params, done) {
	const own = getOwnPropertyDescriptor(any, 'toJSON');
	params.toJSON = undefined;
	if (own && own.configurable) {
		defineProperty(any, 'toJSON', { configurable: true, get() { defineProperty(any, 'toJSON', own); } });
	}
	session.post(method, params, done);
}

function ask(method, params) {
	let found = null;
	post(method, params, (error, result) => { found = result; });
	return found;
}

let turn = null;
const ours = { step: () => turn(), keep: (value) => { kept = value; } };
Object.defineProperty(globalThis, Symbol.for('osbx'), { value: Object.freeze(ours) });
const keeper = ask('Runtime.evaluate', { expression: "globalThis[Symbol.for('osbx')].keep" }).result.objectId;
// Below a script that runs so, SIGINT ends what does not wait.
const breakable = new Script("globalThis[Symbol.for('osbx')].step()", { filename: '<osbx>' });

// The value itself of what the protocol describes.
function value_of(remote) {
	const argument = remote.objectId ? { objectId: remote.objectId }
		: remote.unserializableValue ? { unserializableValue: remote.unserializableValue } : { value: remote.value };
	const list = [argument];
	argument.toJSON = list.toJSON = kept = undefined;
	ask('Runtime.callFunctionOn', { functionDeclaration: 'function(v){this(v)}', objectId: keeper, arguments: list });
	return kept;
}

function evaluate(code, name) {
	return new Promise((resolve, reject) => {
		stop = reject;
		const options = {
			expression: code + '\n//# sourceURL=' + name, replMode: true, awaitPromise: true, objectGroup: 'run',
		};
		turn = () => post('Runtime.evaluate', options, (error, found) => error ? reject(error) : resolve(found));
		breakable.runInThisContext({ breakOnSigint: true });
	});
}

// What V8 takes in modules alone, or only where node can follow it.
const STATIC = /^([ \t]*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|\{([^}]*)\}\s*)?(?:from\s*)?(['"])([^'"\n]+)\5[ \t]*;?/gm;
const DYNAMIC = /("(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'|`(?:\\[^]|[^`\\])*`|\/\/.*|\/\*[^]*?\*\/)|(?<![.\w$])import(?=\s*\()/g;

function static_import(whole, indent, main, all, names, quote, from) {
	const call = 'await __import(' + stringify(from) + ')';
	const parts = names === undefined ? [] : names.split(',').map((n) => n.trim()).filter((n) => n && !n.startsWith('type '))
		.map((n) => n.replace(/\s+as\s+/, ': '));
	let text = '';
	if (main) {
		parts.unshift('default: ' + main);
	}
	if (all) {
		text += 'const ' + all + ' = ' + call + ';';
	}
	if (parts.length > 0) {
		text += 'const {' + parts.join(', ') + '} = ' + call + ';';
	}
	return indent + (text || call + ';') + '\n'.repeat(whole.split('\n').length - 1);
}

function without_modules(code) {
	return code.replace(STATIC, static_import).replace(/^([ \t]*)export\s*\{\s*\}[ \t]*;?/gm, '$1')
		.replace(/^([ \t]*)export\s+(?:default\s+)?(?=(?:async|function|class|const|let|var)\b)/gm, '$1');
}

function compiles(code) {
	try {
		return Boolean(new Script(code, { filename: '<osbx>' }));
	} catch (e) {
		return false;
	}
}

function prepared(code) {
	if (/\bimport\s*\(/.test(code)) {
		code = code.replace(DYNAMIC, (whole, skipped) => skipped || '__import');
	}
	// An object, rather than a block with a label.
	if (/^\s*\{/.test(code) && !/;\s*$/.test(code) && compiles('(' + code + '\n)')) {
		return '(' + code + '\n)';
	}
	return code;
}

// TypeScript, by what is there: node itself, or a package that the sandbox has.
function resolve_of(name) {
	const prefix = path.join(path.dirname(process.execPath), '..', 'lib', 'node_modules');
	for (const from of [process.cwd(), prefix, '/usr/local/lib/node_modules', '/usr/lib/node_modules']) {
		for (const way of [from, path.join(from, '..')]) {
			try {
				return modules.createRequire(path.join(way, 'x.js')).resolve(name);
			} catch (e) {
				continue;
			}
		}
	}
	return null;
}

function by_node() {
	const strip = modules.stripTypeScriptTypes;
	if (typeof strip !== 'function') {
		return null;
	}
	return (code) => {
		const warn = process.emitWarning;
		process.emitWarning = () => {};
		try {
			return strip(code);
		} catch (e) {
			if (e.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
				throw e;
			}
			return strip(code, { mode: 'transform' });
		} finally {
			process.emitWarning = warn;
		}
	};
}

function by_typescript() {
	const found = resolve_of('typescript');
	if (!found) {
		return null;
	}
	const ts = require(found);
	const options = { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, isolatedModules: true };
	return (code) => {
		const out = ts.transpileModule(code, { compilerOptions: options, reportDiagnostics: true });
		const bad = out.diagnostics.filter((d) => d.category === ts.DiagnosticCategory.Error);
		if (bad.length > 0) {
			const at = bad[0].file ? bad[0].file.getLineAndCharacterOfPosition(bad[0].start).line + 1 : 0;
			throw new SyntaxError('line ' + at + ': ' + ts.flattenDiagnosticMessageText(bad[0].messageText, '\n'));
		}
		return out.outputText;
	};
}

function by_esbuild() {
	const tsx = resolve_of('tsx');
	let found = resolve_of('esbuild');
	if (!found && tsx) {
		found = modules.createRequire(tsx).resolve('esbuild');
	}
	if (!found) {
		return null;
	}
	const raw = { compilerOptions: { verbatimModuleSyntax: true } };
	return (code) => require(found).transformSync(code, { loader: 'ts', target: 'esnext', tsconfigRaw: raw }).code;
}

let stripper = null;
function stripped(code) {
	stripper = stripper || by_node() || by_typescript() || by_esbuild();
	if (!stripper) {
		throw new Error('nothing here reads TypeScript: node ' + process.versions.node + ' does not (22.13 and later do), and ' +
			'none of the packages typescript, esbuild and tsx is found from ' + process.cwd() + ' or installed globally');
	}
	return stripper(code);
}

function place_of(details, code, name) {
	const line = code.split('\n')[details.lineNumber];
	if (line === undefined) {
		return [name];
	}
	return [name + ':' + (details.lineNumber + 1), cut(line, 1024), ' '.repeat(details.columnNumber % 1024) + '^'];
}

async function execute(source, name) {
	let code = prepared(language === 'typescript' ? stripped(source) : source);
	let found = await evaluate(code, name);
	let details = found.exceptionDetails;
	let error = details && value_of(details.exception);
	const is_early = () => details && isNativeError(error) && error.name === 'SyntaxError' && !/\n\s+at .*<cell-/.test(error.stack);
	if (is_early() && /\b(?:import|export)\b/.test(code) && without_modules(code) !== code) {
		code = without_modules(code);
		found = await evaluate(code, name);
		details = found.exceptionDetails;
		error = details && value_of(details.exception);
	}
	// Who rejects without a handler is told of behind the microtasks.
	await new Promise((resolve) => later(resolve));
	if (details) {
		return { error: error_of(error, is_early() ? place_of(details, code, name) : null) };
	}
	return found.result.type === 'undefined' ? {} : { result: cut(shown(value_of(found.result)), RESULT_MAX) };
}

async function run(source) {
	count++;
	running = true;
	last_fd = 0;
	stray = [];
	let end = {};
	try {
		end = await execute(source, '<cell-' + count + '>');
	} catch (e) {
		const is_break = e && (e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ||
			(e.code === 'ERR_INSPECTOR_COMMAND' && /terminated/.test(e.message)));
		end = { error: is_break ? { ename: 'KeyboardInterrupt', evalue: 'interrupted', traceback: ['interrupted'] }
			: error_of(e, null) };
	}
	stop = null;
	if (!end.error && stray.length > 0) {
		end = { error: error_of(stray[0], null) };
	}
	ask('Runtime.releaseObjectGroup', { objectGroup: 'run' });
	if (end.error) {
		tell('E', end.error);
	} else if (end.result !== undefined) {
		tell('X', { 'text/plain': end.result });
	}
	running = false;
	tell('F', { execution_count: count });
}

// An error that nobody has caught ends no interpreter.
function on_stray(error) {
	if (running) {
		stray.push(error);
		return;
	}
	write_all(2, bytes(error_of(error, null).traceback.join('\n') + '\n'));
}

function on_interrupt() {
	if (stop) {
		const error = new Error('interrupted');
		error.code = 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
		stop(error);
	}
}

let received = Buffer.alloc(0);
function on_data(piece) {
	received = received.length > 0 ? concat([received, piece]) : piece;
	for (;;) {
		const end = received.indexOf(10);
		const length = end < 0 ? 0 : Number(received.latin1Slice(2, end));
		if (end < 0 || received.length <= end + length) {
			return;
		}
		const kind = received[0];
		const payload = received.utf8Slice(end + 1, end + 1 + length);
		received = received.subarray(end + 1 + length);
		if (kind === 82) {
			run(payload);
		}
	}
}

for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
	Object.defineProperty(process, name, { value: stream_of(fd), configurable: true, enumerable: true, writable: true });
}
const hidden = { __import: load };
const global_module = { exports: {} };
Object.assign(hidden, { require: modules.createRequire(path.join(process.cwd(), 'x.js')), module: global_module, exports: global_module.exports });
for (const name of Object.keys(hidden)) {
	Object.defineProperty(globalThis, name, { value: hidden[name], configurable: true, enumerable: false, writable: true });
}
process.on('SIGINT', on_interrupt);
process.on('uncaughtException', on_stray);
process.on('unhandledRejection', on_stray);
const channel = new Socket({ fd: 3, readable: true, writable: false });
channel.on('data', on_data);
channel.on('close', () => leave(0));
channel.on('error', () => leave(0));
send('H', stringify({ language, version: process.versions.node }));
})
