"""syncd/telemetry/search_log.py: searches are recorded only if wanted, privately, within a size, and can be erased."""

from __future__ import annotations

import random

import pytest

from index.model import Query
from syncd.settings.settings import SearchSettings
from syncd.telemetry.search_log import FILE, LONGEST, MOST_BYTES, SearchLog, erase_searches, read_searches
from tests.support.generated_secrets import MAKERS
from tests.support.world import World


def test_nothing_is_recorded_unless_it_is_turned_on(tmp_path):
    SearchLog(tmp_path, enabled=False).record("herons", ["a"])
    assert list(tmp_path.iterdir()) == []
    assert not SearchSettings().log


def test_a_search_is_its_query_and_the_ids_of_its_hits(tmp_path):
    log = SearchLog(tmp_path, enabled=True)
    log.record("herons", ["a", "b"])
    log.record("\ud800 " + "x" * 2 * LONGEST, [])
    first, second = read_searches(tmp_path)
    assert first == {"query": "herons", "hits": ["a", "b"]}
    assert len(second["query"]) == LONGEST
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_secret_in_a_query_is_not_recorded(tmp_path):
    secret = MAKERS["github-token"](random.Random(1))
    SearchLog(tmp_path, enabled=True).record(f"where is {secret} used", [])
    assert secret not in (tmp_path / FILE).read_text()
    SearchLog(tmp_path, enabled=True).record(f"{'a ' * (LONGEST // 2 - 10)}{secret}", [])
    assert secret[:15] not in (tmp_path / FILE).read_text()
    assert read_searches(tmp_path)[0]["query"].startswith("where is [")


@pytest.mark.slow
def test_the_file_keeps_its_size_and_the_latest_searches(tmp_path):
    log = SearchLog(tmp_path, enabled=True)
    for number in range(MOST_BYTES // LONGEST + 1_000):
        log.record(f"{number} " + "x" * LONGEST, [])
    searches = read_searches(tmp_path)
    assert (tmp_path / FILE).stat().st_size <= MOST_BYTES
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    numbers = [int(entry["query"].split()[0]) for entry in searches]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[-1] == MOST_BYTES // LONGEST + 999


def test_erasing_leaves_nothing_and_recording_goes_on(tmp_path):
    log = SearchLog(tmp_path, enabled=True)
    log.record("herons", [])
    assert erase_searches(tmp_path) == 1
    assert not (tmp_path / FILE).exists()
    assert erase_searches(tmp_path) == 0
    log.record("storks", [])
    assert [entry["query"] for entry in read_searches(tmp_path)] == ["storks"]


def test_a_file_that_can_t_be_written_ends_no_search(tmp_path, caplog):
    (tmp_path / FILE).mkdir()
    SearchLog(tmp_path, enabled=True).record("herons", [])
    assert "could not be recorded" in caplog.text
    assert read_searches(tmp_path) == []


def test_damaged_lines_are_left_out(tmp_path):
    (tmp_path / FILE).write_bytes(b'{"query": "a", "hits": []}\n\xff\n[]\n{"query": 1, "hits": []}\n{"qu')
    assert [entry["query"] for entry in read_searches(tmp_path)] == ["a"]


@pytest.mark.parametrize("wanted", [True, False])
def test_searches_of_agents_and_of_the_owner_are_recorded(tmp_path, wanted):
    world = World(tmp_path, search=SearchSettings(log=wanted))
    try:
        world.write("Captures/default/a.md", "a heron\n")
        world.write("b.md", "another heron\n")
        world.run()
        world.found("heron owner")
        world.app.agent_access.workspace("default").search(Query("heron agent"))
        queries = [entry["query"] for entry in read_searches(world.state)]
        assert queries == (["heron owner", "heron agent"] if wanted else [])
    finally:
        world.close()
