"""Chromium on this system, driven through `tests/browser/driver.mjs`; without it, tests are skipped with the reason."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.paths import TESTS

FOLDER: Final = TESTS / "browser"
CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NODE: Final = shutil.which("node")


def missing() -> str:
    """Return why no browser can be driven; "" if one can."""
    if CHROMIUM is None or NODE is None:
        return "Chromium or Node.js is not installed"
    if not (FOLDER / "node_modules/playwright-core").is_dir():
        return "tests/browser has no node_modules: make page-test installs them"
    return ""


class Tab:
    """A tab with cookies of its own. Methods of Playwright's page are calls by their name."""

    def __init__(self, chromium: Chromium, name: str, page: str) -> None:
        self._chromium, self._name, self.page = chromium, name, page

    def call(self, method: str, *arguments: Any) -> Any:
        return self._chromium.call(self._name, method, *arguments)

    def goto(self, path: str) -> None:
        self.call("goto", path if "://" in path else self.page + path)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.call("keyboard.press", key)

    def type(self, text: str) -> None:
        self.call("keyboard.type", text)

    def click(self, selector: str) -> None:
        self.call("click", selector)

    def fill(self, selector: str, text: str) -> None:
        self.call("fill", selector, text)

    def wait(self, selector: str, **options: Any) -> None:
        """Wait until an element is visible; `main:has-text("x")` waits for a text."""
        self.call("waitForSelector", selector, options)

    def wait_gone(self, selector: str) -> None:
        """Wait until no such element is visible."""
        self.wait(selector, state="hidden")

    def value(self, expression: str) -> Any:
        """Evaluate an expression of JavaScript."""
        return self.call("evaluate", f"JSON.parse(JSON.stringify({expression} ?? null))")

    @property
    def text(self) -> str:
        return str(self.value("document.querySelector('main').innerText"))

    @property
    def path(self) -> str:
        return str(self.value("location.pathname + location.search"))

    @property
    def problems(self) -> dict[str, list[str]]:
        """Return what went wrong: errors on the console, such as violations of the policy, exceptions, requests of other hosts."""
        return {kind: found for kind, found in self.call("problems").items() if found}

    @property
    def axe(self) -> list[str]:
        """Return the violations of accessibility rules."""
        return list(self.call("axe"))


class Chromium:
    """One headless browser."""

    def __init__(self) -> None:
        assert CHROMIUM
        assert NODE
        flags = ["--no-sandbox"] if os.getuid() == 0 else []  # Chromium refuses to run as root with its sandbox
        self._process = subprocess.Popen(
            [NODE, FOLDER / "driver.mjs", CHROMIUM, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._number = 0
        self._open: list[Tab] = []

    def call(self, tab: str, method: str, *arguments: Any) -> Any:
        """Call a method of the driver, and return its result."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"tab": tab, "call": method, "args": arguments}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(self, link: str, **options: Any) -> Tab:
        """Open a one-time link in a new tab. Options are those of a context: colorScheme, viewport, javaScriptEnabled."""
        parts = urlsplit(link)
        page = f"{parts.scheme}://{parts.netloc}"
        self._number += 1
        tab = Tab(self, str(self._number), page)
        self._open.append(tab)
        tab.call("open", {"origin": page, **options})
        tab.goto(link)
        return tab

    def close_tabs(self) -> None:
        """Close all tabs, which follow the page as long as they are open."""
        while self._open:
            self._open.pop().call("close")

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(30)


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """Yield a browser, and close it."""
    browser = Chromium()
    try:
        yield browser
    finally:
        browser.close()
