"""The formats of credentials: nearly all of each kind are found wherever they stand, and real notes are left alone."""

import pytest

from syncd.notes.secret_patterns import KINDS
from syncd.notes.secret_rules.credential_formats import FORMATS
from tests.bench.secrets import measure_flags, measure_recall
from tests.support.generated_secrets import ASSIGNED, MAKERS
from tests.support.paths import DATA, ROOT

EXAMPLES = 200  # of each kind; python -m tests.bench.secrets makes 1,000
REAL = ("vault_kepano", "vault_tasks_demo", "vault_oldwinter_md", "known_tasks_docs", "locomo_dev", "jsquad_valid")


@pytest.mark.slow
def test_ninety_nine_of_a_hundred_secrets_of_each_kind_are_found_in_every_context():
    missed = {row.kind: row.missed for row in measure_recall(EXAMPLES) if row.found < 0.99 * row.made}
    assert missed == {}


def test_every_kind_is_generated():
    assert set(MAKERS) | {"assigned-secret"} == set(KINDS)
    assert len(ASSIGNED) > 5


def test_every_format_names_the_source_of_its_facts():
    assert all(row.source for row in FORMATS)


def test_no_hint_hides_another_one():
    """All hints are found in one search, which skips what overlaps with the hint before."""
    hints = [hint for row in FORMATS for hint in row.hints]
    inside = [
        (hint, other)
        for hint in hints
        for other in hints
        for at in range(1, len(hint))
        if not hint[at - 1].isalnum() and (other.startswith(hint[at:]) or hint[at:].startswith(other))
    ]
    apart = {(hint, other) for hint, other in inside if _kinds(hint).isdisjoint(_kinds(other))}
    # None of these begins inside the other: a JWT follows no "_", "1//0" no letter or "-", and "api_org_" needs 34 letters.
    assert apart == {("ops_eyJ", "eyJ"), ("AGE-SECRET-KEY-1", "1//0"), ("lin_api_", "api_org_")}


def test_the_sample_vaults_hold_no_secret():
    assert measure_flags(ROOT / "vault_fixtures").flags == ()


def test_at_most_one_flag_in_a_million_characters_of_real_notes():
    folders = [DATA / name for name in REAL if (DATA / name).is_dir()]
    if not folders:
        pytest.skip(f"{DATA} is not there; MEMEX_DATA names another place")
    rates = [measure_flags(folder) for folder in folders]
    flags = [flag for rate in rates for flag in rate.flags]
    assert len(flags) <= sum(rate.characters for rate in rates) / 1e6, flags


def _kinds(hint):
    return {row.kind for row in FORMATS if hint in row.hints}
