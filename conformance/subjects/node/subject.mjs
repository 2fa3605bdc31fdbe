#!/usr/bin/env node
// A small gate and its adapter: the conformance protocol over standard input and output, from PROTOCOL.md alone, with nothing but
// what Node brings. It keeps what it has to keep in one object a world, and runs a call from top to bottom.
//
//     callgate conformance run -- node subject.mjs

import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

const SUPPORTS = [
  "schema", "clamp", "channels", "rules", "rule_change", "quota", "attempts", "plan", "confirm", "approvals", "intercept", "listen",
  "output_schema", "clock", "wall_clock", "define", "tenants", "sessions", "faults", "kill", "kill_within",
];
const TRANSCRIPT = ["authorize", "charge", "issue", "redeem", "intercept", "intent", "execute", "record"];

// --- JSON, read strictly and without a loss: integers that a number of JavaScript can't hold are BigInt.

class Malformed extends Error {}

/** The arguments of a call. */
function read(text) {
  if (text === "") return {};
  if (Buffer.byteLength(text) > 1 << 20 || !text.isWellFormed()) throw new Malformed("too long, or no text");
  const found = parse(text, 64);
  if (!isObject(found)) throw new Malformed("no object");
  return found;
}

function parse(text, deepest) {
  let at = 0;
  const fail = (why) => { throw new Malformed(`${why} at ${at}`); };
  const skip = () => { while (" \t\r\n".includes(text[at] ?? "x")) at += 1; };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) fail("what is no JSON");
    at = pattern.lastIndex;
    return found[0];
  };
  const string = () => {
    const found = JSON.parse(take(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y));
    return found.isWellFormed() ? found : fail("half a character");
  };
  const number = () => {
    const digits = take(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    if (/^-?[0-9]+$/.test(digits)) {
      const integer = BigInt(digits);
      if (integer < -(2n ** 63n) || integer >= 2n ** 64n) fail("an integer that is too large");
      return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
    }
    const float = Number(digits);
    return Number.isFinite(float) ? float : fail("a number that is too large");
  };
  const members = (close, depth, member) => {
    if (depth > deepest) fail("too deep");
    at += 1;
    skip();
    if (text[at] === close) { at += 1; return; }
    for (;;) {
      skip();
      member();
      skip();
      if (text[at] === close) { at += 1; return; }
      take(/,/y);
    }
  };
  const value = (depth) => {
    skip();
    if (text[at] === "{") {
      const found = new Map();
      members("}", depth + 1, () => {
        const key = string();
        if (found.has(key)) fail("a key that is there already");
        skip();
        take(/:/y);
        found.set(key, value(depth + 1));
      });
      return Object.fromEntries(found);
    }
    if (text[at] === "[") {
      const found = [];
      members("]", depth + 1, () => found.push(value(depth + 1)));
      return found;
    }
    if (text[at] === '"') return string();
    if (text[at] === "-" || /[0-9]/.test(text[at] ?? "")) return number();
    return { true: true, false: false, null: null }[take(/true|false|null/y)];
  };
  const found = value(0);
  skip();
  if (at < text.length) fail("more than one value");
  return found;
}

/** JSON again, with its integers. */
function write(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value ?? null);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${write(member)}`).join(",")}}`;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isNumber = (value) => typeof value === "number" || typeof value === "bigint";
const isInteger = (value) => typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
const TYPES = {
  object: isObject, array: Array.isArray, number: isNumber, integer: isInteger, null: (value) => value === null,
  string: (value) => typeof value === "string", boolean: (value) => typeof value === "boolean",
};
// JavaScript compares integers and floats by value.
const same = (one, other) => (isNumber(one) && isNumber(other) ? one == other : write(one) === write(other));
const characters = (text) => [...text].length;

function fits(schema, value) {
  if (!isObject(schema)) return schema !== false;
  const { type, properties = {}, required = [], additionalProperties = true } = schema;
  if (type !== undefined && ![type].flat().some((name) => TYPES[name](value))) return false;
  if (schema.enum && !schema.enum.some((one) => same(one, value))) return false;
  if (isNumber(value)) return !(value < schema.minimum || value > schema.maximum);
  if (typeof value === "string") return !(characters(value) < schema.minLength || characters(value) > schema.maxLength);
  if (Array.isArray(value)) return value.every((item) => fits(schema.items ?? true, item));
  if (!isObject(value)) return true;
  const of = (name) => (Object.hasOwn(properties, name) ? properties[name] : additionalProperties);
  return required.every((name) => Object.hasOwn(value, name)) && Object.entries(value).every(([name, member]) => fits(of(name), member));
}

function clamped(tool, args) {
  const result = { ...args };
  for (const { field, min, max, max_length: most } of tool.clamps ?? []) {
    const value = Object.hasOwn(result, field) ? result[field] : undefined;
    if (isNumber(value)) result[field] = value < min ? min : value > max ? max : value;
    else if (typeof value === "string" && most !== undefined) result[field] = [...value].slice(0, most).join("");
  }
  return result;
}

// --- Callers and definitions.

const principal = (caller) => caller.principal || null;
const holds = (caller, scope) => (caller.scopes ?? []).some((held) => held === "*" || held === scope);
const identity = (caller) => JSON.stringify([caller.tenant ?? null, principal(caller), caller.channel, caller.session ?? null]);
const approverScope = (tool) => (tool.confirm === "approver" ? tool.approver_scope ?? "approve" : "approve");
const definition = (tool) => write({ ...Object.fromEntries(Object.entries(tool).sort()), approver_scope: approverScope(tool), body: null });

const LABEL = /^[A-Za-z0-9_.:\/-]{1,128}$/;
const PRINTABLE = /^[ -~]{1,256}$/;
const SCOPE = /^[!#-+\--\[\]-~]{1,128}$/;
const wellNamed = ({ id, caller }) =>
  [caller.channel, caller.tenant, caller.session].every((name) => name === undefined || LABEL.test(name)) &&
  [id, principal(caller)].every((name) => name === null || PRINTABLE.test(name)) &&
  (caller.scopes ?? []).every((scope) => SCOPE.test(scope));

// --- The gate.

/** A call that ends before its body has come to its end. */
class End extends Error {
  constructor(code, more = {}) {
    super(code);
    Object.assign(this, { code, effect: "none", kind: "error", refusal: false, started: false, data: null }, more);
  }
}
const refused = (code) => new End(code, { refusal: true });
const answered = (data, kind, more) => new End(null, { data, kind, ...more });
/** Whoever was asked did not answer. */
class Down extends Error {}
/** The gate is killed here. */
class Killed extends Error {}

class Gate {
  constructor(world) {
    this.world = world;
    this.tools = new Map(world.tools.map((tool) => [tool.name, tool]));
    this.rules = [...(world.rules ?? [])];
    this.now = 0;
    [this.tickets, this.approvals, this.debts] = [new Map(), new Map(), new Map()];
    [this.faults, this.kills] = [[], []];
    this.forget();
  }

  forget() {
    [this.marks, this.effects, this.records] = [[], 0, []];
  }

  seen(more) {
    const seen = { ...more, marks: this.marks, effects: this.effects, records: this.records };
    this.forget();
    return seen;
  }

  /** Comes to a point, does what is done there, and maybe does not survive it. */
  comeTo(at, more, done) {
    this.marks.push({ at, ...more });
    const kill = this.kills.findIndex((kill) => kill.at === at);
    if (kill < 0) return done();
    if (this.kills.splice(kill, 1)[0].done) {
      try { done(); } catch { /* Nobody hears the answer. */ }
    }
    throw new Killed();
  }

  /** The same where somebody is asked, who may fail. */
  ask(at, more, done) {
    return this.comeTo(at, more, () => {
      const fault = this.faults.findIndex((fault) => fault.at === at);
      if (fault < 0) return done();
      if (this.faults.splice(fault, 1)[0].how === "lost") {
        try { done(); } catch { /* Nobody hears the answer. */ }
      }
      throw new Down();
    });
  }

  /** What was asked, or how the call ends if nobody answers. */
  answer(at, more, done, otherwise) {
    try {
      return this.ask(at, more, done);
    } catch (error) {
      throw error instanceof Down ? otherwise : error;
    }
  }

  call(call) {
    const way = { call, args: null, paid: null, confirmedBy: null };
    let end;
    try {
      end = { ...answered(this.stages(way), null), effect: "done", started: true };
    } catch (error) {
      if (!(error instanceof End)) throw error;
      end = error;
    }
    let told = end.code;
    if (call.mode !== "plan") {
      if (way.paid && !end.started && end.kind !== "confirmation") this.giveBack(way);
      if (end.refusal && !this.spend(this.world.attempts, this.account(call.caller, null), 1, true)) told = "RATE_LIMITED";
    }
    const meta = {
      tool: call.tool, took_ms: 0, request_id: call.id, channel: call.caller.channel, principal: principal(call.caller),
      effect: end.effect, code: told ?? undefined, type: (told === end.code ? end.kind : "error") ?? undefined,
      confirmed_by: way.confirmedBy ?? undefined, clamped: way.clamped,
      blocked_by_rule: end.kind === "blocked" || undefined, requires_confirmation: end.kind === "confirmation" || undefined,
      cache_served: end.served,
      retry_after_seconds: told === "RATE_LIMITED" ? 60 : undefined,
    };
    try {
      this.ask("record", {}, () => this.records.push(this.record("terminal", way, end.code, end.effect)));
    } catch (error) {
      if (!(error instanceof Down)) throw error;
      meta.audit_pending = true;
    }
    return { success: told === null, data: end.data, message: null, error: told && `the call ended as ${told}`, meta };
  }

  stages(way) {
    const { call } = way;
    // 1 resolve
    if (!wellNamed(call)) throw refused("VALIDATION_ERROR");
    const tool = this.tools.get(call.tool);
    if (!tool) throw refused("TOOL_NOT_FOUND");
    const ticket = call.token === undefined ? null : this.load(call, tool);
    const text = ticket ? ticket.text : call.arguments;
    // 2 validate, 3 clamp
    const args = this.validate(tool, text, way);
    // 4 authorize
    const channel = (this.world.channels ?? []).find(({ name }) => name === call.caller.channel);
    const allowed = this.answer("authorize", { args }, () => this.allows(call.caller, tool, args, channel), refused("FORBIDDEN"));
    if (!allowed) throw refused("FORBIDDEN");
    // 5 rate_limit
    if (!ticket && this.world.quota) this.charge(way, tool);
    // 6 plan
    const by = this.confirmedBy(tool, channel ?? {});
    if (call.mode === "plan") throw answered({ plan: this.plan(tool, args, by) }, undefined);
    // 7 confirm
    this.confirm(way, tool, text, ticket, by);
    // 8 intercept, intent
    this.intercept(tool, args);
    if (tool.mutating) {
      const write = () => this.records.push(this.record("intent", way, null, "unknown"));
      this.answer("intent", {}, write, new End("AUDIT_UNAVAILABLE"));
    }
    // 9 execute
    return this.execute(tool, args);
  }

  load({ token, caller, mode }, tool) {
    const ticket = this.tickets.get(token);
    if (!ticket) throw refused("CONFIRMATION_INVALID");
    if (ticket.owner !== identity(caller) || ticket.definition !== definition(tool)) {
      if (mode !== "plan" && ["pending", "approved"].includes(ticket.state)) ticket.state = "burnt";
      throw refused("CONFIRMATION_INVALID");
    }
    this.usable(ticket);
    return ticket;
  }

  usable({ state, expires, by }) {
    if (state === "denied") throw refused("APPROVAL_DENIED");
    if (["claimed", "burnt"].includes(state) || this.now >= expires) throw refused("CONFIRMATION_INVALID");
    if (by === "approver" && state !== "approved") throw refused("APPROVAL_PENDING");
  }

  validate(tool, text, way) {
    let sent;
    try {
      sent = read(text);
    } catch (error) {
      throw error instanceof Malformed ? refused("VALIDATION_ERROR") : error;
    }
    const args = clamped(tool, sent);
    if (![sent, args].every((value) => fits(tool.schema ?? true, value))) throw refused("VALIDATION_ERROR");
    way.args = args;
    const changed = Object.keys(args).filter((field) => !same(args[field], sent[field]));
    if (changed.length) way.clamped = changed.map((field) => ({ field }));
    return args;
  }

  allows(caller, tool, args, channel) {
    const rules = this.rules.filter((rule) => {
      const named = rule.tool === undefined || (rule.tool.endsWith("*") ? tool.name.startsWith(rule.tool.slice(0, -1)) : tool.name === rule.tool);
      const value = rule.at_least && args[rule.at_least.field];
      const doubtful = value !== undefined && value !== null && rule.effect === "deny";
      return named && (rule.principal ?? principal(caller)) === principal(caller) && (rule.channel ?? caller.channel) === caller.channel &&
        (!rule.at_least || (isNumber(value) ? value >= rule.at_least.value : doubtful));
    });
    const { require_auth: asks = true, require_rule: ruled, block_mutating: blocks } = channel ?? { block_mutating: true };
    const permits = rules.filter((rule) => !rule.scopes || rule.scopes.some((scope) => holds(caller, scope)));
    if (asks && principal(caller) === null) return false;
    if (tool.scopes?.length && !tool.scopes.some((scope) => holds(caller, scope))) return false;
    if (rules.some((rule) => rule.effect === "deny")) return false;
    if ((rules.length || ruled) && !permits.length) return false;
    return !(blocks && tool.mutating) || (channel !== undefined && permits.some((rule) => rule.overrides_block));
  }

  // Budgets: when everything that was spent has come back.

  account(caller, tool) {
    return JSON.stringify([caller.tenant ?? null, principal(caller), caller.channel, tool]);
  }

  spend(quota, account, cost, takes) {
    if (!quota) return true;
    const until = Math.max(this.debts.get(account) ?? 0, this.now) + (cost * quota.window_ms) / quota.limit;
    const free = until - this.now <= quota.window_ms;
    if (free && takes) this.debts.set(account, until);
    return free;
  }

  charge(way, tool) {
    const { caller, mode } = way.call;
    const [cost, account] = [tool.mutating ? 5 : 1, this.account(caller, tool.name)];
    const spend = (takes) => () => this.spend(this.world.quota, account, cost, takes);
    const free = mode === "plan" ? spend(false)() : this.answer("charge", { cost }, spend(true), new End("STORE_UNAVAILABLE"));
    if (!free) throw new End("RATE_LIMITED");
    if (mode !== "plan") way.paid = { cost, account, at: this.now };
  }

  giveBack({ paid: { cost, account, at } }) {
    const unit = this.world.quota.window_ms / this.world.quota.limit;
    // Time has given back a part of it already.
    const left = Math.max(cost * unit - (this.now - at), 0);
    this.debts.set(account, this.debts.get(account) - Math.min((cost - 1) * unit, left));
  }

  plan(tool, args, by) {
    const { name, mutating = false, scopes = [], timeout_ms: limit = 30_000 } = tool;
    return { tool: name, mutating, args, requires_confirmation: by !== "nobody", scopes_required: scopes, timeout: limit / 1000 };
  }

  /** Who confirms: whoever is asked for by the stricter of tool and channel. */
  confirmedBy(tool, channel) {
    let by = tool.confirm ?? "nobody";
    if (by === "nobody" && channel.confirm_mutating && tool.mutating) by = "caller";
    return by === "caller" && channel.confirm_by_approver ? "approver" : by;
  }

  confirm(way, tool, text, ticket, by) {
    const down = new End("STORE_UNAVAILABLE");
    if (ticket) {
      this.answer("redeem", {}, () => { this.usable(ticket); ticket.state = "claimed"; }, down);
      if (by === "approver" && ticket.by !== "approver") throw refused("CONFIRMATION_INVALID");
      way.confirmedBy = ticket.by === "approver" ? "approver" : "self";
      return;
    }
    if (by === "nobody") return;
    const issue = () => {
      if (by === "approver" && !this.world.approvers) throw new End("NO_APPROVER");
      const { caller } = way.call;
      const made = {
        by, text, owner: identity(caller), tenant: caller.tenant ?? null, requester: principal(caller), definition: definition(tool),
        scope: approverScope(tool), expires: this.now + (this.world.ttl_ms ?? 60_000), state: "pending",
      };
      const [token, approval] = [randomBytes(16).toString("hex"), randomBytes(16).toString("hex")];
      this.tickets.set(token, made);
      this.approvals.set(approval, made);
      return {
        requires_confirmation: true, confirm_token: token, expires_at: String(made.expires),
        approval_id: by === "approver" ? approval : undefined,
      };
    };
    throw answered(this.answer("issue", {}, issue, down), "confirmation");
  }

  decide({ approval, verdict, approver }) {
    const ticket = this.approvals.get(approval);
    const counts = ticket?.by === "approver" && principal(approver) !== null && ticket.tenant === (approver.tenant ?? null) &&
      ticket.requester !== principal(approver) && holds(approver, ticket.scope) && ticket.state === "pending" && this.now < ticket.expires;
    if (counts) ticket.state = verdict === "approve" ? "approved" : "denied";
    return counts ?? false;
  }

  intercept(tool, args) {
    for (const { name, tool: about, says } of this.world.interceptors ?? []) {
      this.comeTo("intercept", { by: name, args }, () => {});
      if ((about !== undefined && about !== tool.name) || says === "continue") continue;
      if (says === "hang") this.now += 1001;
      if (!isObject(says)) throw new End("VETOED", { kind: "blocked" });
      throw fits(tool.output_schema ?? true, says.answer) ? answered(says.answer, undefined, { served: true }) : new End("OUTPUT_INVALID");
    }
  }

  execute(tool, args) {
    this.comeTo("execute", { args }, () => { this.effects += 1; });
    const { body = "echo", timeout_ms: limit = 30_000 } = tool;
    const failed = (code, effect) => new End(code, { effect, started: true });
    if (body.fail !== undefined || body.panic !== undefined) throw failed("INTERNAL_ERROR", "unknown");
    if (body.hang !== undefined) this.now += Math.min(body.hang, limit);
    if (body.hang >= limit) throw failed("TIMEOUT", "unknown");
    const data = isObject(body) && Object.hasOwn(body, "return") ? body.return : args;
    if (!fits(tool.output_schema ?? true, data)) throw failed("OUTPUT_INVALID", "done");
    return data;
  }

  record(kind, { call, args, confirmedBy, clamped: changed }, code, effect) {
    return {
      kind, request_id: call.id, tool: call.tool, channel: call.caller.channel, principal: principal(call.caller), code, effect,
      args: args ?? undefined, confirmed_by: confirmedBy ?? undefined, clamped: changed,
    };
  }
}

// --- The adapter.

function happen(gate, what, value) {
  switch (what) {
    case "call":
      try {
        return gate.seen({ outcome: gate.call(value) });
      } catch (error) {
        if (error instanceof Killed) return gate.seen({ killed: true });
        throw error;
      }
    case "decide": return gate.seen({ decided: gate.decide(value) });
    case "advance": gate.now += value; break;
    case "rewind": break; // Its time is not the wall's.
    case "rule": gate.rules.push(value); break;
    case "define": gate.tools.set(value.name, value); break;
    case "fault": gate.faults.push(value); break;
    // What this gate keeps is in its stores: there is nothing else that could be lost.
    case "kill": if (value.at) gate.kills.push(value); break;
    default: throw new Error(`there is no event ${what}`);
  }
  return gate.seen({});
}

let gate = null;
for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const [[what, value]] = Object.entries(parse(line, Infinity));
    if (what === "bye") break;
    if (what === "hello" && value.protocol === 1) {
      const compares = { codes: true, effect: true, transcript: TRANSCRIPT, records: "full" };
      answer = { declare: { protocol: 1, name: "a gate in JavaScript", version: "1", supports: SUPPORTS, compares } };
    } else if (what === "world") {
      gate = new Gate(value.world);
      answer = { ready: {} };
    } else if (what === "event") {
      const [[event, about]] = Object.entries(value);
      answer = { seen: happen(gate, event, about) };
    } else {
      throw new Error(`only protocol 1 is known here, and no ${what}`);
    }
  } catch (error) {
    answer = { error: String(error.stack ?? error) };
  }
  process.stdout.write(`${write(answer)}\n`);
}
