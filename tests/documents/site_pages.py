"""Copy the pages of the site with the files that they link to, and check the built site."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

BESIDE: Final = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "systemd/memex.service")
LOADING: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
UNLOADED: Final = frozenset({"canonical", "next", "prev", "alternate", "edit"})  # links that a browser does not fetch


def copy_pages(folder: Path) -> None:
    """Copy docs/ and what its pages link to into `folder`/pages, and the settings of the site beside it."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages / "docs", ignore=shutil.ignore_patterns("zensical.toml", "requirements.txt"))
    for name in BESIDE:
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, pages / name)
    (pages / "README.md").rename(pages / "index.md")
    for file in pages.rglob("*.md"):
        depth = len(file.relative_to(pages).parts) - 1
        text = file.read_text(encoding="utf-8").replace(f"]({'../' * depth}README.md", f"]({'../' * depth}index.md")
        text = re.sub(r"\]\(((?:\.\./)*docs/(?:design|decisions))\)", r"](\1/)", text)
        file.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "docs" / "zensical.toml", folder / "zensical.toml")


def foreign_requests(site: Path) -> Iterator[str]:
    """Yield what a browser would fetch from another host when it shows a page of the site."""
    for file in sorted(site.rglob("*.html")):
        parser = _Requests()
        parser.feed(file.read_text(encoding="utf-8"))
        yield from (f"{file.relative_to(site)}: {address}" for address in parser.found)
    for file in sorted(site.rglob("*.css")):
        for address in re.findall(r"url\([\"']?((?:https?:)?//[^)\"']+)", file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)}: {address}"


class _Requests(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADING.get(tag, "")) or ""
        if re.match(r"(?:https?:)?//", address) and values.get("rel") not in UNLOADED:
            self.found.append(address)
        if "mermaid" in (values.get("class") or "").split():  # the theme would load the program that draws it
            self.found.append("mermaid")
