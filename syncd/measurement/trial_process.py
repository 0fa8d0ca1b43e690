"""Call a function in a process of its own, the trial process, so that its memory is its own and Ctrl-C leaves nothing behind.

Law, tested: the process ends with the call, however the call ends."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from index.errors import MemexError, Unavailable, from_dict

T = TypeVar("T")
STOP_S = 10.0  # seconds that a process may take to end after its answer


def call_in_process(function: Callable[..., T], *arguments: Any, progress: Callable[[dict[str, Any]], None]) -> T:
    """Return `function(*arguments, progress=…)`, called in a new process; events of its progress come to `progress` here.

    Raises the MemexError that it raises, and Unavailable when the process ends without an answer."""
    spawn = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    receiver, sender = spawn.Pipe(duplex=False)
    child = spawn.Process(target=_answer, args=(sender, function, arguments), daemon=True)
    handler = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the process inherits it: Ctrl-C reaches both, and this one ends it
    try:
        child.start()
    finally:
        signal.signal(signal.SIGINT, handler)
    sender.close()
    try:
        kind, value = _receive_answer(receiver, progress)
        child.join(STOP_S)
    except EOFError:
        child.join(STOP_S)
        message = f"the process that measured ended without an answer (exit code {child.exitcode}); it may lack memory"
        raise Unavailable(message) from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if kind == "error":
        raise from_dict(value)
    result: T = value
    return result


def _receive_answer(receiver: Connection, progress: Callable[[dict[str, Any]], None]) -> tuple[str, Any]:
    while True:
        kind, value = receiver.recv()
        if kind != "progress":
            return kind, value
        progress(value)


def _answer(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        result = function(*arguments, progress=lambda event: sender.send(("progress", event)))
    except MemexError as error:
        sender.send(("error", error.as_dict()))
    else:
        sender.send(("result", result))
