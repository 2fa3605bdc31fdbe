#!/usr/bin/env python3
"""A gate of its own, and its adapter: the conformance protocol over standard input and output.

Written from PROTOCOL.md and the numbered invariants, with nothing but the standard library. It is small and slow, and meant to be
read: one class for what a gate keeps, one method for each stage.

    callgate conformance run -- python3 subject.py
"""

import hmac
import json
import random
import re
import sys

LABEL = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
PRINTABLE = re.compile(r"[ -~]{1,256}")
SCOPE = re.compile(r'[!#-+\--\[\]-~]{1,128}')
INTERCEPTOR_LIMIT_MS = 1000
MAX_DEPTH = 64
MAX_BYTES = 1 << 20

FEATURES = [
    "schema", "clamp", "channels", "rules", "rule_change", "quota", "attempts", "plan", "confirm", "approvals", "intercept",
    "listen", "output_schema", "clock", "wall_clock", "define", "tenants", "sessions", "secrets", "faults", "batch", "kill",
    "kill_within",
]
POINTS = ["authorize", "charge", "issue", "redeem", "intercept", "intent", "execute", "record"]


class Stop(Exception):
    """A call that ends before its body has run to its end."""

    def __init__(self, code, effect="none", kind="error", refusal=False, started=False):
        super().__init__(code)
        self.code, self.effect, self.kind = code, effect, kind
        self.refusal, self.started, self.data = refusal, started, None


def refused(code):
    """A stop that the caller is to blame for: it costs an attempt."""
    return Stop(code, refusal=True)


class Answer(Exception):
    """A call that ends well without having run: a plan, a question, an interceptor's answer."""

    def __init__(self, data, kind=None, served=False):
        super().__init__()
        self.data, self.kind, self.served = data, kind, served


class Killed(BaseException):
    """The gate is killed here. What it keeps in its stores and its log stays; nothing else happens to the call."""


class StoreDown(Exception):
    """Somebody whom the gate asks does not answer."""


# ---------------------------------------------------------------------------------------------------------------- arguments


class NotStrict(ValueError):
    pass


def no_duplicates(pairs):
    found = {}
    for key, value in pairs:
        if key in found:
            raise NotStrict("a key is there twice")
        found[key] = value
    return found


def exact_integer(text):
    number = int(text)
    if not -(2**63) <= number < 2**64:
        raise NotStrict("an integer that does not fit 64 bits")
    return number


def exact_float(text):
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise NotStrict("a number out of range")
    return number


def no_constant(_):
    raise NotStrict("no JSON number")


def depth(value):
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def too_deep(text):
    """Counts brackets outside of strings, so that the parser never sees what would exhaust its stack."""
    level = deepest = 0
    inside = escaped = False
    for c in text:
        if inside:
            inside = escaped or c != '"'
            escaped = not escaped and c == "\\"
        elif c == '"':
            inside = True
        elif c in "[{":
            level += 1
            deepest = max(deepest, level)
        elif c in "]}":
            level -= 1
    return deepest > MAX_DEPTH


def read(text):
    """One JSON object, read strictly; no text at all is the empty object."""
    if text == "":
        return {}
    if len(text.encode()) > MAX_BYTES or too_deep(text):
        raise refused("VALIDATION_ERROR")
    try:
        value = json.loads(
            text, object_pairs_hook=no_duplicates, parse_int=exact_integer, parse_float=exact_float, parse_constant=no_constant
        )
    except ValueError:
        raise refused("VALIDATION_ERROR") from None
    if not isinstance(value, dict) or not whole(value):
        raise refused("VALIDATION_ERROR")
    return value


def whole(value):
    """Whether no text holds half of a pair, which no encoding can carry."""
    return not any("\ud800" <= c <= "\udfff" for c in json.dumps(value, ensure_ascii=False))


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": is_number,
    "integer": lambda v: is_number(v) and v == int(v),
}


def same(one, other):
    """Equality of JSON, where True is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True) or (
        is_number(one) and is_number(other) and one == other
    )


def fits(schema, value):
    if not isinstance(schema, dict):
        return schema is not False
    types = schema.get("type")
    if types is not None:
        types = types if isinstance(types, list) else [types]
        if not any(TYPES[name](value) for name in types):
            return False
    if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
        return False
    if is_number(value) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return False
    if isinstance(value, str) and not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    if isinstance(value, list):
        return all(fits(schema.get("items", True), item) for item in value)
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", [])) and all(
            fits(known.get(name, others), member) for name, member in value.items()
        )
    return True


def clamp(tool, args):
    args = dict(args)
    for bound in tool.get("clamps", []):
        value = args.get(bound["field"])
        if isinstance(value, str) and "max_length" in bound:
            args[bound["field"]] = value[: bound["max_length"]]
        if not is_number(value):
            continue
        if "min" in bound and value < bound["min"]:
            args[bound["field"]] = bound["min"]
        elif "max" in bound and value > bound["max"]:
            args[bound["field"]] = bound["max"]
    return args


def less(value, ways):
    """A value less the secrets to which ways of names lead."""
    if [] in ways:
        return "***"
    if isinstance(value, dict):
        return {name: less(member, [way[1:] for way in ways if way[0] in (name, "*")]) for name, member in value.items()}
    if isinstance(value, list):
        return [less(item, [way[1:] for way in ways if way[0] in (str(at), "*")]) for at, item in enumerate(value)]
    return value


# ------------------------------------------------------------------------------------------------------------------- callers


def principal(caller):
    return caller.get("principal") or None


def holds(caller, scope):
    return any(held in ("*", scope) for held in caller.get("scopes", []))


def identity(caller):
    return (caller.get("tenant"), principal(caller), caller["channel"], caller.get("session"))


def approver_scope(tool):
    """The scope that an approver needs. Where only the channel asks for one, the tool has no say in it."""
    return tool.get("approver_scope", "approve") if tool.get("confirm") == "approver" else "approve"


def definition(tool):
    """Everything of a tool but its body."""
    parts = {**tool, "approver_scope": approver_scope(tool), "body": None}
    return json.dumps(parts, sort_keys=True)


class Ticket:
    """What a token stands for."""

    def __init__(self, call, tool, text, by, now, ttl):
        self.owner, self.requester = identity(call["caller"]), (call["caller"].get("tenant"), principal(call["caller"]))
        self.tool, self.text, self.by = definition(tool), text, by
        self.scope = approver_scope(tool)
        self.expires, self.state = now + ttl, "pending"


# ---------------------------------------------------------------------------------------------------------------------- gate


class Gate:
    def __init__(self, world, seed):
        self.world, self.random = world, random.Random(seed)
        self.tools = {tool["name"]: tool for tool in world["tools"]}
        self.channels = {channel["name"]: channel for channel in world.get("channels", [])}
        self.rules = list(world.get("rules", []))
        self.now = 0
        self.tickets, self.approvals, self.debts = {}, {}, {}
        self.faults, self.kills = [], []
        self.forget()

    # What the harness is shown.

    def forget(self):
        self.marks, self.effects, self.records = [], 0, []

    def seen(self, **more):
        seen = {"marks": self.marks, "effects": self.effects, "records": self.records, **more}
        self.forget()
        return seen

    def ask(self, point, do=lambda: None, **more):
        """Comes to a point and does what is done there, unless a fault is due."""
        kill = self.come_to(point, **more)
        if kill:
            try:
                do()
            except Stop:
                pass  # Nobody hears the answer.
            raise Killed
        due = next((fault for fault in self.faults if fault["at"] == point), None)
        if due is None:
            return do()
        self.faults.remove(due)
        if due["how"] == "lost":
            try:
                do()
            except Stop:
                pass  # Whatever the answer was, nobody hears it.
        raise StoreDown

    def come_to(self, point, **more):
        """Comes to a point; gives the kill that is due as soon as what is done there is done."""
        self.marks.append({"at": point, **more})
        kill = next((kill for kill in self.kills if kill["at"] == point), None)
        if kill is None:
            return None
        self.kills.remove(kill)
        if not kill.get("done"):
            raise Killed
        return kill

    # One call, from its receipt to its record.

    def call(self, call):
        trail = {"args": None, "secrets": [], "paid": None, "confirmed_by": None}
        success, data, effect, code, kind, refusal, started = True, None, "none", None, None, False, False
        try:
            data, effect, started = self.run(call, trail), "done", True
        except Answer as answer:
            data, kind, trail["served"] = answer.data, answer.kind, answer.served
        except Stop as stop:
            success, code, kind, effect = False, stop.code, stop.kind, stop.effect
            refusal, started = stop.refusal, stop.started
        told = code
        if call.get("mode") != "plan":
            self.refund(call, trail, started or kind == "confirmation")
            if refusal and not self.attempt(call["caller"]):
                told, kind = "RATE_LIMITED", "error"
        meta = {
            "tool": call["tool"], "took_ms": 0, "request_id": call["id"], "channel": call["caller"]["channel"],
            "principal": principal(call["caller"]), "effect": effect,
        }
        if told:
            meta["code"] = told
        if told == "RATE_LIMITED":
            meta["retry_after_seconds"] = 60
        if kind:
            meta["type"] = kind
        if kind == "blocked":
            meta["blocked_by_rule"] = True
        if kind == "confirmation":
            meta["requires_confirmation"] = True
        if trail["confirmed_by"]:
            meta["confirmed_by"] = trail["confirmed_by"]
        if trail.get("served"):
            meta["cache_served"] = True
        if trail["args"] is not None and trail.get("clamped"):
            meta["clamped"] = trail["clamped"]
        record = self.record_of("terminal", call, trail, effect, code)
        try:
            self.ask("record", lambda: self.records.append(record))
        except StoreDown:
            meta["audit_pending"] = True
        error = None if success else "the call ended as " + told
        return {"success": success, "data": data, "message": None, "error": error, "meta": meta}

    def run(self, call, trail):
        tool, ticket = self.resolve(call)
        text = ticket.text if ticket else call["arguments"]
        trail["secrets"] = tool.get("secrets", [])
        args = self.validate(tool, text, trail)
        channel = self.authorize(call["caller"], tool, args)
        if not ticket:
            trail["paid"] = self.charge(call, tool)
        if call.get("mode") == "plan":
            raise Answer({"plan": self.plan(tool, channel, self.shown(args, trail))})
        self.confirm(call, tool, channel, ticket, text, trail)
        self.intercept(tool, args)
        self.announce(call, tool, trail)
        return self.execute(tool, args)

    def resolve(self, call):
        caller = call["caller"]
        labels = [caller["channel"], *(caller[name] for name in ("tenant", "session") if caller.get(name) is not None)]
        texts = [call["id"], *([principal(caller)] if principal(caller) else [])]
        well_named = (
            all(LABEL.fullmatch(name) for name in labels)
            and all(PRINTABLE.fullmatch(name) for name in texts)
            and all(SCOPE.fullmatch(name) for name in caller.get("scopes", []))
        )
        if not well_named:
            raise refused("VALIDATION_ERROR")
        tool = self.tools.get(call["tool"])
        if tool is None:
            raise refused("TOOL_NOT_FOUND")
        if call.get("token") is None:
            return tool, None
        ticket = self.find(call["token"])
        if ticket is None:
            raise refused("CONFIRMATION_INVALID")
        if ticket.owner != identity(caller) or ticket.tool != definition(tool):
            # Presented for something else: burnt. A plan changes nothing.
            if call.get("mode") != "plan" and ticket.state in ("pending", "approved"):
                ticket.state = "burnt"
            raise refused("CONFIRMATION_INVALID")
        self.usable(ticket)
        return tool, ticket

    def find(self, token):
        """Looks at every token, so that the time it takes says nothing of them."""
        found = None
        for known, ticket in self.tickets.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                found = ticket
        return found

    def usable(self, ticket):
        if ticket.state == "denied":
            raise refused("APPROVAL_DENIED")
        if ticket.state in ("claimed", "burnt") or self.now >= ticket.expires:
            raise refused("CONFIRMATION_INVALID")
        if ticket.by == "approver" and ticket.state != "approved":
            raise refused("APPROVAL_PENDING")

    def validate(self, tool, text, trail):
        schema, raw = tool.get("schema", True), read(text)
        if not fits(schema, raw):
            raise refused("VALIDATION_ERROR")
        args = clamp(tool, raw)
        if not fits(schema, args):
            raise refused("VALIDATION_ERROR")
        trail["args"] = args
        trail["clamped"] = [name for name in args if not same(args[name], raw[name]) and name not in trail["secrets"]]
        return args

    def authorize(self, caller, tool, args):
        channel = self.channels.get(caller["channel"])
        try:
            allowed = self.ask("authorize", lambda: self.allows(caller, tool, args, channel), args=args)
        except StoreDown:
            allowed = False
        if not allowed:
            raise refused("FORBIDDEN")
        return channel or {}

    def allows(self, caller, tool, args, channel):
        known, channel = channel is not None, channel or {"block_mutating": True}
        if channel.get("require_auth", True) and principal(caller) is None:
            return False
        if tool.get("scopes") and not any(holds(caller, scope) for scope in tool["scopes"]):
            return False
        about = [rule for rule in self.rules if self.matches(rule, caller, tool, args)]
        if any(rule["effect"] == "deny" for rule in about):
            return False
        permits = [
            rule for rule in about if rule.get("scopes") is None or any(holds(caller, scope) for scope in rule["scopes"])
        ]
        if (about or channel.get("require_rule")) and not permits:
            return False
        lifted = known and any(rule.get("overrides_block") for rule in permits)
        return lifted or not (channel.get("block_mutating") and tool.get("mutating"))

    @staticmethod
    def matches(rule, caller, tool, args):
        pattern = rule.get("tool", "*")
        named = tool["name"].startswith(pattern[:-1]) if pattern.endswith("*") else tool["name"] == pattern
        bound, large = rule.get("at_least"), True
        if bound:
            value = args.get(bound["field"])
            # In doubt a deny counts, and an allow does not.
            large = value >= bound["value"] if is_number(value) else value is not None and rule["effect"] == "deny"
        return (
            named
            and rule.get("principal", principal(caller)) == principal(caller)
            and rule.get("channel", caller["channel"]) == caller["channel"]
            and large
        )

    # Budgets. A debt is the moment at which everything that was spent has come back.

    @staticmethod
    def account(caller, tool):
        return (caller.get("tenant"), principal(caller), caller["channel"], tool)

    def spend(self, quota, account, cost, take=True):
        unit = quota["window_ms"] // quota["limit"]
        until = max(self.debts.get(account, 0), self.now) + cost * unit
        free = until - self.now <= quota["limit"] * unit
        if free and take:
            self.debts[account] = until
        return free

    def charge(self, call, tool):
        quota = self.world.get("quota")
        if quota is None:
            return None
        cost, account = 5 if tool.get("mutating") else 1, self.account(call["caller"], tool["name"])
        if call.get("mode") == "plan":
            free = self.spend(quota, account, cost, take=False)
        else:
            try:
                free = self.ask("charge", lambda: self.spend(quota, account, cost), cost=cost)
            except StoreDown:
                raise Stop("STORE_UNAVAILABLE") from None
        if not free:
            raise Stop("RATE_LIMITED")
        return None if call.get("mode") == "plan" else (cost, self.now)

    def refund(self, call, trail, keeps):
        if trail["paid"] is None or keeps:
            return
        (cost, moment), quota = trail["paid"], self.world["quota"]
        unit, account = quota["window_ms"] // quota["limit"], self.account(call["caller"], call["tool"])
        # Time has given back a part of it already.
        outstanding = max(cost * unit - (self.now - moment), 0)
        self.debts[account] -= min((cost - 1) * unit, outstanding)

    def attempt(self, caller):
        quota = self.world.get("attempts")
        return quota is None or self.spend(quota, self.account(caller, None), 1)

    # Confirmation.

    @staticmethod
    def needed(tool, channel):
        asked = tool.get("confirm", "nobody")
        if asked == "nobody" and channel.get("confirm_mutating") and tool.get("mutating"):
            asked = "caller"
        if asked == "caller" and channel.get("confirm_by_approver"):
            asked = "approver"
        return asked

    def plan(self, tool, channel, args):
        return {
            "tool": tool["name"], "mutating": tool.get("mutating", False), "args": args,
            "requires_confirmation": self.needed(tool, channel) != "nobody", "scopes_required": tool.get("scopes", []),
            "timeout": tool.get("timeout_ms", 30000) / 1000,
        }

    def confirm(self, call, tool, channel, ticket, text, trail):
        by = self.needed(tool, channel)
        if ticket is None:
            if by != "nobody":
                self.question(call, tool, text, by)
            return
        try:
            self.ask("redeem", lambda: self.claim(ticket))
        except StoreDown:
            raise Stop("STORE_UNAVAILABLE") from None
        if by == "approver" and ticket.by != "approver":
            raise refused("CONFIRMATION_INVALID")
        trail["confirmed_by"] = "approver" if ticket.by == "approver" else "self"

    def claim(self, ticket):
        self.usable(ticket)
        ticket.state = "claimed"

    def question(self, call, tool, text, by):
        def issue():
            if by == "approver" and not self.world.get("approvers"):
                raise Stop("NO_APPROVER")
            token, approval = (f"{self.random.getrandbits(128):032x}" for _ in range(2))
            ticket = Ticket(call, tool, text, by, self.now, self.world.get("ttl_ms", 60000))
            self.tickets[token] = self.approvals[approval] = ticket
            return token, approval, ticket

        try:
            token, approval, ticket = self.ask("issue", issue)
        except StoreDown:
            raise Stop("STORE_UNAVAILABLE") from None
        data = {"requires_confirmation": True, "confirm_token": token, "expires_at": str(ticket.expires)}
        if by == "approver":
            data["approval_id"] = approval
        raise Answer(data, "confirmation")

    def decide(self, approval, verdict, approver):
        ticket = self.approvals.get(approval)
        if ticket is None or ticket.by != "approver" or principal(approver) is None:
            return False
        tenant, requester = ticket.requester
        if approver.get("tenant") != tenant or principal(approver) == requester or not holds(approver, ticket.scope):
            return False
        if ticket.state != "pending" or self.now >= ticket.expires:
            return False
        ticket.state = "approved" if verdict == "approve" else "denied"
        return True

    # Interception, intent, execution.

    def intercept(self, tool, args):
        for judge in self.world.get("interceptors", []):
            if self.come_to("intercept", by=judge["name"], args=args):
                raise Killed
            if judge.get("tool", tool["name"]) != tool["name"] or judge["says"] == "continue":
                continue
            if isinstance(judge["says"], dict):
                if not fits(tool.get("output_schema", True), judge["says"]["answer"]):
                    raise Stop("OUTPUT_INVALID")
                raise Answer(judge["says"]["answer"], served=True)
            if judge["says"] == "hang":
                self.now += INTERCEPTOR_LIMIT_MS + 1
            # A veto, or something of which nobody knows what it would have said.
            raise Stop("VETOED", kind="blocked")

    def announce(self, call, tool, trail):
        if not tool.get("mutating"):
            return
        record = self.record_of("intent", call, trail, "unknown", None)
        try:
            self.ask("intent", lambda: self.records.append(record))
        except StoreDown:
            raise Stop("AUDIT_UNAVAILABLE") from None

    def execute(self, tool, args):
        kill = self.come_to("execute", args=args)
        self.effects += 1
        if kill:
            raise Killed
        body, data = tool.get("body", "echo"), args
        if isinstance(body, dict):
            (what, value), limit = next(iter(body.items())), tool.get("timeout_ms", 30000)
            if what in ("fail", "panic"):
                raise Stop("INTERNAL_ERROR", "unknown", started=True)
            if what == "hang":
                self.now += min(value, limit)
                if value >= limit:
                    raise Stop("TIMEOUT", "unknown", started=True)
            else:
                data = value
        if not fits(tool.get("output_schema", True), data):
            raise Stop("OUTPUT_INVALID", "done", started=True)
        return data

    # Records.

    @staticmethod
    def shown(args, trail):
        ways = [way.split("/") for way in trail["secrets"]]
        return {name: less(value, [way[1:] for way in ways if way[0] in (name, "*")]) for name, value in args.items()}

    def record_of(self, kind, call, trail, effect, code):
        record = {
            "kind": kind, "request_id": call["id"], "tool": call["tool"], "channel": call["caller"]["channel"],
            "principal": principal(call["caller"]), "code": code, "effect": effect,
        }
        if trail["args"] is not None:
            record["args"] = self.shown(trail["args"], trail)
        if trail["confirmed_by"]:
            record["confirmed_by"] = trail["confirmed_by"]
        if trail.get("clamped"):
            record["clamped"] = trail["clamped"]
        return record


# ------------------------------------------------------------------------------------------------------------------- adapter

DECLARATION = {
    "protocol": 1, "name": "a gate in Python", "version": "1", "supports": FEATURES,
    "compares": {"codes": True, "effect": True, "transcript": POINTS, "records": "full"},
}


def happen(gate, event):
    (what, value), = event.items()
    if what == "call":
        try:
            return gate.seen(outcome=gate.call(value))
        except Killed:
            return gate.seen(killed=True)
    if what == "batch":
        outcomes = [gate.call(call) for call in value["calls"]]
        return gate.seen(outcomes=outcomes)
    if what == "decide":
        return gate.seen(decided=gate.decide(value["approval"], value["verdict"], value["approver"]))
    if what == "advance":
        gate.now += value
    elif what == "rule":
        gate.rules.append(value)
    elif what == "define":
        gate.tools[value["name"]] = value
    elif what == "fault":
        gate.faults.append(value)
    elif what == "kill" and "at" in value:
        gate.kills.append(value)
    elif what not in ("kill", "rewind"):  # Everything that this gate keeps is in its stores, and its time only passes.
        raise ValueError(f"no such event: {what}")
    return gate.seen()


def main():
    gate = None
    sys.stdin.reconfigure(encoding="utf-8")
    for line in sys.stdin:
        (what, value), = json.loads(line).items()
        if what == "bye":
            return
        try:
            if what == "hello":
                answer = {"declare": DECLARATION} if value["protocol"] == 1 else {"error": "only protocol 1 is known here"}
            elif what == "world":
                gate, answer = Gate(value["world"], value["seed"]), {"ready": {}}
            elif what == "event":
                answer = {"seen": happen(gate, value)}
            else:
                answer = {"error": f"no such request: {what}"}
        except Exception as error:  # Whatever breaks is told to the runner, and is no verdict.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
