// The module in Node: a text goes in, a text comes out. `node gate.mjs MODULE` is a subject of the conformance suite on its
// standard input and output; `node gate.mjs MODULE --check` looks at the module itself.
import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

const EXPORTS = ["memory", "begin", "put", "answer", "get"];
const PAGES = 4;

export class Gate {
  constructor(bytes) {
    this.module = new WebAssembly.Module(bytes);
    // No imports: what it needs, it has.
    this.exports = new WebAssembly.Instance(this.module, {}).exports;
  }

  /** The answer to a line; null for a goodbye. */
  answer(line) {
    const bytes = Buffer.from(line);
    const { begin, put, answer, get } = this.exports;
    begin();
    for (let at = 0; at < bytes.length; at += 8) {
      const word = Buffer.alloc(8);
      const count = bytes.copy(word, 0, at);
      put(word.readBigUInt64LE(), count);
    }
    const length = answer();
    if (length === -1) return null;
    if (length === -2) return '{"unsupported":"the line is too long"}';
    if (length < 0) return '{"error":"the answer is too long"}';
    const words = Buffer.alloc(Math.ceil(length / 8) * 8);
    for (let at = 0; at < length; at += 8) words.writeBigUInt64LE(BigInt.asUintN(64, get(at)), at);
    return words.toString("utf8", 0, length);
  }
}

function check(path) {
  const bytes = readFileSync(path);
  const gate = new Gate(bytes);
  const imports = WebAssembly.Module.imports(gate.module);
  const names = WebAssembly.Module.exports(gate.module).map((one) => one.name);
  const pages = gate.exports.memory.buffer.byteLength / 65536;
  const problems = [];
  if (imports.length > 0) problems.push(`it imports ${JSON.stringify(imports)}`);
  const unexpected = names.filter((name) => !EXPORTS.includes(name) && name !== "__data_end" && name !== "__heap_base");
  if (unexpected.length > 0) problems.push(`it exports ${unexpected}`);
  if (pages !== PAGES) problems.push(`it has ${pages} pages`);
  let grew = true;
  try {
    gate.exports.memory.grow(1);
  } catch {
    grew = false;
  }
  if (grew) problems.push("its memory can grow");
  if (!JSON.parse(gate.answer('{"hello":{"protocol":1}}')).declare) problems.push("it does not answer");
  for (const problem of problems) console.error(`${path}: ${problem}`);
  console.log(`${bytes.length} bytes, ${imports.length} imports, ${pages} pages of 64 KiB; exports ${names.join(", ")}`);
  return problems.length === 0;
}

const [path, mode] = process.argv.slice(2);
if (mode === "--check") {
  process.exit(check(path) ? 0 : 1);
} else if (path) {
  const gate = new Gate(readFileSync(path));
  for await (const line of createInterface({ input: process.stdin })) {
    const answer = gate.answer(line);
    if (answer === null) break;
    writeSync(1, answer + "\n");
  }
  process.exit(0);
}
