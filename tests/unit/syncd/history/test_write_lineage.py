"""A file's history from its entries: what stands, how far it can be taken back, and who wrote it."""

from __future__ import annotations

import pytest

from syncd.history.digest_chain import Entry
from syncd.history.write_lineage import (
    ARCHIVED,
    EDITED,
    GONE,
    PROMOTED,
    THERE,
    Writer,
    find_additions,
    find_creator,
    find_last_call,
    find_last_editor,
    find_undo_reach,
    writes_in_force,
)


def entries(*steps):
    """One for each "who before after", numbered from 1: `a` an agent, `b` another, `c` a command, `d` the daemon, `h` by hand.

    `u2 …` is an undo to before entry 2, `x2 …` says that entry 2 came to nothing."""
    return [entry(number, *step.split(",")) for number, step in enumerate(steps, 1)]


def entry(seq, who, before, after):
    surface, tool, name = {
        "a": ("mcp", "update", "ann"),
        "b": ("rest", "update", "bob"),
        "c": ("cli", "updatenote", ""),
        "d": ("daemon", "adoption", ""),
        "p": ("daemon", "consolidation", ""),
        "q": ("daemon", "promote", ""),
        "r": ("daemon", "archive", ""),
        "s": ("cli", "review.dismiss", ""),
        "t": ("daemon", "drag", ""),
        "h": ("file", "", ""),
        "u": ("cli", "undo", ""),
        "x": ("mcp", "update", "ann"),
        "k": ("mcp", "update", "ann"),
    }[who[0]]
    kind = {"x": "undone", "k": "kept"}.get(who[0]) or ("create" if not before else "update" if after else "delete")
    undoes = int(who[1:] or 0)
    return Entry(
        seq,
        1000 + seq,
        kind,
        surface,
        tool,
        f"r{seq}",
        name,
        name,
        "" if who == "t" else "default",
        "note",
        "i",
        "p",
        1,
        before,
        after,
        undoes=undoes,
    )


def seqs(found):
    return [one.seq for one in found]


@pytest.mark.parametrize(
    ("given", "taken", "stands"),
    [
        pytest.param(["a,,1", "a,1,2"], (), [1, 2], id="two writes"),
        pytest.param(["a,,1", "a,1,2", "x2,2,1"], (), [1], id="one came to nothing"),
        pytest.param(["a,,1", "a,1,2", "d,1,3", "x2,2,1"], (), [1, 3], id="another came in between"),
        pytest.param(["a,,1", "a,1,2", "u2,2,1"], (), [1], id="one taken back"),
        pytest.param(["a,,1", "a,1,2", "u1,2,"], (), [], id="both taken back"),
        pytest.param(["a,,1", "a,1,2", "u1,2,", "u3,,2"], (), [1, 2], id="the undo taken back"),
        pytest.param(["a,,1", "u1,1,", "u2,,1", "u3,1,"], (), [], id="and that again"),
        pytest.param(["a,,1", "a,1,2", "u1,2,"], (3,), [1, 2, 3], id="an undo that is to be taken back"),
        pytest.param(["a,,1", "u1,1,", "a,,2"], (), [3], id="made anew"),
        pytest.param(["u1,2,1", "a,1,3"], (), [2], id="what it took back is pruned"),
    ],
)
def test_what_stands(given, taken, stands):
    assert seqs(writes_in_force(entries(*given), taken)) == stands


@pytest.mark.parametrize(
    ("given", "now", "wanted", "first", "taken", "left", "reason"),
    [
        pytest.param(["a,,1", "a,1,2"], "2", {2}, 2, [2], [], "", id="the last"),
        pytest.param(["a,,1", "a,1,2"], "2", {1, 2}, 1, [1, 2], [], "", id="all"),
        pytest.param(["a,,1", "a,1,2"], "2", {1}, None, [], [1], "update by ann came after it", id="not the last"),
        pytest.param(["a,,1", "d,1,2"], "2", {1}, 1, [1], [], "", id="a stamp goes along"),
        pytest.param(["a,,1", "d,9,2"], "2", {1}, None, [], [1], EDITED, id="a stamp of an edit ends it"),
        pytest.param(
            ["a,,1", "p,1,2"], "2", {1}, None, [], [1], "consolidation by memex came after it", id="a decision"
        ),
        pytest.param(["h,,1", "a,1,2", "q,2,"], "", {2}, None, [], [2], PROMOTED, id="promoted"),
        pytest.param(["h,,1", "a,1,2", "r,2,"], "", {2}, None, [], [2], ARCHIVED, id="archived"),
        pytest.param(["h,,1", "a,1,2", "s,2,"], "", {2}, None, [], [2], ARCHIVED, id="dismissed"),
        pytest.param(["a,,1", "t,1,2"], "2", {1}, None, [], [1], PROMOTED, id="dragged out"),
        pytest.param(["a,,1", "q,1,2"], "2", {1}, None, [], [1], "promote by memex came after it", id="relinked"),
        pytest.param(["a,,1", "c,1,2"], "2", {1}, None, [], [1], "updatenote by you came after it", id="a command"),
        pytest.param(["a,,1", "h,1,2"], "2", {1}, None, [], [1], EDITED, id="an edit that was seen"),
        pytest.param(["a,,1", "a,9,2"], "2", {1, 2}, 2, [2], [1], EDITED, id="an edit between"),
        pytest.param(
            ["a,,1", "b,1,2", "a,2,3"], "3", {1, 3}, 3, [3], [1], "update by bob came after it", id="another key"
        ),
        pytest.param(["a,,1"], "9", {1}, None, [], [1], EDITED, id="edited since"),
        pytest.param(["a,,1"], "", {1}, None, [], [1], GONE, id="removed since"),
        pytest.param(["h,,1", "a,1,"], "9", {2}, None, [], [2], THERE, id="another has its name"),
        pytest.param(["h,,1", "a,1,"], "", {2}, 2, [2], [], "", id="deleted"),
        pytest.param(["a,,1", "u1,1,"], "", {1}, None, [], [], "", id="taken back already"),
        pytest.param(["a,,1", "u1,1,"], "", {2}, 2, [2], [], "", id="an undo"),
        pytest.param(["a,,1", "a,1,2", "u2,2,1"], "1", {1, 2}, 1, [1], [], "", id="one of two is taken back already"),
        pytest.param(["k,1,2", "a,2,3"], "3", {2}, 2, [2], [], "", id="behind what a prune kept"),
    ],
)
def test_how_far_back_it_can_go(given, now, wanted, first, taken, left, reason):
    way = find_undo_reach(entries(*given), now, wanted)
    assert (way.first and way.first.seq, seqs(way.taken), seqs(way.left), way.reason if left else "") == (
        first,
        taken,
        left,
        reason,
    )


@pytest.mark.parametrize(
    ("given", "additions"),
    [
        pytest.param(["a,,1"], [], id="nothing followed"),
        pytest.param(["a,,1", "d,1,2", "d,2,3"], [2, 3], id="two additions"),
        pytest.param(["a,,1", "d,1,2", "b,2,3", "d,3,4"], [2], id="another write ends them"),
        pytest.param(["a,,1", "d,7,8"], [], id="a manual change lies between"),
        pytest.param(["a,,1", "p,1,2"], [], id="a job of the daemon is no addition"),
    ],
)
def test_what_the_daemon_added_to_a_write(given, additions):
    log = entries(*given)
    assert seqs(find_additions(log, log[0])) == additions


@pytest.mark.parametrize(
    ("given", "last"),
    [
        (["a,,1", "d,1,2"], 1),
        (["a,,1", "c,1,2"], 2),
        (["a,,1", "a,1,2", "u2,2,1"], 1),
        (["a,,1", "u1,1,"], None),
        (["h,,1"], None),
        (["k,1,2"], None),
    ],
)
def test_the_last_call_that_stands(given, last):
    found = find_last_call(entries(*given))
    assert (found and found.seq) == last


HAND = Writer("hand", 9_007)


@pytest.mark.parametrize(
    ("given", "now", "whole", "made", "changed"),
    [
        pytest.param(["a,,1"], "1", True, Writer("agent", 1001, "ann", "update"), None, id="an agent's"),
        pytest.param(["c,,1"], "1", True, Writer("owner", 1001, "", "updatenote"), None, id="a command's"),
        pytest.param(["d,1,2"], "2", True, HAND, HAND, id="a person's"),
        pytest.param([], "1", True, HAND, HAND, id="nobody knows of it"),
        pytest.param(["a,,1", "d,1,2"], "2", True, Writer("agent", 1001, "ann", "update"), None, id="with a stamp"),
        pytest.param(["a,,1"], "9", True, Writer("agent", 1001, "ann", "update"), HAND, id="edited, not stamped yet"),
        pytest.param(
            ["a,,1", "d,9,2"], "2", True, Writer("agent", 1001, "ann", "update"), HAND, id="edited and stamped"
        ),
        pytest.param(
            ["a,,1", "b,1,2", "d,2,3"],
            "3",
            True,
            Writer("agent", 1001, "ann", "update"),
            Writer("agent", 1002, "bob", "update"),
            id="two agents",
        ),
        pytest.param(
            ["a,,1", "b,1,2", "u2,2,1"], "1", True, Writer("agent", 1001, "ann", "update"), None, id="taken back"
        ),
        pytest.param(["k,1,2"], "2", False, None, Writer("agent", 9_007, "ann", "update"), id="pruned"),
        pytest.param(
            ["a,1,2"], "2", False, None, Writer("agent", 1001, "ann", "update"), id="its first entries pruned"
        ),
    ],
)
def test_who_wrote_it(given, now, whole, made, changed):
    found = entries(*given)
    assert find_creator(found, 9_007, whole=whole) == made
    assert find_last_editor(found, now, 9_007) == changed


@pytest.mark.parametrize("given", [["a,,1"], ["a,,1", "d,9,2"], ["a,,1", "q,9,2"], ["a,,1", "q,1,2"]])
@pytest.mark.parametrize("at", [None, 7])
def test_what_its_owner_marks_and_what_is_done_of_that_is_not_told(given, at):
    found = entries(*given)
    assert find_last_editor(found, "9", at) is None
    assert find_last_editor(found, found[-1].after, at) is None
