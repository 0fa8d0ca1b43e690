"""When a burst of hints settles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.sync.debounce import EventBurst, add_hints, next_due_at, settle

QUIET, PATIENCE = 0.4, 2.0


@pytest.mark.parametrize(
    ("burst", "now", "ready"),
    [
        pytest.param(EventBurst(0, 0), 0.25, False, id="still warm"),
        pytest.param(EventBurst(0, 0), 0.4, True, id="quiet long enough"),
        pytest.param(EventBurst(0, 1.0), 1.3, False, id="heard of again"),
        pytest.param(EventBurst(0, 1.9), 2.0, True, id="never quiet, but waited its time"),
    ],
)
def test_a_path_settles_once_it_is_quiet(burst, now, ready):
    paths, left = settle({"n.md": burst}, now, quiet=QUIET, patience=PATIENCE)
    assert (paths, dict(left)) == ((["n.md"], {}) if ready else ([], {"n.md": burst}))


def test_a_known_burst_keeps_its_beginning():
    pending = add_hints(add_hints({}, ["a", "b"], 1.0), ["b", "c"], 1.5)
    assert pending == {"a": EventBurst(1.0, 1.0), "b": EventBurst(1.0, 1.5), "c": EventBurst(1.5, 1.5)}


def test_ready_paths_are_sorted():
    pending = add_hints({}, ["b.md", "a.md"], 0.0)
    assert settle(pending, 9.0, quiet=QUIET, patience=PATIENCE) == (["a.md", "b.md"], {})


def test_nothing_pending_wakes_nobody():
    assert next_due_at({}, quiet=QUIET, patience=PATIENCE) is None


bursts = st.tuples(st.floats(0, 100), st.floats(0, 10)).map(lambda t: EventBurst(t[0], t[0] + t[1]))
pendings = st.dictionaries(st.text(max_size=3), bursts, max_size=8)


@given(pendings, st.floats(0, 120), st.floats(0, 5), st.floats(0, 20))
def test_settling_splits_and_loses_nothing(pending, now, quiet, patience):
    ready, left = settle(pending, now, quiet=quiet, patience=patience)
    assert sorted([*ready, *left]) == sorted(pending)
    assert all(left[path] == pending[path] for path in left)


@given(pendings.filter(bool), st.floats(0, 5), st.floats(0, 20))
def test_waking_in_time_finds_something_ready_and_never_sooner(pending, quiet, patience):
    due = next_due_at(pending, quiet=quiet, patience=patience)
    assert settle(pending, due, quiet=quiet, patience=patience)[0]
    assert not settle(pending, due - 0.001, quiet=quiet, patience=patience)[0]


@given(st.lists(st.floats(0, 0.3), min_size=1, max_size=40))
def test_a_path_that_never_rests_is_still_looked_at_within_patience(gaps):
    now, pending, begun = 0.0, add_hints({}, ["n.md"], 0.0), 0.0
    for gap in gaps:
        now += gap
        ready, pending = settle(pending, now, quiet=QUIET, patience=PATIENCE)
        begun = now if ready else begun
        assert now - begun < PATIENCE
        pending = add_hints(pending, ["n.md"], now)
