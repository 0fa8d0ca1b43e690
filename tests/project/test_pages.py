"""The pages for users: what they must open with, their length, their settings, and that the reference is what the program says.

`tests/integration/test_page_commands.py` runs their commands, `tests/project/test_architecture_page.py` checks their links."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml

from syncd.settings.settings import load
from tests.documents import reference_pages, site_pages, terminal_picture
from tests.documents.page_blocks import Block, blocks, missing_lines, pages
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
LINES = 250
OPENING = re.compile(r"\b(?:you can|you know|look up here|find the)\b", re.IGNORECASE)
PARSERS = {"json": json.loads, "toml": tomllib.loads, "yaml": lambda text: list(yaml.safe_load_all(text))}


def written() -> list[tuple[str, str]]:
    """Every page below docs/ that is written for users, with its text."""
    return [(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in pages()[1:]]


def opening(text: str) -> str:
    """The first paragraph after the title; nothing if the page does not begin with a title."""
    match = re.match(r"(?:<!--.*?-->\n\n)?# [^\n]+\n\n(.+?)(?:\n\n|\Z)", text, re.DOTALL)
    return match[1] if match else ""


def test_the_reference_is_what_the_program_says():
    on_disk = {path: (reference_pages.FOLDER / path) for path in reference_pages.generated()}
    have = {path: file.read_text(encoding="utf-8") for path, file in on_disk.items()}
    assert have == reference_pages.render_pages(), "make reference writes these pages"


def test_every_page_opens_with_what_its_reader_can_do():
    assert [page for page, text in written() if not OPENING.search(opening(text))] == []


def test_no_page_is_long():
    assert {page: text.count("\n") for page, text in written() if text.count("\n") > LINES} == {}


def test_every_page_stands_on_the_map_and_in_the_navigation():
    """The map names the pages that are written by hand; each folder of generated pages has an index of its own."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    navigation = json.dumps(tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    names = [page.removeprefix("docs/") for page, _ in written()]
    generated = {f"docs/{path}" for path in reference_pages.render_pages()}
    assert [name for name in names if f"docs/{name}" not in navigation] == []
    assert [
        name for name in names if f"]({name})" not in index and f"docs/{name}" not in generated and name != "index.md"
    ] == []


@pytest.mark.parametrize("language", PARSERS)
def test_every_block_of_data_can_be_read(language):
    found = [block for page in pages() for block in blocks(page) if block.language == language]
    assert found
    for block in found:
        try:
            PARSERS[language](block.text)
        except ValueError as error:
            raise AssertionError(f"{block.page}:{block.line}: {error}") from error


def test_every_block_of_settings_is_accepted(tmp_path):
    found = [block for page in pages() for block in blocks(page) if block.language == "toml" and is_settings(block)]
    assert len(found) > 5
    for number, block in enumerate(found):
        file = tmp_path / f"{number}.toml"
        file.write_text(
            block.text if "vault]" in block.text else f'[vault]\npath = "x"\n{block.text}', encoding="utf-8"
        )
        load({"config": str(file)}, {"HOME": str(tmp_path)})


def is_settings(block: Block) -> bool:
    """A block of Memex's own settings, and not of a client's."""
    return block.mark != "another program's" and "mcp_servers" not in block.text


def test_shown_lines_are_looked_for_in_their_order():
    printed = "made 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11 A\nb  12\nlong line"
    assert missing_lines("made 00000000-0000-0000-0000-000000000000 A\n…\nlong…\n", printed) == []
    assert missing_lines("b 3\nmade 00000000-0000-0000-0000-000000000000 A\n", printed) == [
        "made 00000000-0000-0000-0000-000000000000 A"
    ]
    assert missing_lines("lo\n", printed) == ["lo"]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', ["//fonts.example/a.css"]),
        (
            '<img src="images/a.svg"><a href="https://example.org">a link</a><link rel="canonical" href="https://x.example/">',
            [],
        ),
        ('<pre class="mermaid">graph</pre>', ["mermaid"]),
    ],
)
def test_a_page_that_asks_another_host_for_something_is_caught(tmp_path, html, found):
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    assert list(site_pages.foreign_requests(tmp_path)) == [f"page.html: {address}" for address in found]


def test_the_site_is_built_from_the_tree_of_the_project(tmp_path):
    site_pages.copy_pages(tmp_path)
    assert (tmp_path / "zensical.toml").is_file()
    assert (tmp_path / "pages/index.md").read_text(encoding="utf-8").startswith("# Memex")
    assert (tmp_path / "pages/docs/guides/docker.md").is_file()


def test_a_picture_shows_the_commands_in_their_colours_and_loads_nothing():
    svg = terminal_picture.draw("try", [("memex status", "\x1b[32m● all is well\x1b[0m <3\r\n")])
    assert "memex&#160;status" in svg
    assert "&lt;3" in svg
    assert "#1e824c" in svg  # the theme's green
    assert re.findall(r"(?:href|src|url)\W+https?:", svg) == []


def test_a_page_without_an_opening_is_caught():
    assert opening("# A title\n\nYou can do this.\n\nMore.\n") == "You can do this."
    assert opening("Words first.\n\n# A title\n") == ""
