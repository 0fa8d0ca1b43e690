"""The CPU sampler looks at every thread of a process two thousand times a second, and adds up each layer's CPU.

A thread's CPU since the last look counts for the function that it is in now: the shares are those of many looks. What
libraries do in threads of their own, which have no Python in them, is what the whole process used beyond that."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import Counter
from pathlib import PurePath
from types import FrameType

PACKAGES = ("index", "syncd", "mcp_server")
INTERVAL_S, SWITCH_S = 0.0005, 0.00001
WAITING = frozenset(
    {
        ("selectors.py", "select"),
        ("threading.py", "wait"),
        ("queue.py", "get"),
        ("thread.py", "_worker"),  # of concurrent.futures
        ("_asyncio.py", "run"),  # of anyio's threads
        ("inotify_c.py", "_check_inotify_fd"),
        ("socket.py", "accept"),
        ("daemon.py", "listen"),
    }
)
INTERPRETER, NATIVE = "the interpreter and its library", "threads of libraries without Python"


def layer(file: str) -> str:
    """The layer of a source file: a package of Memex with one folder below it, a library, or the interpreter."""
    parts = PurePath(file).parts
    for installed in ("site-packages", "dist-packages"):
        if installed in parts:
            name = parts[parts.index(installed) + 1]
            return f"library {name.removesuffix('.py')}"
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] == "tests":
            return "the bench"
        if parts[at - 1] in PACKAGES or parts[at] in PACKAGES:
            top = at - 1 if parts[at - 1] in PACKAGES else at
            folder = [parts[top + 1]] if len(parts) > top + 2 else []
            return "/".join(["memex", parts[top], *folder])
    return INTERPRETER


def place(frame: FrameType) -> tuple[str, str]:
    """Layer and function of the innermost frame; what imports a module is what asked for it, not the import machinery."""
    at: FrameType | None = frame
    while at is not None and at.f_code.co_filename.startswith("<frozen importlib"):
        at = at.f_back
    code = (at or frame).f_code
    return layer(code.co_filename), f"{PurePath(code.co_filename).name}:{code.co_qualname}"


def is_waiting(frame: FrameType) -> bool:
    """Whether a thread with this frame only waits: what it used came before, and nobody saw where."""
    return (PurePath(frame.f_code.co_filename).name, frame.f_code.co_name) in WAITING


class Sampler:
    """The looks of one process, from its start on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[int, float] = {}
        self._layers: Counter[str] = Counter()
        self._functions: Counter[str] = Counter()
        self._unseen = self._mine = 0.0  # seconds of threads that waited when they were looked at, and of the looks
        self._begun = time.process_time()

    def start(self) -> None:
        """Begin to look."""
        sys.setswitchinterval(SWITCH_S)  # a look sees where a thread is, not where it is next willing to pause
        threading.Thread(target=self._run, name="cpu-sampler", daemon=True).start()

    def _run(self) -> None:
        while True:
            time.sleep(INTERVAL_S)
            with self._lock:
                self._look()

    def _look(self) -> None:
        own = threading.get_ident()
        was_on = gc.isenabled()
        gc.disable()  # before Python 3.12, a collection inside the next call can stop all threads for good (CPython issue 106883)
        try:
            alive = sys._current_frames()
        finally:
            if was_on:
                gc.enable()
        for ident, frame in alive.items():
            # A thread with a frame has not ended, and none ends while this one runs.
            now = time.clock_gettime(time.pthread_getcpuclockid(ident))
            spent = now - self._last.get(ident, 0.0)
            self._last[ident] = now
            if ident == own:
                self._mine += spent
            elif is_waiting(frame):
                self._unseen += spent
            elif spent > 0:
                name, function = place(frame)
                self._layers[name] += spent
                self._functions[f"{name}: {function}"] += spent
        self._last = {ident: spent for ident, spent in self._last.items() if ident in alive}

    def take(self) -> dict[str, dict[str, float]]:
        """Seconds of CPU of each layer and of each function since the last time, the largest first.

        What nobody saw is spread over what was seen."""
        with self._lock:
            now = time.process_time()
            seen = self._layers.total()
            native = max(0.0, now - self._begun - self._mine - seen - self._unseen)
            scale = 1 + self._unseen / seen if seen else 1.0
            layers = Counter({name: spent * scale for name, spent in self._layers.items()} | {NATIVE: native})
            functions = Counter({name: spent * scale for name, spent in self._functions.items()})
            self._layers.clear()
            self._functions.clear()
            self._begun, self._mine, self._unseen = now, 0.0, 0.0
            return {"layers": dict(layers.most_common()), "functions": dict(functions.most_common(40))}


RUNNING = Sampler()


def table(taken: dict[str, dict[str, float]], calls: int, *, most: int = 16) -> str:
    """Two tables in Markdown: layers and functions, in milliseconds of CPU a call, and their share."""
    whole = sum(taken["layers"].values())
    lines = []
    for head, costs in (("layer", taken["layers"]), ("function", taken["functions"])):
        shown = dict(list(costs.items())[:most])
        if head == "layer" and len(costs) > most:
            shown[f"{len(costs) - most} others"] = sum(list(costs.values())[most:])
        lines += [f"| {head} | ms | share |", "|---|---:|---:|"]
        lines += [f"| {name} | {cost / calls * 1000:.2f} | {cost / whole:.1%} |" for name, cost in shown.items()]
        lines.append("" if head == "function" else f"| all | {whole / calls * 1000:.2f} | 100.0% |\n")
    return "\n".join(lines)
