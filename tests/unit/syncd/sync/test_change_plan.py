"""What has changed between the catalog's memory and the vault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.document_ids import path_id
from index.model import Entry, Stat
from syncd.sync.change_plan import (
    AddedNote,
    ModifiedNote,
    MovedNote,
    Plan,
    ReadFile,
    RemovedNote,
    compare_stats,
    is_mass_removal,
    plan_changes,
)
from syncd.vault.path_rules import is_below


def stat(ino=1, size=1, mtime_ns=1):
    return Stat(size, mtime_ns, ino)


def entry(path, digest="d", *, own=None, ino=1, embedded=True):
    return Entry(path, own or path_id(path), digest, stat(ino), embedded)


def seen(digest="d", *, claims=None, ino=1):
    return ReadFile(digest, claims, stat(ino))


def manifest(*entries):
    return {item.path: item for item in entries}


SURVEYS = [
    pytest.param({"a": stat()}, [], None, (["a"], [], 0), id="a new file"),
    pytest.param({"a": stat()}, [entry("a")], None, ([], [], 1), id="nothing new"),
    pytest.param({"a": stat(size=2)}, [entry("a")], None, (["a"], [], 0), id="another size"),
    pytest.param({"a": stat(mtime_ns=2)}, [entry("a")], None, (["a"], [], 0), id="another time"),
    pytest.param({"a": stat(ino=2)}, [entry("a")], None, (["a"], [], 0), id="another inode"),
    pytest.param({}, [entry("a")], None, ([], ["a"], 0), id="gone"),
    pytest.param({"a": stat()}, [entry("a", "")], None, (["a"], [], 0), id="a forgotten digest"),
    pytest.param({"a": stat()}, [entry("a", embedded=False)], None, (["a"], [], 0), id="without vectors"),
    pytest.param({}, [entry("x/a"), entry("y/a")], ["x"], ([], ["x/a"], 0), id="missing counts only where one looked"),
    pytest.param({"x": stat(), "y": stat()}, [], ["x"], (["x"], [], 0), id="suspects only where one looked"),
    pytest.param({}, [entry("xy/a"), entry("x")], ["x"], ([], ["x"], 0), id="a folder's name is no prefix"),
    pytest.param({}, [entry("x/a")], [""], ([], ["x/a"], 0), id="the root is everything"),
    pytest.param({}, [entry("x/a")], [], ([], [], 0), id="nowhere is nothing"),
]


@pytest.mark.parametrize(("files", "known", "under", "expected"), SURVEYS)
def test_a_survey_tells_by_stat_what_to_read_and_what_is_missing(files, known, under, expected):
    found = compare_stats(files, manifest(*known), under=under)
    assert (found.suspects, found.missing, found.unchanged) == expected


def test_a_note_without_vectors_waits_until_an_encoder_is_ready():
    known = manifest(entry("a", embedded=False))
    assert compare_stats({"a": stat()}, known, embedded=False).suspects == []
    assert plan_changes({"a": seen()}, [], known, embedded=False).changes == []
    assert plan_changes({"a": seen()}, [], known).changes == [ModifiedNote("a")]


PLANS = [
    pytest.param({"a": seen()}, [], [], [AddedNote("a")], id="added"),
    pytest.param({"a": seen("e")}, [], [entry("a")], [ModifiedNote("a")], id="modified"),
    pytest.param({"a": seen()}, [], [entry("a", "")], [ModifiedNote("a")], id="a forgotten digest equals none"),
    pytest.param({}, ["a"], [entry("a")], [RemovedNote("a")], id="removed"),
    pytest.param({}, ["a"], [], [], id="missing, but never known"),
    pytest.param({"a": seen()}, ["a"], [entry("a")], [], id="missing, but back when it was read"),
    pytest.param({"b": seen()}, ["a"], [entry("a")], [MovedNote("a", "b")], id="renamed"),
    pytest.param({"b": seen("e")}, ["a"], [entry("a")], [AddedNote("b"), RemovedNote("a")], id="renamed and edited"),
    pytest.param({"b": seen()}, [], [entry("a")], [AddedNote("b")], id="copied"),
    pytest.param(
        {"a": seen("e"), "b": seen("d")},
        [],
        [entry("a", "d"), entry("b", "e")],
        [ModifiedNote("a"), ModifiedNote("b")],
        id="swapped",
    ),
    pytest.param(
        {"b": seen(), "c": seen()},
        ["a"],
        [entry("a")],
        [MovedNote("a", "b"), AddedNote("c")],
        id="moved and copied: one pair",
    ),
    pytest.param(
        {"b": seen(claims="b's"), "c": seen(claims="me")},
        ["a"],
        [entry("a", own="me")],
        [MovedNote("a", "c"), AddedNote("b")],
        id="the claimed id decides",
    ),
    pytest.param(
        {"b/x": seen(ino=7), "c/a": seen(ino=8)},
        ["a"],
        [entry("a", ino=7)],
        [MovedNote("a", "c/a"), AddedNote("b/x")],
        id="then the file's name",
    ),
    pytest.param(
        {"b": seen(ino=8), "c": seen(ino=7)},
        ["a"],
        [entry("a", ino=7)],
        [MovedNote("a", "c"), AddedNote("b")],
        id="then the inode",
    ),
    pytest.param(
        {"n/1": seen(), "n/2": seen()},
        ["o/1", "o/2"],
        [entry("o/1"), entry("o/2")],
        [MovedNote("o/1", "n/1"), MovedNote("o/2", "n/2")],
        id="a folder of equal notes keeps its order",
    ),
    pytest.param(
        {"z/x": seen("d"), "b": seen("e")},
        ["k/x", "m"],
        [entry("k/x", "d"), entry("m", "e")],
        [MovedNote("m", "b"), MovedNote("k/x", "z/x")],
        id="moves come in order of the new path, however close the likeness",
    ),
]


@pytest.mark.parametrize(("now", "missing", "known", "expected"), PLANS)
def test_a_plan_names_each_change_once(now, missing, known, expected):
    assert plan_changes(now, missing, manifest(*known)).changes == expected


def test_the_same_bytes_with_a_new_stat_are_touched_not_modified():
    known = manifest(entry("a"), entry("b"))
    assert plan_changes({"a": seen(ino=9), "b": seen()}, [], known) == Plan([], {"a": stat(9)}, 2)


@pytest.mark.parametrize(
    ("path", "folders", "wanted"),
    [
        pytest.param("x/y/z", {"x"}, True, id="deep below"),
        pytest.param("/x/y", {"z"}, False, id="from the root of the disk"),
        pytest.param("/x", {"x"}, False, id="a slash in front is part of the name"),
        pytest.param("x/y/z", {"y", "x/z"}, False, id="beside"),
    ],
)
def test_a_path_is_below_the_folders_that_it_begins_with(path, folders, wanted):
    assert is_below(path, folders) is wanted


@pytest.mark.parametrize(
    ("missing", "known", "held"),
    [
        pytest.param(0, 0, False, id="an empty vault"),
        pytest.param(19, 19, False, id="a small vault is never held"),
        pytest.param(9, 20, False, id="less than the share"),
        pytest.param(10, 20, True, id="the share"),
        pytest.param(600, 1000, True, id="most of a vault"),
        pytest.param(0, 1000, False, id="nothing missing"),
    ],
)
def test_a_mass_removal_is_held(missing, known, held):
    assert is_mass_removal(missing, known, share=0.5) is held
    assert not is_mass_removal(0, known, share=0.0)
    assert is_mass_removal(1, 20, share=0.05)


# -- laws ---------------------------------------------------------------------------------------------------------

paths = st.sampled_from(["a", "b", "c", "x/a", "x/b", "y/a", "y/z/a", "xa"])
digests = st.sampled_from(["d", "e", "f"])
files = st.dictionaries(
    paths, st.builds(ReadFile, digests, st.sampled_from([None, "1", "2"]), st.builds(stat, st.integers(1, 3)))
)
known = st.dictionaries(paths, st.tuples(digests, st.sampled_from([None, "1", "2"]), st.integers(1, 3), st.booleans()))


def entries(table):
    return {p: entry(p, d, own=i, ino=n, embedded=e) for p, (d, i, n, e) in table.items()}


def apply(made, now, before):
    """The manifest after the changes, as path -> digest."""
    after = {path: item.digest for path, item in before.items()}
    for change in made.changes:
        match change:
            case AddedNote(path):
                assert path not in after
                after[path] = now[path].digest
            case ModifiedNote(path):
                assert path in after
                after[path] = now[path].digest
            case MovedNote(old, new):
                assert new not in after
                after[new] = after.pop(old)
            case RemovedNote(path):
                del after[path]
    return after


@given(files, known)
def test_the_changes_applied_to_the_manifest_give_the_listing(now, table):
    before = entries(table)
    found = compare_stats({path: item.stat for path, item in now.items()}, before)
    # the stat is trusted for what is not a suspect, so such a file must hold what it held
    now = now | {p: ReadFile(before[p].digest, None, before[p].stat) for p in now if p not in found.suspects}
    made = plan_changes({path: now[path] for path in found.suspects}, found.missing, before)
    assert apply(made, now, before) == {path: item.digest for path, item in now.items()}
    assert found.unchanged + made.unchanged + sum(not isinstance(c, RemovedNote) for c in made.changes) == len(now)


@given(files, known, st.sets(st.sampled_from(["a", "x", "x/a", "y", "y/z", "q"])))
def test_a_survey_of_some_folders_changes_nothing_elsewhere(now, table, under):
    before = entries(table)
    found = compare_stats({path: item.stat for path, item in now.items()}, before, under=under)
    made = plan_changes({path: now[path] for path in found.suspects}, found.missing, before)
    after = apply(made, now, before)
    outside = {path: item.digest for path, item in before.items() if not is_below(path, under)}
    assert {path: digest for path, digest in after.items() if not is_below(path, under)} == outside


@given(files, known)
def test_equal_inputs_in_any_order_give_equal_plans(now, table):
    before = entries(table)
    gone = [path for path in before if path not in now]
    backwards = plan_changes(dict(reversed(now.items())), gone[::-1], dict(reversed(before.items())))
    assert plan_changes(now, gone, before) == backwards


@given(files, known)
def test_changes_come_by_kind_and_each_kind_in_order_of_path(now, table):
    before = entries(table)
    changes = plan_changes(now, [path for path in before if path not in now], before).changes
    kinds = [MovedNote, AddedNote, ModifiedNote, RemovedNote]
    assert changes == sorted(
        changes, key=lambda c: (kinds.index(type(c)), c.new if isinstance(c, MovedNote) else c.path)
    )


def test_equal_notes_are_paired_in_order_of_path_whatever_the_order_they_come_in():
    olds = ["a/1", "b/2", "c/3"]
    ordered = [MovedNote("a/1", "x/7"), MovedNote("b/2", "y/8"), MovedNote("c/3", "z/9")]
    for turn in range(3):
        before = manifest(*(entry(path) for path in olds[turn:] + olds[:turn]))
        now = {path: seen(ino=5) for path in ("y/8", "x/7", "z/9")}
        assert plan_changes(now, olds[::-1], before).changes == ordered


@pytest.mark.slow
@pytest.mark.timeout(60)  # linear: some tenths of a second; quadratic: minutes
def test_a_folder_of_many_equal_notes_is_paired_without_comparing_each_with_each():
    before = manifest(*(entry(f"old/{n:05}.md") for n in range(20_000)))
    made = plan_changes({f"new/{n:05}.md": seen(ino=5) for n in range(20_000)}, list(before), before)
    assert made.changes == [MovedNote(f"old/{n:05}.md", f"new/{n:05}.md") for n in range(20_000)]
