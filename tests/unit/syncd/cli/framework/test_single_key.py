"""syncd/cli/framework/single_key.py: keys of a real terminal."""

from __future__ import annotations

import os
import pty
import termios
from pathlib import Path

import pytest

from syncd.cli.framework.single_key import END, has_single_keys, read_single_key


@pytest.fixture
def terminal(monkeypatch):
    leader, follower = pty.openpty()
    stdin = os.fdopen(follower, "r")
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setenv("TERM", "xterm")
    yield leader
    os.close(leader)
    stdin.close()


@pytest.mark.parametrize(
    ("typed", "keys"),
    [("a", ["a"]), ("ad", ["a", "d"]), ("é日", ["é", "日"]), ("\x1b[A", ["\x1b[A"]), ("\n", ["\n"]), ("\x04", [END])],
)
def test_each_key_is_one_also_what_was_typed_before_the_question(terminal, capsys, typed, keys):
    os.write(terminal, typed.encode())
    assert has_single_keys()
    assert [read_single_key("? ") for _ in keys] == keys
    assert capsys.readouterr().out == "? " * len(keys)


def test_the_terminal_is_as_before_afterwards(terminal):
    before = termios.tcgetattr(terminal)
    os.write(terminal, b"x")
    read_single_key("")
    assert termios.tcgetattr(terminal) == before


def test_where_there_is_no_terminal_or_a_dumb_one_there_are_no_single_keys(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert not has_single_keys()
    with Path(os.devnull).open() as nothing:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stdin", nothing)
        assert not has_single_keys()
