"""Which layers are in force is reported once a child has tried them, and a refusal is no secret."""

from __future__ import annotations

import sys

import pytest

from index.errors import Unavailable
from syncd.files.conversion import sandbox_report
from syncd.files.conversion.sandbox_layers import SandboxLayers
from syncd.files.conversion.sandbox_report import SandboxReport


@pytest.mark.skipif(sys.platform != "linux", reason="these are means of Linux")
def test_the_layers_of_this_host_are_those_that_a_child_has():
    facts = SandboxReport(required=True).facts()
    assert facts["seccomp"] is True
    assert facts["landlock"] >= 1
    assert (facts["missing"], facts["problem"]) == ([], "")
    assert SandboxReport(required=True).degraded == ""


@pytest.mark.parametrize(("required", "refused"), [(True, True), (False, False)])
def test_a_missing_layer_is_a_degraded_mode_only_where_it_is_required(monkeypatch, required, refused):
    monkeypatch.setattr(sandbox_report, "probe_layers", lambda: SandboxLayers(7, seccomp=False))
    monkeypatch.setattr(sys, "platform", "linux")
    report = SandboxReport(required=required)
    assert report.facts()["missing"] == ["seccomp (which system calls may be made)"]
    assert bool(report.degraded) == refused
    assert not refused or report.degraded.startswith("sandbox: Memex refuses PDF and Office files")


def test_on_macos_no_child_is_started_and_the_system_is_named(monkeypatch):
    def fail() -> SandboxLayers:
        raise AssertionError

    monkeypatch.setattr(sandbox_report, "probe_layers", fail)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "macOS has neither" in SandboxReport(required=True).degraded
    assert SandboxReport(required=False).degraded == ""


def test_a_child_that_can_not_be_started_is_told_and_tried_again(monkeypatch):
    def fail() -> SandboxLayers:
        raise Unavailable("the file converter could not be started")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sandbox_report, "probe_layers", fail)
    report = SandboxReport(required=True)
    assert report.degraded == "sandbox: the file converter could not be started"
    monkeypatch.setattr(sandbox_report, "probe_layers", lambda: SandboxLayers(7, seccomp=True))
    assert report.degraded == ""
