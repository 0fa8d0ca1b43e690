"""The page of a daemon, and a client that behaves like a browser with it: cookies, origin, forms."""

from __future__ import annotations

import contextlib
import html
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from syncd.cli.page.process import FOLDER, stop_page
from syncd.daemon.control_socket import NoDaemon, call
from tests.support.daemon_process import Memex


class PagedMemex(Memex):
    """A Memex whose page listens on a free port."""

    @property
    def environ(self) -> dict[str, str]:
        return super().environ | {"MEMEX_PAGE__PORT": "0"}

    def link(self, *words: str) -> dict[str, Any]:
        """Run `memex open`, and return its answer."""
        return dict(self.json("open", *words, "--no-browser"))

    def one_time_link(self) -> str:
        """Return a link as `memex open` asks for it; only the first one takes a command, which starts the page."""
        try:
            return str(call(self.state / FOLDER, "link", {}, timeout=60)["url"])
        except NoDaemon:
            return str(self.link()["url"])

    def browser(self) -> Browser:
        """Return a browser with a session."""
        return Browser(self.one_time_link())


class Browser:
    """Follows a one-time link, and keeps its session."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.page = f"{parts.scheme}://{parts.netloc}"
        self.client = httpx2.Client(base_url=self.page, timeout=60, trust_env=False, headers={"sec-fetch-site": "none"})
        self.opened = self.client.get(link)

    def get(self, path: str, /, **query: Any) -> httpx2.Response:
        return self.client.get(path, params=query or None)

    def text(self, path: str, /, **query: Any) -> str:
        """Return a page, which must be there."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.text

    @property
    def csrf(self) -> str:
        found = re.search(r'<meta name="csrf" content="([^"]+)">', self.get("/").text)
        assert found
        return html.unescape(found[1])

    def post(self, path: str, /, **fields: Any) -> httpx2.Response:
        """Send a form as the page's own forms are sent."""
        headers = {"origin": self.page, "sec-fetch-site": "same-origin"}
        return self.client.post(path, data={"csrf": self.csrf, **fields}, headers=headers)


@contextlib.contextmanager
def paged_daemon(
    folder: Path, models: Path, *, vault: Path | None = None, kind: type[PagedMemex] = PagedMemex
) -> Iterator[PagedMemex]:
    """Yield a Memex whose daemon runs; end the daemon and the page afterwards."""
    memex = kind(folder, models=models, vault=vault)
    try:
        memex.serve()
        yield memex
    finally:
        stop_page(memex.state)
        if memex.process is not None:
            memex.stop(signal.SIGKILL)


def events(browser: Browser) -> Iterator[dict[str, Any]]:
    """Yield the page's events until the stream ends."""
    with browser.client.stream("GET", "/events") as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))
