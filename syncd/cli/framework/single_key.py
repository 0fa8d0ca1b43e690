"""Read a single key from the terminal, without Enter; keys typed before the question count too."""

from __future__ import annotations

import os
import select
import sys

END = "\x04"  # Ctrl-D, and the end of the input
ESCAPE_S = 0.05  # within which the rest of an arrow key's sequence follows


def has_single_keys() -> bool:
    """Check whether stdin is a terminal that can give single keys."""
    try:
        import termios  # noqa: F401, PLC0415 - not every system has it
    except ImportError:
        return False
    return sys.stdin.isatty() and os.environ.get("TERM") != "dumb"


def read_single_key(prompt: str) -> str:
    """Read the next key; an arrow key is its whole escape sequence. Ctrl-C interrupts as usual."""
    import termios  # noqa: PLC0415 - as above
    import tty  # noqa: PLC0415 - it imports termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSADRAIN)  # not TCSAFLUSH: it would drop what was typed ahead
    try:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        return _read_character(terminal)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _read_character(terminal: int) -> str:
    """Read one character of any number of bytes."""
    data = os.read(terminal, 1)
    if data in (b"", b"\0"):  # a Ctrl-D that was typed ahead is read as a null byte
        return END
    if data == b"\x1b":
        while len(data) < 16 and select.select([terminal], [], [], ESCAPE_S)[0]:
            data += os.read(terminal, 1)
        return data.decode("ascii", "replace")
    more = 3 if data[0] >= 0xF0 else 2 if data[0] >= 0xE0 else 1 if data[0] >= 0xC0 else 0
    for _ in range(more):
        data += os.read(terminal, 1)
    return data.decode("utf-8", "replace")
