// A client of MCP in as few lines as it takes: it starts a server, asks, and answers what it is asked.
import { spawn } from 'node:child_process';
import readline from 'node:readline';

export class Client {
    constructor(command, { env = {}, cwd, answer, capabilities = {} } = {}) {
        this.waiting = new Map();
        this.notifications = [];
        this.asked = [];
        this.complaints = '';
        this.next = 0;
        this.capabilities = capabilities;
        this.process = spawn(command[0], command.slice(1), {
            cwd, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env }, stdio: ['pipe', 'pipe', 'pipe'],
        });
        this.process.stderr.on('data', (data) => { this.complaints += data; });
        this.process.stdin.on('error', () => {});
        this.ended = new Promise((resolve) => this.process.on('exit', (code, signal) => {
            for (const { reject } of this.waiting.values()) reject(new Error(`the server ended (${code ?? signal})\n${this.complaints}`));
            resolve(code ?? signal);
        }));
        readline.createInterface({ input: this.process.stdout }).on('line', (line) => {
            const message = JSON.parse(line);
            if (message.method && message.id !== undefined) {
                this.asked.push(message);
                Promise.resolve(answer ? answer(message) : undefined).then((result) => this.send(result === undefined
                    ? { id: message.id, error: { code: -32601, message: 'not here' } } : { id: message.id, result }));
            } else if (message.method) {
                this.notifications.push(message);
            } else if (this.waiting.has(message.id)) {
                const { resolve, reject } = this.waiting.get(message.id);
                this.waiting.delete(message.id);
                if (message.error) reject(Object.assign(new Error(message.error.message), message.error));
                else resolve(message.result);
            }
        });
    }

    send(message) {
        this.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    }

    request(method, params) {
        const id = ++this.next;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject });
            this.send({ id, method, params });
        });
    }

    async start() {
        this.greeting = await this.request('initialize', {
            protocolVersion: '2025-11-25', capabilities: this.capabilities, clientInfo: { name: 'check', version: '1' },
        });
        this.send({ method: 'notifications/initialized' });
        return this;
    }

    async tools() {
        const tools = [];
        let cursor;
        do {
            const page = await this.request('tools/list', cursor ? { cursor } : {});
            tools.push(...page.tools);
            cursor = page.nextCursor;
        } while (cursor);
        return tools;
    }

    call(name, args = {}, meta) {
        return this.request('tools/call', { name, arguments: args, ...(meta && { _meta: meta }) });
    }

    async end() {
        this.process.stdin.end();
        return this.ended;
    }
}
