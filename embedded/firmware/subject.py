"""The device in QEMU as a subject of the conformance suite: its serial line on the standard input and output.

usage: subject.py SUBJECT.elf
"""

import os
import sys
import tempfile

from qemu import Line, start


def main():
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "agent")
        arguments = ["-kernel", sys.argv[1], "-serial", f"unix:{path},server=on,wait=on"]
        process = start(arguments)
        try:
            line = Line(path)
            line.until_ready()
            # A line, and its answer, in turn: that is the protocol. A goodbye has none.
            for told in sys.stdin:
                told = told.rstrip("\n")
                if told == '{"bye":{}}':
                    break
                line.send(told)
                print(line.receive(), flush=True)
        finally:
            process.kill()
            process.wait()


main()
