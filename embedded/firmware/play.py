"""Plays a whole day of the device in QEMU and checks it: calls of the agent, decisions of the operator, the log at its end.

usage: play.py VALVE.elf LOG [CALLGATE]

Holds the program to its budget of memory (budget.json). Writes the log that the device kept to LOG, and has `callgate audit verify` look at it, whole and with each of some faults, where
CALLGATE names that program. Exit status 0 when everything was as it has to be.
"""

import json
import os
import subprocess
import sys
import time

from memory import over_budget, sections
from qemu import Device

checked = 0


def check(holds, what, seen):
    global checked
    checked += 1
    if not holds:
        sys.exit(f"FAILED: {what}\n  seen: {json.dumps(seen) if not isinstance(seen, str) else seen}")


def says(outcome, what, *, code=None, effect="none", kind=None, data=None):
    """The outcome has this code (none for a success), effect, type and data."""
    meta = outcome.get("meta", {})
    check(meta.get("code") == code and outcome["success"] == (code is None), f"{what}: code {code}", outcome)
    check(meta.get("effect") == effect, f"{what}: effect {effect}", outcome)
    if kind is not None:
        check(meta.get("type") == kind, f"{what}: type {kind}", outcome)
    for name, value in (data or {}).items():
        check(outcome["data"].get(name) == value, f"{what}: data.{name} is {value}", outcome)
    return outcome


class Agent:
    def __init__(self, line):
        self.line, self.count = line, 0

    def call(self, tool, arguments=None, **more):
        self.count += 1
        call = {"id": f"c{self.count}", "tool": tool, "arguments": arguments or {}, **more}
        return self.line.ask(call)

    def raw(self, arguments, tool="valve.move"):
        """A call whose arguments are this very text."""
        self.count += 1
        return self.line.ask('{"id":"c%d","tool":"%s","arguments":%s}' % (self.count, tool, arguments))


def day(device):
    agent, panel = Agent(device.agent), device.panel
    now = time.monotonic

    # What only reads needs nobody.
    says(agent.call("sensor.read"), "a reading", effect="done", data={"tenths_of_a_degree": 235})
    says(agent.call("device.status"), "a status", effect="done", data={"open_percent": 0})

    # Before the operator is there, nobody can say yes.
    says(agent.call("valve.move", {"percent": 40}), "no operator yet", code="NO_APPROVER")
    check("error" in panel.ask("{nonsense"), "nonsense is told so", "")
    check("error" in panel.ask({"seed": "short"}), "a short seed is refused", "")
    check(panel.ask({"seed": "0123456789abcdef0123456789abcdef"}) == {"seeded": True}, "the operator is there", "")
    check(panel.ask({"pending": {}}) == {"pending": []}, "nothing is pending", "")

    # Ask, be seen, be approved, be redeemed: once.
    asked = says(
        agent.call("valve.move", {"percent": 250, "reason": "spring", "pin": "hunter2-hunter2"}),
        "a question",
        kind="confirmation",
        data={"requires_confirmation": True, "confirm_by": "approver"},
    )
    token = asked["data"]["confirm_token"]
    redeem = {"token": token}
    says(agent.call("valve.move", **redeem), "not decided yet", code="APPROVAL_PENDING")
    pending = panel.ask({"pending": {}})["pending"]
    check(len(pending) == 1 and pending[0]["by"] == "agent", "one question is pending", pending)
    summary = pending[0]["summary"]
    check('"percent":90' in summary and "clamped: " in summary, "the operator sees what will run", summary)
    check("hunter2" not in summary, "and no secret", summary)
    check(panel.ask({"approve": pending[0]["ticket"]}) == {"decided": True}, "approved", "")
    check(panel.ask({"deny": pending[0]["ticket"]})["decided"] is False, "the first decision stands", "")
    # What is sent beside a token is inert; the valve turns, and the operator is served meanwhile.
    agent.line.send(json.dumps({"id": "turn", "tool": "valve.move", "arguments": {"percent": 1}, **redeem}))
    check(panel.ask({"pending": {}}) == {"pending": []}, "the operator is served while the valve turns", "")
    moved = json.loads(agent.line.receive())
    says(moved, "moved", effect="done", data={"open_percent": 90})
    check(moved["meta"]["confirmed_by"] == "approver" and moved["meta"]["clamped"], "approved and clamped", moved)
    says(agent.call("valve.move", **redeem), "a token serves once", code="CONFIRMATION_INVALID")
    says(agent.call("device.status"), "it is open", effect="done", data={"open_percent": 90})

    # A denial stays one, and a question that nobody answers is over.
    asked = says(agent.call("valve.move", {"percent": 0}), "another question", kind="confirmation")
    panel.ask({"deny": panel.ask({"pending": {}})["pending"][0]["ticket"]})
    denied = {"token": asked["data"]["confirm_token"]}
    says(agent.call("valve.move", **denied), "denied", code="APPROVAL_DENIED")
    asked = says(agent.call("valve.move", {"percent": 5}), "a third question", kind="confirmation")
    ticket = panel.ask({"pending": {}})["pending"][0]["ticket"]
    until = now() + 600
    while panel.ask({"pending": {}})["pending"]:
        check(now() < until, "a question ends by itself", "")
        time.sleep(0.5)
    check(panel.ask({"approve": ticket})["decided"] is False, "no answer counts after the deadline", "")
    late = {"token": asked["data"]["confirm_token"]}
    says(agent.call("valve.move", **late), "too late", code="CONFIRMATION_INVALID")

    # What is wrong is refused before anything else, and a secret is told nowhere.
    # The last two are what a small gate refuses and another one takes, or refuses later.
    small = ['{"percent":10.0}', '{"percent":' + "[" * 8 + "]" * 8 + "}"]
    for wrong in ['{"percent":1,"percent":2}', '{"percent":"1"}', '{"percent":1,"speed":2}', "[1]", *small]:
        refused = agent.raw(wrong)
        # What the reader refuses makes the whole line none, wherever it stands.
        check("error" in refused and refused.get("success") is not True, f"{wrong} is refused", refused)
    says(agent.call("valve.open"), "no such tool", code="TOOL_NOT_FOUND")
    says(agent.call("sensor.read", {"sensor": 2}), "a tool that fails", code="INTERNAL_ERROR", effect="unknown")
    planned = says(agent.call("valve.move", {"percent": 10}, plan=True), "a plan")
    check(planned["data"]["plan"]["args"] == {"percent": 10}, "a plan says what would run", planned)
    check("error" in agent.line.ask("not JSON"), "a line that is none is told so", "")
    check("error" in agent.line.ask("x" * 2000), "a line that is too long is told so", "")

    # Too much is too much, in the limiter and then for the whole session.
    limited = [agent.call("sensor.read") for _ in range(40)]
    check(any(one["meta"].get("code") == "RATE_LIMITED" for one in limited), "too many calls are limited", limited[-1])
    spent = agent.call("sensor.read")
    for _ in range(60):
        if spent["meta"].get("code") == "MAX_CALLS_EXCEEDED":
            break
        spent = agent.call("sensor.read")
    says(spent, "the session is spent", code="MAX_CALLS_EXCEEDED")


def dump(panel):
    """The lines of the log, and where they begin and end."""
    panel.send('{"dump":{}}')
    lines = []
    while not (line := panel.receive()).startswith('{"dumped"'):
        lines.append(line)
    return lines, json.loads(line)["dumped"]


def verify(callgate, path, *arguments):
    run = subprocess.run([callgate, "audit", "verify", path, *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def main():
    elf, path, *callgate = sys.argv[1:]
    with Device(elf) as device:
        day(device)
        lines, dumped = dump(device.panel)
        stack = device.stack.deepest()
    records = [json.loads(line) for line in lines]
    check(dumped["lines"] == len(lines) and dumped["overwritten"] > 0, "the ring has wrapped", dumped)
    check(records[0]["seq"] == dumped["overwritten"] + 1, "the first line tells what is missing", records[0])
    check(all("hunter2" not in line and "4711" not in line for line in lines), "no secret is in the log", "")
    with open(path, "w", encoding="utf-8") as log:
        log.write("".join(line + "\n" for line in lines))
    if callgate:
        where = ["--after", dumped["after"], "--head", dumped["head"]]
        status, said = verify(callgate[0], path, *where)
        check(status == 0 and "intact" in said, "callgate audit verify takes the log", said)
        status, said = verify(callgate[0], path, "--head", dumped["head"])
        check(status == 1 and "BROKEN" in said, "without its beginning it is no log", said)
        faults = {
            "a changed line": [lines[0].replace('"effect":"none"', '"effect":"done"', 1), *lines[1:]],
            "a line that is missing": lines[:1] + lines[2:],
            "an end that is missing": lines[:-1],
        }
        for what, faulty in faults.items():
            with open(path + ".bad", "w", encoding="utf-8") as log:
                log.write("".join(line + "\n" for line in faulty))
            status, said = verify(callgate[0], path + ".bad", *where)
            check(status == 1, f"{what} shows", said)
    flash, static = sections(elf)
    taken = {"flash": flash, "static": static, "stack": stack}
    with open(os.path.join(os.path.dirname(__file__), "budget.json"), encoding="utf-8") as file:
        grown = over_budget("the device", taken, json.load(file)["valve"])
    check(not grown, grown, taken)
    print(f"the device takes {flash} bytes of flash, {static} of static RAM, {stack} of stack")
    print(f"{checked} checks held; the log has {len(lines)} lines, {dumped['overwritten']} were overwritten")


main()
