"""syncd/jobs/job_names.py: what people call the jobs."""

from __future__ import annotations

import pytest

from syncd.jobs.job_names import NAMES, find_key, job_name, shell_word
from tests.support.world import World


def test_every_job_of_the_daemon_has_a_name_of_its_own(tmp_path):
    world = World(tmp_path)
    try:
        assert world.app.jobs.states().keys() == NAMES.keys()
    finally:
        world.close()
    assert len(set(NAMES.values())) == len(NAMES)


@pytest.mark.parametrize("key", NAMES)
def test_a_key_or_a_name_in_any_spelling_leads_to_the_job(key):
    spellings = (
        key,
        key.replace(" ", "-"),
        key.replace(" ", "_"),
        job_name(key),
        shell_word(key),
        job_name(key).upper(),
    )
    assert {find_key(text, NAMES) for text in spellings} == {key}


def test_what_no_job_is_called_leads_nowhere():
    assert find_key("nothing", NAMES) is None
    assert job_name("new one") == "new one"
