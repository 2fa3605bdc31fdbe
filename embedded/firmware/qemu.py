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

MACHINE = ["qemu-system-arm", "-M", "netduinoplus2", "-display", "none", "-monitor", "none"]
# A machine that is shared by many is slow, and QEMU's clock is its clock.
PATIENCE = 60


def start(arguments):
    """QEMU, which ends when this process does, also when that is killed: left alone it would hold on to whoever reads its output."""

    def end_with_parent():
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)

    return subprocess.Popen(
        MACHINE + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent
    )


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
        said = self.receive()
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
        self.process = start(["-kernel", elf] + lines)
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
