"""A daemon and its page as threads of the test's process, with a fake model: what they answer, without the seconds that they take to start."""

from __future__ import annotations

import asyncio
import contextlib
import io
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from index.timings import now_ms
from syncd.app import App
from syncd.cli.main import run_command
from syncd.cli.page.process import FOLDER, stop_page
from syncd.installation.vault_setup import set_up_vault
from syncd.page.server import _bind, _Page
from syncd.settings.access import LimitsSettings
from syncd.settings.settings import PageSettings, ServerSettings, Settings, SyncSettings
from tests.support.daemon_process import Failed
from tests.support.fakes import fake_embedder
from tests.support.fresh_ledger import put_ledger
from tests.support.page_browser import PagedMemex
from tests.support.world import settings_of


class LocalMemex(PagedMemex):
    """A Memex whose daemon and commands run in this process; `sections` are of its settings."""

    def __init__(self, folder: Path, sections: Mapping[str, Any]) -> None:
        super().__init__(folder)
        put_ledger(self.state)
        self.settings = settings_of(
            self.vault, self.state, server=ServerSettings(port=0), page=PageSettings(port=0),
            limits=LimitsSettings(rate=0), sync=SyncSettings(), **sections,
        )  # fmt: skip
        set_up_vault(self.settings, now=now_ms())
        self._serving = contextlib.ExitStack()

    def serve(self, *options: str, wait: bool = True) -> float:
        """Start the daemon, and wait until it is ready."""
        assert wait
        assert not options
        self.url = self._serving.enter_context(serving(self.settings))
        self.settled()
        return 0.0

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:  # noqa: ARG002 - of the base class
        """Stop the daemon, if it runs."""
        self._serving.close()
        return 0, 0.0

    def run(self, *words: str, stdin: bytes = b"") -> str:
        """Run `memex WORDS` and return its output. Raises Failed."""
        assert not stdin
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            patch.chdir(self.home)
            code = run_command([*words, "--vault", str(self.vault), "--state", str(self.state)])
        said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))
        if code:
            raise Failed(code, said, complained)
        return said


@contextlib.contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """Run a daemon with these settings, and yield its address once it has listed the vault."""
    stop = threading.Event()
    with App(settings, embedder=fake_embedder()) as app:
        with _served(lambda told: app.serve(lambda ready: told(ready.url), stop), stop.set) as url:
            assert app.opened.sync.ready.wait(60)
            yield url


@contextlib.contextmanager
def local_page(folder: Path, **sections: Any) -> Iterator[LocalMemex]:
    """Yield a Memex that serves a vault below `folder` and its page."""
    with local_daemon(folder, **sections) as memex:
        with _served(lambda told: _serve_page(memex.settings, told), lambda: stop_page(memex.state)):
            yield memex


@contextlib.contextmanager
def local_daemon(folder: Path, **sections: Any) -> Iterator[LocalMemex]:
    """Yield a Memex that serves a vault below `folder`, in the environment that its process would have."""
    memex = LocalMemex(folder, sections)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in memex.environ.items():
            patch.setenv(name, value)
        try:
            memex.serve()
            yield memex
        finally:
            memex.stop()


@contextlib.contextmanager
def _served(serve: Callable[[Callable[[str], None]], object], stop: Callable[[], object]) -> Iterator[str]:
    """Yield the address that `serve` reports from a thread, and let the thread end by `stop`."""
    bound: list[str] = []
    answering = threading.Event()

    def told(url: str) -> None:
        bound.append(url)
        answering.set()

    thread = threading.Thread(target=serve, args=(told,), daemon=True)
    thread.start()
    assert answering.wait(60)
    try:
        yield bound[0]
    finally:
        stop()
        thread.join(60)
        assert not thread.is_alive()


def _serve_page(settings: Settings, told: Callable[[str], None]) -> None:
    """Serve the page as its process does, except that signals are the tests' own."""
    loop = asyncio.SelectorEventLoop()
    loop.add_signal_handler = lambda *_: None  # type: ignore[method-assign]
    folder = settings.state / FOLDER
    folder.mkdir(mode=0o700)
    with contextlib.closing(_bind(0)) as listener, asyncio.Runner(loop_factory=lambda: loop) as runner:
        page = _Page(settings, ["memex"], folder, listener, idle_s=float("inf"))
        runner.run(page.run(told))
