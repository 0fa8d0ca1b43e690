"""Merging a proposed change with what its note became, by Git itself."""

from __future__ import annotations

import shutil

import pytest

from index.errors import Unavailable
from syncd.changes.three_way_merge import merge

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
BASE = b"one\ntwo\nthree\nfour\nfive\n"


def test_changes_of_different_lines_are_joined():
    merged = merge(b"zero\n" + BASE, BASE, BASE.replace(b"five", b"5"))
    assert merged.is_clean
    assert merged.text == b"zero\none\ntwo\nthree\nfour\n5\n"


def test_changes_of_the_same_line_are_marked_with_all_three_texts():
    merged = merge(BASE.replace(b"two", b"2"), BASE, BASE.replace(b"two", b"II"))
    assert not merged.is_clean
    assert merged.text == (
        b"one\n<<<<<<< now\n2\n||||||| before\ntwo\n=======\nII\n>>>>>>> proposed\nthree\nfour\nfive\n"
    )


def test_line_ends_of_windows_stay():
    base = BASE.replace(b"\n", b"\r\n")
    assert merge(b"zero\r\n" + base, base, base.replace(b"five", b"5")).text.count(b"\r\n") == 6


def test_a_text_that_git_can_not_merge_is_an_error():
    with pytest.raises(Unavailable, match="see whether it is text"):
        merge(b"a\0", b"b", b"c")


def test_without_git_there_is_no_merge(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="could not be started"):
        merge(b"a", b"b", b"c")
