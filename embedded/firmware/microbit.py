"""Plays with the device on a micro:bit in QEMU, which has 16 KiB of RAM and no more: calls over its one line, decisions by its buttons.

usage: microbit.py MICROBIT.elf

Holds the program to its budget of memory (budget.json). Exit status 0 when everything was as it has to be.
"""

import json
import os
import socket
import sys
import tempfile

from memory import PAINT, command, over_budget, patiently, sections
from qemu import Line, start

# As memory/nrf51822.x has it.
STACK, STACK_SIZE, RAM = 0x2000_0000, 10 * 1024, 0x2000_2800
# The pins of the buttons, which are high until one is pressed.
BUTTONS = {"A": 17, "B": 26}


class Door:
    """The door that QEMU has for tests: to the buttons and to the memory, which is the chip's own and no one else's."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rw")

    def ask(self, command):
        print(command, file=self.lines, flush=True)
        said = self.lines.readline().split()
        if not said or said[0] != "OK":
            raise OSError(f"{command}: {said}")
        return said[1:]

    def paint(self):
        self.ask(f"memset {STACK:#x} {STACK_SIZE:#x} {PAINT:#x}")

    def deepest(self):
        (memory,) = self.ask(f"read {STACK:#x} {STACK_SIZE:#x}")
        return len(bytes.fromhex(memory.removeprefix("0x")).lstrip(bytes([PAINT])))

    def level(self, pin, level):
        self.ask(f"set_irq_in /machine/nrf51 unnamed-gpio-in {pin} {level}")

    def press(self, button, line):
        """Until the device has seen it: it looks at its buttons before it reads the next line."""
        for level in (0, 1):
            self.level(BUTTONS[button], level)
            line.ask({"id": "look", "tool": "device.status"})


def check(holds, what, seen):
    if not holds:
        sys.exit(f"FAILED: {what}\n  seen: {seen}")


def day(line, door):
    def move(percent, **more):
        return line.ask({"id": "m", "tool": "valve.move", "arguments": {"percent": percent}, **more})

    def code(outcome):
        return outcome["meta"].get("code")

    said = line.ask({"id": "s", "tool": "device.status"})
    check(said["data"]["open_percent"] == 0, "the valve is shut", said)
    door.press("A", line)
    asked = move(40)
    token = {"token": asked["data"]["confirm_token"]}
    check(code(move(1, **token)) == "APPROVAL_PENDING", "a button that was pressed before decides nothing", asked)
    door.press("A", line)
    said = move(1, **token)
    check(said["success"] and said["data"] == {"open_percent": 40}, "approved by the left button", said)
    check(said["meta"]["confirmed_by"] == "approver", "by an approver", said)
    token = {"token": move(50)["data"]["confirm_token"]}
    door.press("B", line)
    said = move(1, **token)
    check(code(said) == "APPROVAL_DENIED", "denied by the right button", said)
    tokens = [{"token": move(percent)["data"]["confirm_token"]} for percent in (60, 70)]
    door.press("A", line)
    for token in tokens:
        said = move(1, **token)
        check(code(said) == "APPROVAL_PENDING", "of two questions a button decides none", said)


def main():
    elf = sys.argv[1]
    with tempfile.TemporaryDirectory() as place:
        agent, qtest, qmp = (os.path.join(place, name) for name in ("agent", "qtest", "qmp"))
        # It stands still until the stack is painted.
        arguments = ["-S", "-kernel", elf, "-serial", f"unix:{agent},server=on,wait=on"]
        arguments += ["-qtest", f"unix:{qtest},server=on,wait=off", "-qtest-log", "none"]
        arguments += ["-qmp", f"unix:{qmp},server=on,wait=off"]
        process = start(arguments, machine="microbit")
        try:
            line = Line(agent)
            # Who was not there when it began to listen is heard when it has begun.
            door = patiently(lambda: Door(qtest))
            door.paint()
            for pin in BUTTONS.values():
                door.level(pin, 1)
            patiently(lambda: command(qmp, {"execute": "cont"}))
            line.until_ready()
            day(line, door)
            deepest = door.deepest()
        finally:
            process.kill()
            process.wait()
    flash, static = sections(elf, RAM)
    taken = {"flash": flash, "static": static, "stack": deepest}
    with open(os.path.join(os.path.dirname(__file__), "budget.json"), encoding="utf-8") as file:
        grown = over_budget("the micro:bit's program", taken, json.load(file)["microbit"])
    check(not grown, grown, taken)
    print(f"the micro:bit takes {flash} bytes of flash, {static} of static RAM, {deepest} of stack")


main()
