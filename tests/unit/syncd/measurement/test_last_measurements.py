"""syncd/measurement/last_measurements.py: the last verdict on a pair of models is found, in both directions."""

from __future__ import annotations

import json

import pytest

from syncd.measurement.last_measurements import FILE, MOST, find_verdict, keep_measurement

SMALL, LARGE = {"kind": "bundled"}, {"kind": "local", "model": "m", "query_prompt": "q: "}


def keep(state, verdict, present=SMALL, changed=LARGE, at=1, search=(0, 0), meaning=(0, 0)):
    kinds = {"search": search, "meaning": meaning}
    differences = {kind: {"difference": {"MRR": {"low": low, "high": high}}} for kind, (low, high) in kinds.items()}
    keep_measurement(state, present, changed, {"verdict": verdict} | differences, at)


def test_a_verdict_is_found_for_its_pair_only(tmp_path):
    assert find_verdict(tmp_path, SMALL, LARGE) is None
    keep(tmp_path, "better")
    assert find_verdict(tmp_path, SMALL, LARGE) == ("better", 1)
    assert find_verdict(tmp_path, LARGE, SMALL) == ("worse", 1)
    assert find_verdict(tmp_path, SMALL, {**LARGE, "query_prompt": ""}) is None


def test_the_last_measurement_of_a_pair_counts_whatever_its_direction(tmp_path):
    keep(tmp_path, "better")
    keep(tmp_path, "no difference", present=LARGE, changed=SMALL, at=2)
    assert find_verdict(tmp_path, SMALL, LARGE) == ("no difference", 2)


@pytest.mark.parametrize(
    ("search", "meaning", "verdict"),
    [
        ((-0.3, -0.1), (0.1, 0.3), "worse"),
        ((0.1, 0.3), (-0.3, -0.1), "worse"),
        ((-0.3, -0.1), (-0.1, 0.1), "better"),
        ((-0.1, 0.1), (-0.3, -0.1), "better"),
    ],
)
def test_a_loss_is_judged_in_the_other_direction(tmp_path, search, meaning, verdict):
    keep(tmp_path, "worse", search=search, meaning=meaning)
    assert find_verdict(tmp_path, SMALL, LARGE) == ("worse", 1)
    assert find_verdict(tmp_path, LARGE, SMALL) == (verdict, 1)


def test_a_loss_without_its_differences_is_not_measured_in_the_other_direction(tmp_path):
    keep_measurement(tmp_path, SMALL, LARGE, {"verdict": "worse", "search": {}, "meaning": {}}, 1)
    assert find_verdict(tmp_path, LARGE, SMALL) is None


def test_an_earlier_measurement_counts_if_a_later_one_can_not_be_judged_in_the_other_direction(tmp_path):
    pairs = ((LARGE, SMALL, "better"), (SMALL, LARGE, "worse"))  # as an older version of Memex left them
    entries = [
        {"at": at, "present": present, "changed": changed, "verdict": verdict, "search": {}, "meaning": {}}
        for at, (present, changed, verdict) in enumerate(pairs, 1)
    ]
    (tmp_path / FILE).write_text(json.dumps(entries))
    assert find_verdict(tmp_path, LARGE, SMALL) == ("better", 1)


def test_where_a_model_runs_does_not_count(tmp_path):
    keep(tmp_path, "worse", changed={**LARGE, "device": "cuda", "download": True})
    assert find_verdict(tmp_path, SMALL, LARGE) == ("worse", 1)


def test_the_file_is_private_and_bounded(tmp_path):
    for number in range(MOST + 5):
        keep(tmp_path, "better", changed={"kind": "local", "model": str(number)})
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert find_verdict(tmp_path, SMALL, {"kind": "local", "model": "0"}) is None
    assert find_verdict(tmp_path, SMALL, {"kind": "local", "model": str(MOST + 4)}) is not None


@pytest.mark.parametrize("damage", ["", "[]", "{}", "[1]", '[{"verdict": 1}]', "null"])
def test_a_damaged_file_is_no_measurement(tmp_path, damage):
    (tmp_path / FILE).write_text(damage)
    assert find_verdict(tmp_path, SMALL, LARGE) is None
