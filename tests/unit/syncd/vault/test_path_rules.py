"""What a name means: tables and laws."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.vault.path_rules import (
    CONFLICT_COPY,
    compile_ignore_patterns,
    file_name,
    find_collisions,
    is_ignored,
    is_temporary,
    name_behind_placeholder,
    objection,
    path_behind_placeholder,
    patterns_objection,
    placeholder_path,
    temporary_name,
    to_printable,
)

ANY_NAME = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40)
ANY_TEXT = st.text(st.characters(), max_size=40)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".obsidian/app.json", ".trash/Old.md", "a/.stversions/x.md", ".smart-env/x.md", "node_modules/a/README.md",
        ".#Note.md", "Note.md~", "a/.Note.md.swp", "Note.md.swp", "4913", "a/4913", ".syncthing.Note.md.tmp", "~syncthing~Note.md.tmp",
        "Note.md.tmp", ".memex-0123456789abcdef.tmp", ".Note.md.icloud", "conflict-files-obsidian-git.md", ".hidden.md", "a/.b/c.md",
    ],
)  # fmt: skip
def test_noise_is_ignored(path):
    assert is_ignored(path)


@pytest.mark.parametrize(
    "path",
    [
        "Note.md", "a/b/Note.md", "Note.sync-conflict-20260101-101010-ABCDEFG.md", "Old~/Note.md", "x.tmp/Note.md", "git/Note.md",
        "4913/Note.md", "a.b/c.md", "v1.2.md", "Ende....md", "My node_modules/x.md", "# C.md", "日本.md",
    ],
)  # fmt: skip
def test_a_persons_own_names_are_not(path):
    assert not is_ignored(path)


def test_a_folder_that_ends_like_a_passing_file_is_not_noise():
    for path in ("Old~", "a/x.tmp", "4913"):
        assert is_ignored(path)
        assert not is_ignored(path, folder=True)
        assert not is_ignored(f"{path}/n.md")
    assert is_ignored(".git", folder=True)
    assert is_ignored("a/node_modules", folder=True)


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/etc/passwd", "..", "../x.md", "a/../../x.md", "a/..", "./a.md", "a//b.md", "a/", "a/./b.md", "x\0.md", "a\udce9.md",
        ".git/hooks/post-commit", "a/.git/config", ".GIT/config", ".Git", "GIT~1/config", "git~2", ".g\u200cit/config", ".git\u200d/x",
        ".git./config", ".git /config",
    ],
)  # fmt: skip
def test_some_paths_are_not_even_read(path):
    assert objection(path, reading=True)
    assert objection(path)
    assert objection(path, new=True)


@pytest.mark.parametrize(
    "path",
    [
        ".obsidian/plugins/x/main.js",
        ".trash/x.md",
        "a/.hidden/x.md",
        "\u200b.x\u200c/.y.md",
        "\ufeff.obsidian/x",
        "x.md.tmp",
        "node_modules/x.md",
    ],
)
def test_hidden_and_foreign_places_are_never_written(path):
    assert objection(path)
    assert objection(path, new=True)


@pytest.mark.parametrize(
    "path",
    [
        "a\nb.md", "a\tb.md", "a\x7f.md", "a\x85b.md", "a\u2028b.md", "\u202egnp.md", "a\\b.md", "..\\x.md", "-rf", "-rf.md", " x.md",
        "x /y.md", "x./y.md", "x.md.", "con", "CON.md", "a/nul.md", "com1.md", "LPT9.x.md", "a/aux/x.md", "é" * 128 + ".md", "a/" * 600 + "x.md",
    ],
)  # fmt: skip
def test_some_names_are_read_and_edited_but_never_made(path):
    assert objection(path, new=True)
    assert not objection(path, reading=True)


@pytest.mark.parametrize(
    "path",
    [
        "Note.md",
        "a/b c/日本語 👩‍👩‍👧.md",
        "console.md",
        "what? #1 [x]|y.md",
        "v1..2.md",
        "名" * 84 + ".md",
        "git.md",
        "~x.md",
    ],
)
def test_ordinary_names_are_made(path):
    assert not objection(path, new=True)


@given(ANY_TEXT)
def test_whoever_may_make_a_path_may_change_and_read_it(path):
    if not objection(path, new=True):
        assert not objection(path)
    if not objection(path):
        assert not objection(path, reading=True)


@given(st.lists(ANY_NAME | st.sampled_from(["..", ".", ".git", ".obsidian", "a"]), min_size=1, max_size=5))
def test_a_path_that_is_written_has_no_way_up_and_no_hidden_part(parts):
    path = "/".join(parts)
    if not objection(path):
        assert not path.startswith("/")
        assert not any(part in ("", "..") or part.startswith(".") for part in path.split("/"))
        assert not is_ignored(path)


@given(ANY_TEXT)
def test_what_is_printed_is_unicode(path):
    for name in (path, path.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")):
        to_printable(name).encode()
        assert to_printable(to_printable(name)) == to_printable(name)


@given(st.integers(0, 2**64 - 1))
def test_our_temporary_names_are_ignored_and_known(token):
    name = temporary_name(f"{token:016x}")
    assert is_temporary(name)
    assert is_ignored(f"a/{name}")
    assert not is_temporary("x" + name)
    assert not is_temporary(name + "\n")


def test_only_our_own_leftovers_are_ours():
    assert not any(
        is_temporary(name)
        for name in (
            ".x.tmp",
            ".memex-1.tmp",
            ".memex-0123456789ABCDEF.tmp",
            ".memex-0123456789abcdef.tmp.md",
            ".syncthing.a.md.tmp",
        )
    )


def test_a_placeholder_names_the_note_it_stands_for():
    assert name_behind_placeholder(".Note.md.icloud") == "Note.md"
    assert name_behind_placeholder(".photo.png.icloud") is None
    assert name_behind_placeholder("Note.md.icloud") is None
    assert placeholder_path("a/Note.md") == "a/.Note.md.icloud"
    assert placeholder_path("Note.md") == ".Note.md.icloud"
    assert path_behind_placeholder("a/.photo.png.icloud") == "a/photo.png"
    assert [path_behind_placeholder(path) for path in ("a/Note.md", "x.icloud", ".icloud", "a/.b/c.md")] == [
        "a/Note.md",
        "x.icloud",
        ".icloud",
        "a/.b/c.md",
    ]


def test_twins_differ_in_letter_case_or_unicode_form_only():
    nfc, nfd = "a/café.md", unicodedata.normalize("NFD", "a/café.md")
    assert find_collisions([nfc, "x.md", "Note.md", nfd, "note.md"]) == [
        ("Note.md", "note.md"),
        tuple(sorted((nfc, nfd))),
    ]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        pytest.param(
            "Templates",
            ["Templates", "Templates/a.md", "x/Templates/a.md"],
            ["Templates2/a.md", "templates/a.md"],
            id="a name",
        ),
        pytest.param("Templates/", ["Templates/a.md"], ["a.md"], id="a folder"),
        pytest.param("/Templates", ["Templates/a.md"], ["x/Templates/a.md"], id="from the root"),
        pytest.param("a/b", ["a/b", "a/b/c.md"], ["x/a/b", "a/bc", "a"], id="a path"),
        pytest.param("a/*/c", ["a/x/c/d.md"], ["a/x/y/c"], id="a star is one name"),
        pytest.param("a/**", ["a/x.md", "a/x/y.md"], ["a", "x/a/y.md"], id="two stars at the end"),
        pytest.param("a/**/c", ["a/c", "a/x/c/d.md", "a/x/y/c"], ["a", "a/x", "x/a/c", "a/xc"], id="two stars inside"),
        pytest.param("**/a", ["a/x.md", "x/a", "x/y/a/z.md"], ["x/ab", "b/x.md"], id="two stars in front"),
        pytest.param("/**/a/**/b/**", ["a/b/x", "x/a/y/b/z.md"], ["a/b", "b/a/x"], id="several times two stars"),
        pytest.param("/**", ["a.md", "a/b.md"], [], id="everything"),
        pytest.param("a**/c", ["a/c", "ax/c"], ["a/x/c"], id="two stars within a name"),
        pytest.param(
            "*.excalidraw.md",
            ["x.excalidraw.md", "a/b.excalidraw.md"],
            ["excalidraw.md", "xexcalidraw.md"],
            id="an ending",
        ),
        pytest.param("v?.md", ["v1.md", "a/v2.md"], ["v10.md", "v/.md"], id="one letter"),
        pytest.param("[x].md", ["[x].md"], ["x.md"], id="a bracket is a bracket"),
        pytest.param("cafe\u0301", ["café/x.md", "cafe\u0301/x.md"], ["cafe/x.md"], id="either Unicode form"),
        pytest.param(" ", [], ["a.md", "a/b.md", " "], id="nothing"),
    ],
)
def test_a_pattern_leaves_out_what_it_says(pattern, yes, no):
    ignores = compile_ignore_patterns([pattern])
    assert [path for path in yes if not ignores(path)] == []
    assert [path for path in no if ignores(path)] == []


@pytest.mark.parametrize("pattern", ["/", "./Private", "../Private", "a//b", "a/../b", "."])
def test_a_pattern_that_matches_no_path_is_refused_by_name(pattern):
    assert patterns_objection(["Private", pattern]).startswith(f"contains {pattern!r}, which matches no note: ")


@pytest.mark.parametrize(
    "pattern", ["Private", " Private/ ", "/Private", "Diary/**", "*", "v?.md", "...", ".hidden", "", " "]
)
def test_a_pattern_that_may_match_or_is_blank_is_accepted(pattern):
    assert patterns_objection([]) == patterns_objection([pattern]) == ""


@given(st.lists(ANY_TEXT, max_size=4), ANY_NAME)
def test_no_pattern_breaks_the_listing(patterns, path):
    ignores = compile_ignore_patterns(patterns)
    assert ignores(path) in {True, False}
    assert ignores(f"{path}/below.md") >= ignores(path), "what lies below an ignored folder is ignored"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Meeting notes (conflicted copy)", "Meeting notes"),
        ("Plan (Ann's conflicted copy 2026-01-01).sync-conflict-20260101-101010-ABCDEFG", "Plan"),
        ("AGENTS (SFConflict a@b 2026-01-01)", "AGENTS note"),
        ("Report_conflict-20260101-101010", "Report"),
        ("A (conflicted copy) of the plan", "A (conflicted copy) of the plan"),
        ("A title that is cut where a mark of a conflict copy ends, at its eighty (conflicted copy) so", None),
    ],
)
def test_the_name_of_a_note_is_never_that_of_a_conflict_copy(title, name):
    assert not CONFLICT_COPY.search(f"{file_name(title)}.md")
    assert name in {None, file_name(title)}


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("word " * 15 + "longest of all", ("word " * 15).strip()),
        ("word " * 15 + "whole and more", "word " * 15 + "whole"),
        ("x" * 100, "x" * 80),
        ("短い " + "長" * 100, "短い " + "長" * 64),  # at most 200 bytes
        ("word " * 15 + "v1.2.3-beta", "word " * 15 + "v1.2"),
    ],
)
def test_a_long_title_becomes_a_name_that_ends_with_a_whole_word(title, name):
    assert file_name(title) == name
    assert file_name(name) == name
