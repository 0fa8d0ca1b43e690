"""Call a function in a process of its own, the trial process, so that its memory is its own and Ctrl-C leaves nothing behind.

Law, tested: the process ends with the call, however the call ends."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from index.errors import MemexError, Unavailable, from_dict

T = TypeVar("T")
STOP_S = 5.0  # seconds that a killed child may take to end


def call_in_process(function: Callable[..., T], *arguments: Any, progress: Callable[[dict[str, Any]], None]) -> T:
    """Return `function(*arguments, progress=…)`, called in a new process; events of its progress come to `progress` here.

    Raises the MemexError that it raises, and Unavailable when the process ends without an answer."""
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    receiver, sender = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_answer, args=(sender, function, arguments), daemon=True)
    child.start()
    sender.close()
    try:
        while True:
            kind, value = receiver.recv()
            if kind == "result":
                result: T = value
                return result
            if kind == "error":
                raise from_dict(value)
            progress(value)
    except EOFError:
        child.join(STOP_S)
        message = f"the process that measured ended without an answer (exit code {child.exitcode}); it may lack memory"
        raise Unavailable(message) from None
    finally:
        child.kill()
        child.join(STOP_S)
        receiver.close()


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes; the parent ends this one
    try:
        result = function(*arguments, progress=lambda event: sender.send(("progress", event)))
    except MemexError as error:
        failure: Mapping[str, Any] = error.as_dict()
        sender.send(("error", failure))
    else:
        sender.send(("result", result))
