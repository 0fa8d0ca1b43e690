"""The help of every command: complete, with examples that the program takes, and as a manual page."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import click
import pytest

from syncd.cli.framework.command_outcome import EXIT
from syncd.cli.framework.help_text import EXAMPLES, SHARED, first_sentence
from syncd.cli.framework.help_topics import EXIT_CODES, GROUPS
from syncd.cli.main import memex, run_command
from syncd.cli.manual_page import render_manual


def commands(group=memex, words=()):
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


LEAVES = {" ".join(words): command for words, command in commands() if not isinstance(command, click.Group)}


def parsed(words):
    """The command that a line names, once its values have been taken; the line is refused as the program would."""
    ctx, command = click.Context(memex, info_name="memex"), memex
    while isinstance(command, click.Group):
        name, command, words = command.resolve_command(ctx, words)
        ctx = click.Context(command, info_name=name, parent=ctx)
    try:
        command.make_context(name, list(words), parent=ctx.parent)
    except click.BadParameter as error:
        assert "does not exist" in error.message  # an example's folder is not on this machine
    return command


def line_of(example):
    """The part of an example that is memex's own."""
    words = list(shlex.shlex(example, posix=True, punctuation_chars="<>|"))
    if words[0] == "eval":
        return shlex.split(words[1].removeprefix("$(").removesuffix(")"))[1:]
    lexed = shlex.split(example)
    end = next((at for at, word in enumerate(lexed) if word in ("<", ">", "|")), len(lexed))
    return lexed[1:end]


def test_every_command_has_examples_that_the_program_takes():
    without = [path for path in LEAVES if not EXAMPLES.get(path)]
    assert without == [], "give these commands an example in syncd/cli/framework/help_text.py"
    examples = [(path, line, does) for path in LEAVES for line, does in EXAMPLES[path]]
    assert [line for path, line, _ in examples if parsed(line_of(line)) is not LEAVES[path]] == []
    assert [line for _, line, does in examples if not does] == []


def test_the_examples_of_memex_itself_are_taken_too():
    for line, _ in EXAMPLES[""]:
        assert parsed(line_of(line)) in LEAVES.values()


@pytest.mark.parametrize("path", LEAVES)
def test_help_is_complete(path, capsys):
    assert run_command([*path.split(), "--help"]) == 0
    text = capsys.readouterr().out
    for section in ("Usage:", f"{SHARED}:", "Examples:"):
        assert section in text, section
    assert "Exit codes:" not in text, "`memex help exit-codes` has them"
    assert text.count("  memex ") <= 2 + text.partition("Examples:")[0].count("  memex "), "two examples"
    if any(isinstance(param, click.Argument) for param in LEAVES[path].params):
        assert text.index("Arguments:") < text.index("Examples:")
    assert "Options:" not in text or text.index("Examples:") < text.index("Options:")
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[2].strip()


def test_a_default_that_means_something_is_shown():
    options = [(path, param) for path in LEAVES for param in LEAVES[path].params if isinstance(param, click.Option)]
    given = [
        (path, option)
        for path, option in options
        if isinstance(option.default, str | int | float) and not option.is_flag and option.default != ""
    ]
    assert len(given) > 10
    assert [(path, option.name) for path, option in given if not option.show_default] == []


def test_every_command_has_a_first_sentence_that_is_whole(capsys):
    assert run_command(["--help"]) == 0
    assert "..." not in capsys.readouterr().out.partition("Every day:")[2].partition("Options")[0]
    assert all(
        first_sentence(command)[0].isupper() and first_sentence(command).endswith(".") for command in LEAVES.values()
    )


def test_memex_itself_groups_its_commands_and_names_the_topics_of_help(capsys):
    assert run_command(["--help"]) == 0
    text = capsys.readouterr().out
    at = [text.index(f"{title}:") for title in GROUPS]
    assert at == sorted(at)
    assert all(f"`memex help {topic}`" in " ".join(text.split()) for topic in ("exit-codes", "environment", "files"))
    assert {number for number, _ in EXIT_CODES} >= {str(number) for number in EXIT.values()}


def test_the_manual_page_has_every_command():
    page = render_manual("1.0")
    for path in LEAVES:
        assert f'.SS "memex {path}"' in page
    assert all(
        f".SH {title}" in page
        for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXAMPLES", "EXIT CODES", "ENVIRONMENT", "FILES")
    )


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_typeset_without_a_warning(tmp_path):
    (tmp_path / "memex.1").write_text(render_manual("1.0"))
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", "-K", "utf8", str(tmp_path / "memex.1")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
