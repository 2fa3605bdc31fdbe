// What a call costs through the gate beside the same call without it, in one run: the blocks of both are taken in turns.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Client } from './client.mjs';

const calls = Number(process.env.CALLGATE_MCP_CALLS ?? 10_000);
const callgate = process.env.CALLGATE;
const everything = path.join(process.env.CALLGATE_MCP_MODULES, '@modelcontextprotocol/server-everything/dist/index.js');
const server = [process.execPath, everything, 'stdio'];
const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'callgate-measure-'));
const configured = (name, readOnly) => `
[[upstream]]
name = "${name}"
cost = 1
${readOnly ? 'read_only = ["e*"]' : ''}
`;
fs.writeFileSync(path.join(dir, 'callgate.toml'), `version = 1
[quotas]
limit = 1000000
window = "1s"
${configured('reads', true)}
${configured('changes', false)}
`);
const gate = (name) => new Client([callgate, 'proxy', '--name', name, '--', ...server], { cwd: dir }).start();

const sides = {
    'the server itself': await new Client(server).start(),
    'behind the gate, a tool that reads': await gate('reads'),
};
// The second server has the tools of the first, which the pins take for copies.
const first = await gate('changes');
await first.end();
const { execFileSync } = await import('node:child_process');
execFileSync(callgate, ['pins', 'accept', 'changes'], { cwd: dir });
sides['behind the gate, a tool that changes'] = await gate('changes');

const once = async (client) => {
    const started = process.hrtime.bigint();
    const result = await client.call('echo', { message: 'hi' });
    if (result.isError) throw new Error(result.content[0].text);
    return Number(process.hrtime.bigint() - started) / 1000;
};
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const at = (numbers, share) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * share)];

async function sequential(client, count, times) {
    for (let call = 0; call < count; call += 1) times.push(await once(client));
}
async function concurrent(client, count, times) {
    let left = count;
    await Promise.all(Array.from({ length: 64 }, async () => {
        while (left > 0) {
            left -= 1;
            times.push(await once(client));
        }
    }));
}

for (const client of Object.values(sides)) await sequential(client, Math.min(200, calls), []);
for (const [name, way] of [['one after the other', sequential], ['64 at once', concurrent]]) {
    const times = Object.fromEntries(Object.keys(sides).map((side) => [side, []]));
    const spent = Object.fromEntries(Object.keys(sides).map((side) => [side, 0]));
    const block = Math.max(1, Math.floor(calls / 10));
    for (let done = 0; done < calls; done += block) {
        for (const [side, client] of Object.entries(sides)) {
            const started = performance.now();
            await way(client, Math.min(block, calls - done), times[side]);
            spent[side] += performance.now() - started;
        }
    }
    console.log(`\n${calls} calls, ${name}:`);
    const bare = median(times['the server itself']);
    for (const [side, all] of Object.entries(times)) {
        const rate = Math.round(all.length / spent[side] * 1000);
        const more = side === 'the server itself' ? '' : `, ${(median(all) / bare).toFixed(2)}x, ${(median(all) - bare).toFixed(0)} us more`;
        console.log(`  ${side.padEnd(38)} median ${median(all).toFixed(0)} us${more}; p99 ${at(all, 0.99).toFixed(0)} us; ${rate} calls a second`);
    }
}
await Promise.all(Object.values(sides).map((client) => client.end()));
fs.rmSync(dir, { recursive: true, force: true });
