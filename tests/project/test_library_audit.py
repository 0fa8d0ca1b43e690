"""tests/supply/audit.py: licences and known vulnerabilities of the daemon's libraries, and what could not be looked up."""

from __future__ import annotations

import json
import sys
import zipfile

import pytest
from packaging.version import Version

from tests.supply import advisories, audit, licences, lock_files
from tests.support.paths import ROOT


def pin(name, version="1", marker=""):
    return lock_files.Pin(name, version, marker, ("sha256:0",))


# Licences


@pytest.mark.parametrize(
    ("expression", "others"),
    [
        ("MIT", []),
        ("Apache-2.0 AND Apache-2.0 WITH LLVM-exception", []),
        ("GPL-3.0-only OR MIT", []),
        ("MIT AND GPL-3.0-only", ["GPL-3.0-only"]),
        ("MIT AND (GPL-3.0-only OR MIT)", ["GPL-3.0-only"]),
        ("BSD-3-Clause, dependency licenses", ["dependency licenses"]),
        ("NVIDIA Proprietary Software", ["NVIDIA Proprietary Software"]),
    ],
)
def test_a_licence_is_allowed_or_named(expression, others):
    assert licences.refused(expression) == others


def test_a_library_that_states_no_licence_is_named():
    lines, code = audit.licence_lines(
        [pin("a"), pin("b"), pin("c"), pin("d")], {"a": "MIT", "b": "", "c": "GPL-2.0-only"}
    )
    assert (code, lines) == (
        audit.FOUND,
        [
            "Licences, of 3 libraries",
            "     1  MIT",
            "  not allowed or unknown: b: states none",
            "  not allowed or unknown: c: GPL-2.0-only",
            "  not installed here, so not looked at: d",
        ],
    )


def test_what_the_daemon_is_made_of_may_be_shipped():
    (lines, code), locked = audit.read_licences(), lock_files.pins(lock_files.read_locked())
    assert code == 0, lines
    assert len(locked) > int(lines[0].split()[2]) > 90


def test_what_the_page_serves_may_be_shipped_and_is_what_its_lock_file_names():
    lock = audit.read_page_lock()
    lines, code = audit.page_licence_lines(lock)
    assert code == 0, lines
    version = lock["packages"]["node_modules/cytoscape"]["version"]
    assert f'"{version}"' in (ROOT / "syncd/page/static/vendor/cytoscape.js").read_text()
    assert "MIT" in lines[1]


def test_a_library_of_the_page_with_another_licence_is_named():
    lock = {"packages": {"": {}, "node_modules/a": {"version": "1", "license": "GPL-3.0-only"}}}
    lines, code = audit.page_licence_lines(lock)
    assert (code, lines[1:]) == (audit.FOUND, ["  not allowed or unknown: a: GPL-3.0-only"])


# Known vulnerabilities

RANGE = {"package": {"ecosystem": "PyPI", "name": "Git_Python"}, "ranges": [{"type": "ECOSYSTEM", "events": []}]}


def affected(*events, **more):
    return RANGE | {"ranges": [{"type": "ECOSYSTEM", "events": list(events)}]} | more


@pytest.mark.parametrize(
    ("events", "inside", "outside"),
    [
        pytest.param([{"introduced": "0"}, {"fixed": "3.1.9"}], ["0.1", "3.1.8"], ["3.1.9", "3.1.10"], id="fixed"),
        pytest.param([{"introduced": "2"}, {"last_affected": "3"}], ["2", "3"], ["1.9", "3.0.1"], id="last affected"),
        pytest.param([{"introduced": "2"}], ["2.1"], ["1"], id="never fixed"),
        pytest.param(
            [{"introduced": "3"}, {"fixed": "2"}, {"introduced": "0"}, {"fixed": "3.2"}],
            ["1", "3.1"],
            ["2.5", "3.2"],
            id="two ranges, in any order",
        ),
    ],
)
def test_a_version_is_in_the_range_of_an_advisory(events, inside, outside):
    assert [advisories.affects(affected(*events), Version(each)) for each in inside] == [True] * len(inside)
    assert [advisories.affects(affected(*events), Version(each)) for each in outside] == [False] * len(outside)


def test_a_version_may_be_listed_by_itself():
    assert advisories.affects(affected(versions=["1.2"]), Version("1.2"))
    assert not advisories.affects(affected(versions=["1.2"]), Version("1.3"))


def record(name="Git_Python", **more):
    body = affected({"introduced": "0"}, {"fixed": "2"}, package={"ecosystem": "PyPI", "name": name})
    return {"id": "X-1", "modified": "2026-01-02T00:00:00Z", "affected": [body]} | more


@pytest.mark.parametrize("form", ["a list", "one", "a zip", "a folder"])
def test_advisories_are_read_from_a_file_or_an_export(tmp_path, form):
    path = tmp_path / "osv"
    text = json.dumps(record())
    if form == "a zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X-1.json", text)
    elif form == "a folder":
        path.mkdir()
        (path / "X-1.json").write_text(text)
    else:
        path.write_text(json.dumps({"date": "2026-03-04", "advisories": [record()]}) if form == "a list" else text)
    source = advisories.read(path)
    assert source.date == ("2026-03-04" if form == "a list" else "2026-01-02")
    assert source.whole == (form in ("a zip", "a folder"))
    assert (source.about("git-python", "1"), source.about("git-python", "2"), source.about("git", "1")) == (
        ["X-1"],
        [],
        [],
    )


def test_an_advisory_that_was_withdrawn_or_is_about_another_registry_counts_for_nothing():
    npm = record()
    npm["affected"][0]["package"]["ecosystem"] = "npm"
    source = advisories.Source("x", "", whole=True, records=(npm, record(withdrawn="2026-01-03T00:00:00Z")))
    assert source.about("git-python", "1") == []


def test_the_project_s_own_advisories_name_their_source_and_none_holds():
    source = advisories.read(advisories.OURS)
    assert source.date >= "2026-11-23"
    for each in source.records:
        assert [link["url"].startswith("https://") for link in each["references"]] == [True], each["id"]
    pins = lock_files.pins(lock_files.read_locked()).values()
    assert audit.from_source(source, pins).against == {}


PINS = [pin("a"), pin("b")]


def said(*lookups, pins=PINS):
    lines, code = audit.vulnerabilities(pins, lookups)
    return code, lines[1 + len(lookups) :]


def test_what_no_source_knows_is_never_called_free_of_vulnerabilities():
    assert said(audit.Lookup("x", "today", frozenset())) == (
        audit.NOT_LOOKED_UP,
        ["  not looked up, so nothing is known about 2: a, b"],
    )


def test_the_answer_for_a_part_names_the_rest():
    assert said(audit.Lookup("x", "today", frozenset("a"))) == (
        audit.NOT_LOOKED_UP,
        ["  none for the 1 that were looked up", "  not looked up, so nothing is known about 1: b"],
    )


def test_two_sources_make_up_for_each_other():
    lookups = [audit.Lookup("x", "today", frozenset("a")), audit.Lookup("y", "then", frozenset("b"))]
    assert said(*lookups) == (0, ["  none for the 2 that were looked up"])
    assert audit.vulnerabilities(PINS, lookups)[0][1:3] == ["  x, today: looked up 1", "  y, then: looked up 1"]


def test_a_vulnerability_is_told_also_by_a_list_that_knows_few():
    source = advisories.Source("ours", "then", whole=False, records=(record("a"),))
    assert said(audit.from_source(source, PINS)) == (
        audit.FOUND,
        ["  a 1: X-1 (ours)", "  not looked up, so nothing is known about 2: a, b"],
    )


def test_what_pip_audit_skipped_was_not_looked_up():
    report = {
        "dependencies": [
            {"name": "A_b", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]},
            {"name": "c", "version": "1", "vulns": []},
            {"name": "d", "skip_reason": "Dependency not found on PyPI and could not be audited: d (1)"},
        ]
    }
    lookup = audit.from_index(json.dumps(report), "", "today", "pip-audit 2")
    assert (lookup.known, lookup.against) == (frozenset(["a-b", "c"]), {"a-b": ["PYSEC-1"]})


@pytest.mark.parametrize("report", ["", "no JSON", "[]", "{}"])
def test_a_pip_audit_that_failed_has_looked_nothing_up(report):
    lookup = audit.from_index(report, "Traceback\nConnectionError: no route\n", "today", "pip-audit 2")
    assert (lookup.known, lookup.remark) == (frozenset(), "ConnectionError: no route")


def test_libraries_of_other_platforms_are_left_out():
    other = "linux" if sys.platform != "linux" else "darwin"
    assert audit.here([pin("a", marker=f"sys_platform == '{other}'"), pin("b")]) == [pin("b")]
