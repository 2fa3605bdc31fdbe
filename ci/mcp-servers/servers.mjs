// Real servers behind the gate: they behave as they do without it, but for what the gate is told to do.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import test, { after } from 'node:test';
import { Client } from './client.mjs';

const callgate = process.env.CALLGATE;
const modules = path.join(process.env.CALLGATE_MCP_MODULES, '@modelcontextprotocol');
const server = (name) => [process.execPath, path.join(modules, name, 'dist/index.js')];
const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'callgate-servers-')));
after(() => fs.rmSync(base, { recursive: true, force: true }));

let worlds = 0;
/** A directory with a configuration, and the gate in it. */
function world(config) {
    const dir = path.join(base, `w${worlds++}`);
    fs.mkdirSync(path.join(dir, 'files'), { recursive: true });
    fs.writeFileSync(path.join(dir, 'callgate.toml'), `version = 1\n${config}\n`);
    return {
        dir,
        files: path.join(dir, 'files'),
        proxy: (args, options) => new Client([callgate, 'proxy', ...args], { cwd: dir, ...options }).start(),
        run: (...args) => execFileSync(callgate, args, { cwd: dir, encoding: 'utf8' }),
        records: () => {
            const text = execFileSync(callgate, ['audit', 'export'], { cwd: dir, encoding: 'utf8' });
            return text.trim().split('\n').map((line) => JSON.parse(line));
        },
    };
}

/** What of a result is the server's. */
const own = ({ content, structuredContent }) => ({ content, structuredContent });
const text = (result) => result.content.map((block) => block.text).join('\n');

/** Makes the same calls of a server and of the gate in front of it, and compares what comes back. */
async function compare(plain, gated, calls) {
    for (const [name, args] of calls) {
        const [one, other] = [await plain.call(name, args), await gated.call(name, args)];
        assert.notEqual(one.isError, true, `${name}: ${text(one)}`);
        assert.deepEqual(own(other), own(one), name);
    }
}

/** What of a definition a client goes by. */
const seen = ({ name, inputSchema, outputSchema }) => ({ name, inputSchema, outputSchema });
const sorted = (tools) => tools.map(seen).sort((a, b) => (a.name < b.name ? -1 : 1));

test('files: as without the gate', async () => {
    const { files, proxy, run, records } = world('');
    fs.writeFileSync(path.join(files, 'a.txt'), 'one\ntwo\nthree\n');
    const plain = await new Client([...server('server-filesystem'), files]).start();
    const gated = await proxy(['--', ...server('server-filesystem'), files]);
    assert.deepEqual(sorted(await gated.tools()), sorted(await plain.tools()));
    const at = (name) => path.join(files, name);
    await compare(plain, gated, [
        ['read_text_file', { path: at('a.txt') }],
        ['read_text_file', { path: at('a.txt'), head: 2 }],
        ['write_file', { path: at('b.txt'), content: 'é\u0000"x' }],
        ['edit_file', { path: at('a.txt'), edits: [{ oldText: 'two', newText: 'two' }], dryRun: true }],
        ['list_directory', { path: files }],
        ['directory_tree', { path: files }],
        ['search_files', { path: files, pattern: '*.txt' }],
        ['read_multiple_files', { paths: [at('a.txt'), at('b.txt')] }],
        ['list_allowed_directories', {}],
    ]);
    // A failure is one, with the server's own words.
    const [one, other] = [await plain.call('read_text_file', { path: '/etc/passwd' }), await gated.call('read_text_file', { path: '/etc/passwd' })];
    assert.ok(one.isError && other.isError && text(other).includes(text(one)), text(other));
    await Promise.all([plain.end(), gated.end()]);
    const ends = records().filter((record) => record.end !== 'intent');
    assert.equal(ends.length, 10, 'J1: a record for each call');
    assert.deepEqual([...new Set(ends.map((record) => record.tool.split('.')[0]))], ['upstream']);
    run('audit', 'verify');
});

test('memory: as without the gate', async () => {
    const { dir, proxy } = world('[[upstream]]\nname = "memory"\nenv = ["MEMORY_FILE_PATH"]');
    const env = (name) => ({ env: { MEMORY_FILE_PATH: path.join(dir, name) } });
    const plain = await new Client(server('server-memory'), env('plain.jsonl')).start();
    const gated = await proxy(['--name', 'memory', '--', ...server('server-memory')], env('gated.jsonl'));
    assert.deepEqual(sorted(await gated.tools()), sorted(await plain.tools()));
    await compare(plain, gated, [
        ['create_entities', { entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }, { name: 'Bob', entityType: 'person', observations: [] }] }],
        ['create_relations', { relations: [{ from: 'Ann', to: 'Bob', relationType: 'knows' }] }],
        ['add_observations', { observations: [{ entityName: 'Bob', contents: ['plays chess'] }] }],
        ['search_nodes', { query: 'tea' }],
        ['open_nodes', { names: ['Bob'] }],
        ['delete_relations', { relations: [{ from: 'Ann', to: 'Bob', relationType: 'knows' }] }],
        ['read_graph', {}],
    ]);
    await Promise.all([plain.end(), gated.end()]);
    const stored = (name) => fs.readFileSync(path.join(dir, name), 'utf8');
    assert.equal(stored('gated.jsonl'), stored('plain.jsonl'));
});

test('everything: images, links, structure, progress, cancellation, and what is refused', async () => {
    const { proxy } = world('');
    const plain = await new Client([...server('server-everything'), 'stdio']).start();
    const gated = await proxy(['--', ...server('server-everything'), 'stdio'], { env: { CANARY: 'not for servers' } });
    assert.deepEqual(sorted(await gated.tools()), sorted(await plain.tools()));
    await compare(plain, gated, [
        ['echo', { message: 'hi' }],
        ['get-sum', { a: 1.5, b: -2 }],
        ['get-tiny-image', {}],
        ['get-annotated-message', { messageType: 'error', includeImage: true }],
        ['get-resource-links', { count: 3 }],
        ['get-structured-content', { location: 'Chicago' }],
    ]);
    const env = text(await gated.call('get-env'));
    assert.ok(!env.includes('CANARY') && env.includes('PATH'), 'X1: the environment is a list of names');
    await gated.call('trigger-long-running-operation', { duration: 0.4, steps: 2 }, { progressToken: 'p' });
    const progress = gated.notifications.filter(({ method }) => method === 'notifications/progress');
    assert.ok(progress.length >= 1 && progress.every(({ params }) => params.progressToken === 'p'), JSON.stringify(progress));
    const bad = await gated.call('get-sum', { a: 'x', b: 1 });
    assert.ok(bad.isError && text(bad).includes('VALIDATION_ERROR'), text(bad));
    await assert.rejects(gated.call('no-such-tool'), ({ code }) => code === -32602);
    for (const method of ['resources/list', 'prompts/list', 'completion/complete', 'logging/setLevel']) {
        await assert.rejects(gated.request(method, {}), ({ code }) => code === -32601 || code === -32602, method);
    }
    assert.deepEqual(Object.keys(gated.greeting.capabilities), ['tools'], 'nothing else is offered');
    await Promise.all([plain.end(), gated.end()]);
});

test('rules: denied, limited, clamped, confirmed, left out', async () => {
    const { dir, files, proxy, records } = world(`
[[upstream]]
name = "files"
read_only = ["read_*", "list_*"]

[[upstream]]
name = "everything"

[[rules]]
id = 1
effect = "deny"
tool = "files.*"
where = [{ field = "path", prefix = "${path.join(base, 'w3/files/secret')}" }]
description = "Secrets stay where they are."

[tools."files.write_file"]
confirm = "caller"
[tools."files.move_file"]
disabled = true
[tools."files.create_directory"]
confirm = "approver"
[quotas.tools."files.list_directory"]
limit = 3
burst = 3
[tools."everything.echo"]
clamps = { message = { max_length = 5 } }
`);
    assert.equal(path.basename(dir), 'w3');
    fs.writeFileSync(path.join(files, 'secret.txt'), 'canary');
    let yes = true;
    const answer = ({ method }) => (method === 'elicitation/create'
        ? { action: yes ? 'accept' : 'decline', ...(yes && { content: { confirm: true, confirmed: true } }) } : undefined);
    const gated = await proxy(['--name', 'files', '--', ...server('server-filesystem'), files],
        { answer, capabilities: { elicitation: { form: {} } } });
    const names = (await gated.tools()).map(({ name }) => name);
    assert.ok(names.includes('write_file') && !names.includes('move_file'), 'left out');
    const denied = await gated.call('read_text_file', { path: path.join(files, 'secret.txt') });
    assert.ok(denied.isError && text(denied).includes('Secrets stay where they are') && !text(denied).includes('canary'), text(denied));
    for (let call = 1; call <= 4; call += 1) {
        const listed = await gated.call('list_directory', { path: files });
        assert.equal(listed.isError === true, call === 4, `${call}: ${text(listed)}`);
        if (call === 4) assert.ok(text(listed).includes('RATE_LIMITED'), text(listed));
    }
    const file = path.join(files, 'new.txt');
    const written = await gated.call('write_file', { path: file, content: 'agreed' });
    assert.notEqual(written.isError, true, text(written));
    assert.equal(fs.readFileSync(file, 'utf8'), 'agreed');
    assert.equal(gated.asked.length, 1, 'the user was asked once');
    yes = false;
    const declined = await gated.call('write_file', { path: file, content: 'declined' });
    assert.ok(declined.isError, text(declined));
    assert.equal(fs.readFileSync(file, 'utf8'), 'agreed', 'nothing was written');
    const waits = await gated.call('create_directory', { path: path.join(files, 'd') });
    assert.ok(text(waits).includes('CONFIRMATION_REQUIRED') && !fs.existsSync(path.join(files, 'd')), text(waits));
    await gated.end();
    const codes = records().map((record) => record.code ?? record.end);
    for (const code of ['FORBIDDEN', 'RATE_LIMITED', 'done', 'asked']) assert.ok(codes.includes(code), `${code} among ${codes}`);

    const everything = await proxy(['--name', 'everything', '--', ...server('server-everything'), 'stdio']);
    const echo = (await everything.tools()).find(({ name }) => name === 'echo');
    assert.ok(JSON.stringify(echo).includes('5'), 'a model is told of the clamp');
    assert.equal(text(await everything.call('echo', { message: 'hello world' })), 'Echo: hello');
    await everything.end();
});

test('many: all servers of the configuration beside each other', async () => {
    const quoted = (words) => words.map((word) => JSON.stringify(word)).join(', ');
    const { files, proxy, run } = world(`
[[upstream]]
name = "files"
command = [${quoted([...server('server-filesystem'), path.join(base, `w4/files`)])}]
[[upstream]]
name = "everything"
command = [${quoted([...server('server-everything'), 'stdio'])}]
`);
    const gated = await proxy([]);
    const names = (await gated.tools()).map(({ name }) => name);
    assert.ok(names.includes('files.read_text_file') && names.includes('everything.echo'), names.join(' '));
    assert.equal(text(await gated.call('everything.echo', { message: 'hi' })), 'Echo: hi');
    assert.notEqual((await gated.call('files.list_directory', { path: files })).isError, true);
    await gated.end();
    assert.ok(run('pins', 'list').includes('everything.echo'));
});

test('over HTTP: as without the gate, and away and back again', async () => {
    const port = await new Promise((resolve) => {
        const listener = net.createServer().listen(0, '127.0.0.1', () => {
            const { port } = listener.address();
            listener.close(() => resolve(port));
        });
    });
    const reachable = () => new Promise((resolve) => {
        const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
    });
    const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
    const start = async () => {
        const [node, script] = server('server-everything');
        const process_ = spawn(node, [script, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' });
        for (let tries = 0; tries < 600 && !(await reachable()); tries += 1) await pause(100);
        return process_;
    };
    const { proxy } = world('');
    let remote = await start();
    const plain = await new Client([...server('server-everything'), 'stdio']).start();
    const gated = await proxy(['--url', `http://127.0.0.1:${port}/mcp`]);
    try {
        assert.deepEqual(sorted(await gated.tools()), sorted(await plain.tools()));
        await compare(plain, gated, [
            ['echo', { message: 'hi' }],
            ['get-tiny-image', {}],
            ['get-structured-content', { location: 'Chicago' }],
        ]);
        remote.kill();
        while (await reachable()) await pause(50);
        const echo = async () => {
            const result = await gated.call('echo', { message: 'hi' });
            return [result.isError === true, result._meta['callgate/outcome'].effect];
        };
        // Whether the first one left shows when it is sent; those after it do not leave.
        const [failed, effect] = await echo();
        assert.ok(failed && ['none', 'unknown'].includes(effect), effect);
        let last = [];
        for (let tries = 0; tries < 100 && last[1] !== 'none'; tries += 1) {
            last = await echo();
            await pause(50);
        }
        assert.deepEqual(last, [true, 'none'], 'a call that never left has no effect');
        remote = await start();
        for (let tries = 0; tries < 600 && last[0]; tries += 1) {
            last = await echo();
            await pause(100);
        }
        assert.deepEqual(last, [false, 'done'], 'it is found again');
    } finally {
        remote.kill();
        await Promise.all([plain.end(), gated.end()]);
    }
});
