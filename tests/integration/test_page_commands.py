"""The commands of the pages: every one exists with its options, and those that are marked run and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex

import click
import pytest

from syncd.cli.main import memex, run_command
from syncd.settings.access import LimitsSettings
from syncd.settings.settings import ServerSettings, SyncSettings
from tests.documents import terminal_picture
from tests.documents.page_blocks import Block, blocks, missing_lines, pages
from tests.support.local_daemon import serving
from tests.support.paths import ROOT
from tests.support.sample_files import docx, pdf
from tests.support.world import settings_of, until

SHELL = [
    block
    for page in pages()
    for block in blocks(page)
    # The examples of the reference are those of `--help`: their ids and files stand for the reader's own.
    if block.language == "sh" and not block.page.startswith("docs/reference/commands/")
]
MARKED = [block for block in SHELL if block.mark == "runs"]
ON_THE_DEMO = [block for block in SHELL if block.mark == "runs on the demo vault"]
FILES = {
    "Documents/Manuals/Stove.md": "The stove burns wood.\n",
    "memory.json": '{"type": "entity", "name": "Rhine", "entityType": "river", "observations": ["Flows north"]}\n',
    "Backups/older.txt": "",
}
NOTE = "---\ntags: [home]\n---\nThe heat pump stands in the cellar. Its maker is Nordwind.\n"


def commands(group: click.Group = memex, words: tuple[str, ...] = ()):
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


KNOWN = dict(commands())


def written():
    """Every command of the pages: in blocks of sh, and in backticks."""
    for page in pages():
        for block in blocks(page):
            if block.language == "sh":
                for line in block.commands:
                    if line.startswith("memex "):
                        yield f"{block.page}:{block.line}", re.sub(r"\s[|<>].*|\s\"?\$\(.*", "", line)
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for span in re.findall(r"`(memex [^`\n]+)`", text):
            yield page.name, span


def test_every_command_of_the_pages_exists_with_its_options():
    wrong = []
    for where, line in written():
        words = shlex.split(line)
        command = next((KNOWN[tuple(words[1:n])] for n in (3, 2) if tuple(words[1:n]) in KNOWN), memex)
        options = {option for param in command.params for option in param.opts} | {"--help", "--version"}
        options |= {option for param in memex.params for option in param.opts}
        unknown = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} - options
        if unknown or (command is memex and len(words) > 1 and words[1].isalpha() and words[1].islower()):
            wrong.append((where, line, unknown))
    assert wrong == []


def test_every_block_of_commands_runs_or_says_which_test_runs_it_or_why_none_can():
    unmarked = []
    for block in SHELL:
        runner = re.fullmatch(r"run by (tests/\S+\.py)", block.mark)
        if runner:
            text = (ROOT / runner[1]).read_text(encoding="utf-8")
            words = {shlex.split(line)[1] for line in block.commands if line.startswith(("memex ", "make "))}
            assert [word for word in words if word not in text] == [], f"{block.page}:{block.line}"
        elif block not in (*MARKED, *ON_THE_DEMO) and not re.match(r"prints$|runs in no test: \w", block.mark):
            unmarked.append(f"{block.page}:{block.line}")
    assert unmarked == []


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home folder with a vault that is set up and served, as the page on getting started leaves it."""
    folder = tmp_path_factory.mktemp("home")
    vault = folder / "MyVault"
    (vault / "Home").mkdir(parents=True)
    (vault / "Home/Heat pump.md").write_text(NOTE, encoding="utf-8")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "report.pdf").write_bytes(pdf(["The heat pump was serviced in May."]))
    (folder / "Minutes").mkdir()
    (folder / "Minutes/May.docx").write_bytes(docx("<w:p><w:r><w:t>The pump stays.</w:t></w:r></w:p>"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith(("XDG_", "MEMEX_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(folder))
        patch.setenv("GIT_AUTHOR_NAME", "Ann")
        patch.setenv("GIT_AUTHOR_EMAIL", "ann@example.org")
        patch.setenv("GIT_COMMITTER_NAME", "Ann")
        patch.setenv("GIT_COMMITTER_EMAIL", "ann@example.org")
        assert run("memex init ~/MyVault --git")[0] == 0
        (state,) = (folder / ".local/state/memex").iterdir()
        assert run("memex init ~/work --create --git off")[0] == 0
        limits, sync = LimitsSettings(rate=0), SyncSettings(listing_s=3600.0)
        with serving(settings_of(vault, state, server=ServerSettings(port=0), limits=limits, sync=sync)):
            assert run("memex use ~/MyVault")[0] == run("memex workspace create work")[0] == 0
            yield folder


def run(line: str) -> tuple[int, str]:
    """The exit code of a command of `memex`, and all that it printed."""
    words = [re.sub(r"^~(?=/)", os.environ["HOME"], word) for word in shlex.split(line)]
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run_command(words[1:])
    return code, printed.buffer.getvalue().decode()


@pytest.mark.parametrize("block", MARKED, ids=lambda block: f"{block.page.removeprefix('docs/')}:{block.line}")
def test_the_commands_run_and_print_what_the_page_shows(home, block: Block):
    printed = ""
    assert run("memex use ~/MyVault")[0] == 0
    for line in block.commands:
        assert line.startswith("memex "), f"only commands of memex run here: {line}"
        if re.fullmatch(
            r"memex connect [a-z][a-z-]*", line
        ):  # a page shows two ways to connect, and its reader takes one
            assert run(f"{line} --remove")[0] == 0
        code, text = run(line)
        if code == 5 and "changed" in text:  # an edit that is not indexed yet: the page's reader is slower than a test
            until(lambda line=line: run(line)[0] == 0, 20)
        assert code == 0, f"{line}\n{text}"
        printed += text
    assert missing_lines(block.output, printed) == []


@pytest.fixture(scope="module")
def demo():
    """The environment of a shell beside the demo vault, served with the bundled model."""
    with terminal_picture.served_demo(port=0) as environment:
        yield environment


@pytest.mark.slow
@pytest.mark.parametrize("block", ON_THE_DEMO, ids=lambda block: f"{block.page}:{block.line}")
def test_the_commands_print_on_the_demo_vault_what_the_page_shows(demo, block: Block):
    printed = "".join(terminal_picture.run_at_terminal(line, demo) for line in block.commands)
    assert missing_lines(block.output, re.sub(r"\x1b\[[0-9;]*m", "", printed)) == []


def test_commands_run_on_most_pages_that_show_some():
    shown = {
        block.page for page in pages() for block in blocks(page) if block.language == "sh" and "memex " in block.text
    }
    assert len({block.page for block in MARKED}) >= 6, shown
