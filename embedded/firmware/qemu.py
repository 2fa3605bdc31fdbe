"""A device in QEMU, with its two serial lines. Standard library only."""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time

from memory import Stack

# As memory/stm32f405.x has it.
STACK, STACK_SIZE = 0x2000_0000, 96 * 1024
# A machine that is shared by many is slow, and QEMU's clock is its clock.
PATIENCE = 60


def start(arguments, machine="netduinoplus2"):
    """QEMU, which ends when this process does, also when that is killed: left alone it would hold on to whoever reads its output."""

    def end_with_parent():
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)

    command = ["qemu-system-arm", "-M", machine, "-display", "none", "-monitor", "none", *arguments]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent)


class Line:
    """One serial line, to a program that says `ready` when it can hear."""

    def __init__(self, path):
        for _ in range(PATIENCE * 10):
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError:
                self.socket.close()
                time.sleep(0.1)
        else:
            raise TimeoutError(f"nobody listens at {path}")
        self.rest = b""

    def until_ready(self):
        # A serial port that is switched on may say nothing in so many bytes.
        said = self.receive().lstrip("\0")
        if said != "ready":
            raise ValueError(f"it is to say that it is ready, and says {said!r}")

    def send(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def receive(self):
        until = time.monotonic() + PATIENCE
        while b"\n" not in self.rest:
            if not select.select([self.socket], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError(f"no answer; there is {self.rest!r}")
            more = self.socket.recv(4096)
            if not more:
                raise EOFError("the line is closed")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def ask(self, what):
        """Sends a line, and gives the answer as it was said and as what it means."""
        self.send(what if isinstance(what, str) else json.dumps(what))
        said = self.receive()
        return json.loads(said)


class Device:
    """The device, from its start to its end."""

    def __init__(self, elf):
        self.place = tempfile.TemporaryDirectory()
        paths = [os.path.join(self.place.name, name) for name in ("agent", "panel")]
        lines = [part for path in paths for part in ("-serial", f"unix:{path},server=on,wait=on")]
        self.stack = Stack(self.place.name, STACK, STACK_SIZE)
        self.process = start(["-kernel", elf] + lines + self.stack.arguments())
        try:
            # The machine starts when both are there, so nothing that it says is lost.
            self.agent, self.panel = (Line(path) for path in paths)
            self.agent.until_ready()
            self.panel.until_ready()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.process.kill()
        self.process.wait()
        self.place.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
