"""How much memory a program takes: flash and static RAM from its ELF, the deepest stack from paint that it has not touched."""

import json
import socket
import struct
import tempfile
import time

PAINT = 0xA5
# What a budget may be exceeded by until it counts as grown.
SLACK = 1.03


def sections(elf, ram_at=0x2000_0000):
    """Flash and static RAM, from the headers of the sections that are loaded."""
    with open(elf, "rb") as file:
        data = file.read()
    (offset,) = struct.unpack_from("<I", data, 32)
    size, count = struct.unpack_from("<HH", data, 46)
    flash = ram = 0
    for at in range(offset, offset + size * count, size):
        _, kind, flags, address, _, length = struct.unpack_from("<6I", data, at)
        if not flags & 2 or not length:
            continue
        if address >= ram_at:
            ram += length
        # 8: takes no room in the file, as .bss does. What is in RAM and no such section is copied from flash.
        if kind != 8:
            flash += length
    return flash, ram


class Stack:
    """The stack of a machine in QEMU: painted before it starts, looked at when it is done, both from outside."""

    def __init__(self, place, at, size):
        self.place, self.at, self.size = place, at, size
        self.paint, self.control = f"{place}/paint", f"{place}/qmp"
        with open(self.paint, "wb") as file:
            file.write(bytes([PAINT]) * size)

    def arguments(self):
        """What QEMU is to be started with."""
        painted = f"loader,file={self.paint},addr={self.at:#x},force-raw=on"
        return ["-device", painted, "-qmp", f"unix:{self.control},server=on,wait=off"]

    def deepest(self):
        """In bytes."""
        with tempfile.NamedTemporaryFile(dir=self.place) as kept:
            save = {"val": self.at, "size": self.size, "filename": kept.name}
            command(self.control, {"execute": "pmemsave", "arguments": save})
            memory = kept.read()
        return len(memory.lstrip(bytes([PAINT])))


def command(path, request):
    """Has the machine that listens at `path` do something."""
    with socket.socket(socket.AF_UNIX) as qmp:
        qmp.connect(path)
        lines = qmp.makefile("rw")
        lines.readline()
        for told in ({"execute": "qmp_capabilities"}, request):
            print(json.dumps(told), file=lines, flush=True)
            while "return" not in (said := json.loads(lines.readline())):
                if "error" in said:
                    raise OSError(said["error"]["desc"])


def patiently(connect):
    """What connects, as soon as there is somebody to connect to."""
    for _ in range(600):
        try:
            return connect()
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.1)
    return connect()


def over_budget(name, measured, budget):
    """What has grown beyond a budget, in words; nothing if all is within it."""
    parts = (("flash", "bytes of flash"), ("static", "bytes of static RAM"), ("stack", "bytes of stack"))
    found = [f"{measured[part]} {what}, {budget[part]} are planned" for part, what in parts if measured[part] > budget[part] * SLACK]
    return f"{name} has grown: {'; '.join(found)}; see embedded/firmware/budget.json" if found else None
