"""The public MCP conformance suite on our server; `make conformance` installs it, and prints what it says."""

from __future__ import annotations

import pytest

from tests.conformance import suite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not suite.SUITE.exists(), reason="the suite is not installed: make conformance (needs npm)"),
]


@pytest.mark.parametrize("revision", suite.REVISIONS)
def test_every_scored_scenario_of_the_suite_passes(tmp_path, revision):
    with suite.daemon(tmp_path / "vault", fixtures=True) as rim:
        told = suite.everything(rim, revision, tmp_path / "out")
    assert {one.name for one in told if one.scored} == suite.required(revision)
    assert all(one.passed for one in told if one.scored or one.name == suite.VERDICT), suite.table(told)


@pytest.mark.parametrize("revision", suite.REVISIONS)
def test_the_daemon_as_it_is_passes_what_needs_no_fixture(tmp_path, revision):
    with suite.daemon(tmp_path / "vault", fixtures=False) as rim:
        told = suite.alone(rim, revision, tmp_path / "out", suite.PLAIN[revision])
    assert all(one.passed for one in told), suite.table(told)
