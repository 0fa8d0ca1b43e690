"""The pages agree with the code: package tables, paths, tests of the laws, links and lengths.

Each check is a function from a page's text to its complaints, and is itself tried on a page that breaks it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGES = ("index", "syncd", "mcp_server", "vault_fixtures")
FOLDERS = (*PACKAGES, "tests", "docs", "systemd")  # a code span that begins with one of these is a path
PAGES = ("*.md", "docs/**/*.md")
LINES = {"ARCHITECTURE.md": 300, "CONTRIBUTING.md": 130, "docs/design/*.md": 150}
LAWS = 9
IMPORTED = {  # the libraries that the design names, by what a module imports
    "watchdog": "watchdog",
    "gitpython": "git",
    "python-frontmatter": "frontmatter",
    "markdown-it-py": "markdown_it",
    "lancedb": "lancedb",
    "sentence-transformers": "sentence_transformers",
    "mcp": "mcp",
    "apscheduler": "apscheduler",
    "pytest": "pytest",
}

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PACKAGE = re.compile(r"^\| `(?P<path>[\w/]+)/` \| (?P<sentence>.+) \| (?P<modules>[\w`, ]+) \|$", re.MULTILINE)
LIBRARY = re.compile(r"^\| ([\w-]+) \| [^|]+ \| (`\S+\.py`(?:, `\S+\.py`)*) \|$", re.MULTILINE)
LAW = re.compile(r"^\| (?P<number>\d+)\. .* \| (?P<tests>.+) \|$", re.MULTILINE)


def pages(pattern: str) -> list[Path]:
    return sorted(ROOT.glob(pattern))


def texts() -> Iterator[tuple[str, str]]:
    for pattern in PAGES:
        for file in pages(pattern):
            yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")


def spans(text: str) -> list[str]:
    """What stands in backticks, outside of blocks of code."""
    return SPAN.findall(FENCE.sub("", text))


def tabled(text: str) -> dict[str, tuple[str, list[str]]]:
    """The sentence and the modules of each package, as the page's tables have them."""
    return {
        row["path"]: (row["sentence"], row["modules"].replace("`", "").split(", ")) for row in PACKAGE.finditer(text)
    }


def on_disk() -> dict[str, tuple[str, list[str]]]:
    """The sentence and the modules of each package, as its folder has them."""
    initials = (file for package in PACKAGES for file in (ROOT / package).rglob("__init__.py"))
    return {
        str(file.parent.relative_to(ROOT)): (
            " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split()),
            sorted(module.stem for module in file.parent.glob("*.py") if module != file),
        )
        for file in initials
    }


def tables(text: str) -> list[str]:
    """The tables list every package, with the sentence of its `__init__.py` and all of its modules."""
    page, disk = tabled(text), on_disk()
    return [
        f"{package}: the page has {page.get(package)}, the folder has {disk.get(package)}"
        for package in sorted(page.keys() | disk.keys())
        if page.get(package) != disk.get(package)
    ]


def paths(text: str) -> list[str]:
    """Every path in backticks exists, and so does the test that it may name after `::`."""
    complaints = []
    for span in spans(text):
        path, _, test = span.partition("::")
        if path.partition("/")[0] not in FOLDERS or "/" not in path or "<" in path:
            continue
        if not (ROOT / path).exists():
            complaints.append(f"{path} does not exist")
        elif test and not re.search(rf"^(?:async )?def {re.escape(test)}\(", (ROOT / path).read_text(), re.MULTILINE):
            complaints.append(f"{path} has no test {test}")
    return complaints


def modules_run(text: str) -> list[str]:
    """Every module that the page runs with `python -m` exists."""
    names = re.findall(r"python (?:-P )?-m (tests[\w.]*|syncd[\w.]*|index[\w.]*|mcp_server[\w.]*)", text)
    files = {name: ROOT / name.replace(".", "/") for name in names}
    return [
        f"{name} is no module"
        for name, file in files.items()
        if not (file.with_suffix(".py").exists() or (file / "__main__.py").exists())
    ]


def laws(text: str) -> list[str]:
    """Every law has a row, which names a test."""
    rows = {int(row["number"]): spans(row["tests"]) for row in LAW.finditer(text)}
    return [
        f"law {number} names no test"
        for number in range(1, LAWS + 1)
        if not any("::test_" in span for span in rows.get(number, []))
    ]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def links(text: str, page: str = "ARCHITECTURE.md") -> list[str]:
    """Every link to a page of the project leads to a file, and to a heading of it."""
    complaints = []
    for link in LINK.findall(FENCE.sub("", text)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        if not target.exists():
            complaints.append(f"{link} leads nowhere")
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            complaints.append(f"{link} names no heading")
    return complaints


def libraries(text: str) -> list[str]:
    """Each module in the table of libraries imports the library, and each of those that the design names has a row."""
    rows = {name: spans(where) for name, where in LIBRARY.findall(text)}
    complaints = [f"{name} has no row" for name in IMPORTED if name not in rows]
    for name, files in rows.items():
        imports = re.compile(rf"^\s*(?:from|import) {IMPORTED.get(name, name)}\b", re.MULTILINE)
        complaints += [
            f"{file} does not import {name}" for file in files if not imports.search((ROOT / file).read_text())
        ]
    return complaints


@pytest.mark.parametrize("pattern", LINES)
def test_a_page_is_no_longer_than_it_may_be(pattern):
    lengths = {file.name: file.read_text(encoding="utf-8").count("\n") for file in pages(pattern)}
    assert lengths
    assert {name: length for name, length in lengths.items() if length > LINES[pattern]} == {}


def test_the_package_tables_are_those_of_the_folders():
    assert tables((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")) == []


def test_every_path_of_the_pages_exists():
    assert {page: complaints for page, text in texts() if (complaints := paths(text) + modules_run(text))} == {}


def test_every_main_library_has_a_row_with_where_it_is_used():
    assert libraries((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")) == []


def test_every_law_names_a_test():
    assert laws((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")) == []


def test_every_link_of_the_pages_leads_to_a_heading():
    assert {page: complaints for page, text in texts() if (complaints := links(text, page))} == {}


def test_every_decision_has_a_date_and_a_reason_and_the_newest_is_last():
    for file in pages("docs/decisions/*.md"):
        rows = [line.strip("| ").split(" | ") for line in file.read_text(encoding="utf-8").splitlines() if "|" in line]
        dates = [row[0] for row in rows[2:]]
        assert all(len(row) == 3 and all(row) for row in rows), file.name
        assert all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) for date in dates), file.name
        assert dates == sorted(dates), file.name


@pytest.mark.parametrize(
    ("check", "text"),
    [
        pytest.param(tables, "", id="no package is listed"),
        pytest.param(tables, "| `syncd/nothing/` | It does nothing. | none |", id="a package that is not there"),
        pytest.param(paths, "see `syncd/nothing.py`", id="a module that is not there"),
        pytest.param(paths, "see `tests/nothing/`", id="a folder that is not there"),
        pytest.param(paths, "see `syncd/app.py::test_nothing`", id="a test that is not there"),
        pytest.param(modules_run, "run `python -m tests.nothing`", id="a module that can't be run"),
        pytest.param(libraries, "| watchdog | events | `syncd/app.py` |", id="a library that is not used there"),
        pytest.param(laws, "| 1. A law | It holds. | nobody knows |", id="a law without a test"),
        pytest.param(links, "[a page](docs/nothing.md)", id="a link to no page"),
        pytest.param(links, "[a heading](README.md#nothing-at-all)", id="a link to no heading"),
    ],
)
def test_a_page_that_breaks_a_rule_is_caught(check, text):
    assert check(text)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (paths, "`syncd/app.py`, `syncd/`, `refs/memex/conflict`, `tests/unit/<package>/`, `a/b`\n\n```\n`syncd/x.py`\n```\n"),
        (links, "[a site](https://example.org/x.md) and [a page](README.md)"),
        (modules_run, "`python -m tests.bench`"),
    ],
)  # fmt: skip
def test_a_page_that_keeps_the_rules_is_not_blamed(check, text):
    assert check(text) == []
