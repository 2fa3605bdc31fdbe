"""What the gate costs on a microcontroller: flash and RAM beyond an empty program, the deepest stack, instructions for a call.

usage: measure.py DIRECTORY

The directory holds `measure-0`, `measure-1`, `measure-3` and `measure-10`. The stack is painted before the program starts and looked at when
it is done, both from outside. Instructions are counted by QEMU, which is told that each takes the same time, and read from the timer; a
loop of a known number of them says how long that is. Exit status 1 when a goal is missed: 32 KiB of flash and 4 KiB of RAM with three tools.
"""

import os
import sys
import tempfile

from memory import Stack, sections
from qemu import STACK, STACK_SIZE, Line, start

# `cortex_m::asm::delay(n)` runs a loop of two instructions n + 1 times.
DELAY = 2 * (100_000 + 1)
FLASH_GOAL, RAM_GOAL = 32 * 1024, 4 * 1024


def run(elf):
    """What the program says, line by line, and the deepest stack in bytes."""
    with tempfile.TemporaryDirectory() as place:
        agent, stack = os.path.join(place, "agent"), Stack(place, STACK, STACK_SIZE)
        arguments = ["-kernel", elf, "-icount", "shift=6,align=off,sleep=off", "-serial", f"unix:{agent},server=on,wait=on"]
        process = start(arguments + stack.arguments())
        try:
            line = Line(agent)
            line.until_ready()
            said = []
            while (text := line.receive()) != "done":
                said.append(text.split())
            return said, stack.deepest()
        finally:
            process.kill()
            process.wait()


def main():
    directory = sys.argv[1]
    measured = {}
    for count in (0, 1, 3, 10):
        elf = os.path.join(directory, f"measure-{count}")
        said, stack = run(elf)
        facts = {words[0] if words[0] != "call" else words[1]: [int(word) for word in words[1 + (words[0] == "call"):]] for words in said}
        measured[count] = (*sections(elf), stack, facts)
    flash_0, ram_0, stack_0, facts_0 = measured[0]
    print(f"empty program: {flash_0} bytes of flash, {ram_0} of static RAM, {stack_0} of stack")
    print("| tools | flash | static RAM | deepest stack | RAM | gate's state |")
    print("|---|---|---|---|---|---|")
    missed = False
    for count in (1, 3, 10):
        flash, ram, stack, facts = measured[count]
        flash, ram, stack = flash - flash_0, ram - ram_0, stack - stack_0
        print(f"| {count} | {flash} | {ram} | {stack} | {ram + stack} | {facts['gate'][0]} |")
        if count == 3:
            missed = flash > FLASH_GOAL or ram + stack > RAM_GOAL
    facts = measured[3][3]
    print(f"a call's state: {facts['state'][0]} bytes carried, {facts['state'][1]} as a parked step")
    print("| call, 3 tools | instructions | bytes of answer |")
    print("|---|---|---|")
    per = facts["delay"][0] / DELAY
    for name in ("plan", "clamp", "refuse", "malformed", "ask", "approve", "redeem", "used"):
        ticks, size = facts[name]
        print(f"| {name} | {round(ticks / per)} | {size} |")
    if missed:
        print(f"a goal is missed: {FLASH_GOAL} bytes of flash, {RAM_GOAL} of RAM with three tools")
    sys.exit(missed)


main()
