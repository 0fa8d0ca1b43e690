"""Write the reference pages: docs/reference/ from the program, and docs/benchmarks.md from the recorded figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.documents import benchmarks_page, commands_reference, rest_reference, settings_reference, tools_reference
from tests.support.paths import ROOT

FOLDER: Final = ROOT / "docs"
WRITTEN_BY: Final = "<!-- `make reference` writes this page from the program. -->\n\n"


def render_pages() -> Mapping[str, str]:
    """Return every generated page, by its path below docs/."""
    reference = {
        **commands_reference.render_pages(),
        **tools_reference.render_pages(),
        **settings_reference.render_pages(),
        **rest_reference.render_pages(),
    }
    pages = {f"reference/{path}": text for path, text in reference.items()} | benchmarks_page.render_pages()
    return {path: WRITTEN_BY + text.rstrip("\n") + "\n" for path, text in pages.items()}


def write() -> None:
    """Write all generated pages, and remove those that the program no longer generates."""
    pages = render_pages()
    for path in generated() - pages.keys():
        (FOLDER / path).unlink()
    for path, text in pages.items():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text, encoding="utf-8")


def generated() -> set[str]:
    """Return the paths of the generated pages that lie in the folder."""
    return {
        file.relative_to(FOLDER).as_posix()
        for file in FOLDER.rglob("*.md")
        if file.read_text(encoding="utf-8").startswith(WRITTEN_BY)
    }
