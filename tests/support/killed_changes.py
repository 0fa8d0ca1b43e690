"""Change files of a vault in processes that are killed at a chosen system call.

Run as a program, it forks for each line of its input: a fork of a process as small as this takes 1 ms, one of a process
that runs tests takes 20 ms."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from syncd.vault.openat import (
    exchange_by_copy,
    exchange_stepwise,
    open_stepwise,
    rename_by_claim,
    rename_by_link,
)
from syncd.vault.vault import Replacement, Vault
from tests.support.disk_faults import Fault
from tests.support.paths import ROOT

ONE, TWO = b"one\n" * 100, b"two\r\n" * 3000
LARGE = bytes(range(256)) * 10_000  # pieces of a MiB
DIGEST = hashlib.sha256(ONE).hexdigest()
TOGETHER = ("a/old.md", "a/second.md", "b/third.md")
CALLS: Final[Mapping[str, Mapping[str, Callable[..., Any]]]] = {
    "newest calls": {},
    "oldest calls": {"open": open_stepwise, "rename": rename_by_link, "exchange": exchange_stepwise},
    "no links": {"rename": rename_by_claim, "exchange": exchange_by_copy},  # and none of the newest calls either
}


def put_file(vault: Vault) -> object:
    """A file of several pieces from outside, as an upload is."""
    source = vault.root.parent / f"{vault.root.name}.staged"
    source.write_bytes(LARGE)
    return vault.create_from_file("x/y/new.pdf", source, hashlib.sha256(LARGE).hexdigest())


def go_without(vault: Vault) -> None:
    """A file of any size, gone with something else."""
    with vault.removing("a/old.md", vault.digest_file("a/old.md")):
        pass


CHANGES: Final[Mapping[str, Callable[[Vault], object]]] = {
    "create": lambda vault: vault.create("a/new.md", TWO),
    "create in new folders": lambda vault: vault.create("x/y/new.md", TWO),
    "replace": lambda vault: vault.replace("a/old.md", TWO, digest=DIGEST),
    "remove": lambda vault: vault.remove("a/old.md", digest=DIGEST),
    "put a file": put_file,
    "go without a file": go_without,
    "make folders": lambda vault: vault.make_folder("x/y"),
    "remove a folder": lambda vault: vault.remove_folder("b"),
    "replace several": lambda vault: vault.replace_all([Replacement(path, TWO, DIGEST) for path in TOGETHER]),
}


class SmallProcess:
    """Makes changes, each in a fork of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def change(self, root: Path, change: str, *, calls: str, moment: str, field: str, nth: int) -> bool:
        """Make the change, and return whether it was killed `moment` ("before" or "after") the `nth` call of `field`."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([str(root), change, calls, moment, field, nth]) + "\n")
        self._process.stdin.flush()
        killed: bool = json.loads(self._process.stdout.readline())
        return killed


@contextlib.contextmanager
def small_process() -> Iterator[SmallProcess]:
    command = [sys.executable, "-m", "tests.support.killed_changes"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield SmallProcess(process)


def change_and_die(root: str, change: str, calls: str, moment: str, field: str, nth: int) -> None:
    def die(real: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        if moment == "after":
            real(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    CHANGES[change](Vault(Path(root), calls=Fault(field, nth, die, **CALLS[calls]).calls))


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if not child:
            code = 1
            try:
                change_and_die(*json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or status == 0, "see the error above"
        sys.stdout.write(json.dumps(os.WIFSIGNALED(status)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
