"""Read broken copies (mutants) of a file in forked children, as the daemon does: python -m tests.support.file_mutants FILE COUNT SEED.

Prints the number of each outcome and the slowest copy as JSON. One process loads the libraries, so it reads thousands a minute."""

from __future__ import annotations

import base64
import io
import json
import os
import random
import re
import select
import signal
import sys
import time
import zipfile
import zlib
from collections import Counter
from pathlib import Path

from index.errors import InvalidArgument
from syncd.documents.file_types import HEAD, media_type_of
from syncd.files.conversion.converter_child import READERS, _load_reader, convert_file
from syncd.files.conversion.process_sandbox import set_limits
from syncd.files.conversion.syscall_filter import compile_filter

ASKED = {
    "pages": 2_000,
    "inflated": 64 << 20,
    "text": 1_000_000,
    "calls": base64.b64encode(compile_filter() or b"").decode(),
    "unconfined": True,
}
SECONDS = 30
_STREAM = re.compile(rb"(?<=stream\n).*?(?=\n?endstream)", re.DOTALL)
_WORDS = (
    b"\x00",
    b"\xff" * 4,
    b"%PDF-",
    b"PK\x03\x04",
    b"-1",
    b"99999999999",
    b"<",
    b"&#x0;",
    b"endstream",
    b"\xed\xa0\x80",
    b"[[[[[[[[",
)


def broken(raw: bytes, dice: random.Random) -> bytes:
    """Return a copy with a few random changes; in half of the archives and PDFs, they are inside the compressed content."""
    if dice.random() < 0.5:
        if raw.startswith(b"PK"):
            return _repacked(raw, dice)
        if raw.startswith(b"%PDF"):
            return _STREAM.sub(lambda found: _restreamed(found[0], dice), raw)
    return _wounded(raw, dice)


def _wounded(raw: bytes, dice: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        at, length = dice.randrange(len(data) + 1), dice.choice((1, 2, 4, 16, 256))
        match dice.randrange(7):
            case 0 if data:
                data[min(at, len(data) - 1)] ^= 1 << dice.randrange(8)
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length] * dice.choice((1, 2, 50))
            case 3:
                data[at:at] = dice.choice(_WORDS)
            case 4:
                data[at : at + length] = dice.randbytes(length)
            case 5:
                other = dice.randrange(len(data) + 1)
                data[at : at + length] = data[other : other + length]
            case _ if dice.random() < 0.2:
                del data[at:]
    return bytes(data)


def _restreamed(stream: bytes, dice: random.Random) -> bytes:
    try:
        held = zlib.decompress(stream)
    except zlib.error:
        return stream
    return zlib.compress(_wounded(held, dice)) if dice.random() < 0.3 else stream


def _repacked(raw: bytes, dice: random.Random) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            held = old.read(entry)
            new.writestr(entry.filename, _wounded(held, dice) if dice.random() < 0.2 else held)
    return out.getvalue()


def outcome(name: str, data: bytes) -> str:
    """Return the outcome of reading `data`: text, empty, unreadable, exhausted, memory, or the exit code of a child without an answer."""
    try:
        kind = media_type_of(name, data[:HEAD])
    except InvalidArgument:
        return "refused"
    given, taken = os.pipe()
    child = os.fork()
    if not child:
        _child(kind, data, taken)
    os.close(taken)
    told, end = b"", time.monotonic() + SECONDS
    try:
        while select.select([given], [], [], max(0, end - time.monotonic()))[0]:
            if not (block := os.read(given, 1 << 16)):
                break
            told += block
        else:
            os.kill(child, signal.SIGKILL)
            return "hang"
    finally:
        os.close(given)
        _, status = os.waitpid(child, 0)
    if not told:
        return f"ended {os.waitstatus_to_exitcode(status)}"
    found = json.loads(told)
    if "error" in found:
        assert found["error"] == "memory" or found["message"]
        return str(found["error"])
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", found["text"])
    return "text" if found["text"].strip() else "empty"


def _child(kind: str, data: bytes, taken: int) -> None:
    os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
    set_limits(seconds=SECONDS, memory=2 << 30)
    code = 1
    try:
        told = json.dumps(convert_file(io.BufferedReader(io.BytesIO(data)), {**ASKED, "media_type": kind})).encode()
        while told:
            told = told[os.write(taken, told) :]
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    name, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for kind in READERS:
        _load_reader(kind)
    raw, dice = Path(name).read_bytes(), random.Random(seed)
    ends: Counter[str] = Counter()
    slowest = 0.0
    for _ in range(count):
        begun = time.monotonic()
        end = outcome(Path(name).name, data := broken(raw, dice))
        ends[end] += 1
        slowest = max(slowest, time.monotonic() - begun)
        if (end == "hang" or end.startswith("ended")) and (keep := os.environ.get("MUTANTS")):
            (Path(keep) / f"{ends[end]}-{end.replace(' ', '')}-{Path(name).name}").write_bytes(data)
    sys.stdout.write(json.dumps({"ends": ends, "slowest": slowest}) + "\n")


if __name__ == "__main__":
    main()
