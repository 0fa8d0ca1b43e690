"""syncd/page/web/desktop.py: the desktop's program gets the path and nothing else; without a desktop nothing starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from syncd.page.web.desktop import can_open_files, open_file


@pytest.fixture
def opener(tmp_path, monkeypatch):
    """The desktop's opener, which notes its arguments and ends with the code in a file."""
    file = tmp_path / ("open" if sys.platform == "darwin" else "xdg-open")
    file.write_text('#!/bin/sh\nprintf "%s|" "$@" > "$0.arguments"\nexit "$(cat "$0.code")"\n')
    file.chmod(0o700)
    Path(f"{file}.code").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":9")
    return file


def test_the_opener_gets_the_path_alone(opener, tmp_path):
    assert can_open_files()
    assert open_file(tmp_path / "a b;c.toml")
    assert Path(f"{opener}.arguments").read_text() == f"{tmp_path}/a b;c.toml|"


def test_a_failure_and_a_path_that_could_be_an_option_are_not_opened(opener, tmp_path):
    Path(f"{opener}.code").write_text("4")
    assert not open_file(tmp_path / "x.toml")
    Path(f"{opener}.arguments").unlink()
    assert not open_file(Path("--version"))
    assert not Path(f"{opener}.arguments").exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS always has a desktop")
def test_without_a_display_nothing_can_be_opened(opener, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not can_open_files()
    assert not open_file(tmp_path / "x.toml")
