"""The doctor as a whole: a vault that is well, the command, and how findings are shown."""

from __future__ import annotations

import json
import signal

import pytest

from syncd.cli.doctor.doctor import Finding, examine, format_finding, format_summary, is_healthy
from syncd.cli.doctor.host_checks import HOST_CHECKS
from syncd.cli.doctor.state_checks import STATE_CHECKS
from tests.support.clinic import bytes_of
from tests.support.daemon_process import Failed, daemon


def test_what_is_well_is_called_well_and_nothing_is_changed(clinic):
    before = bytes_of(clinic.vault)
    found = list(examine(clinic.settings, {}, (*STATE_CHECKS, *HOST_CHECKS), fix=False))
    assert is_healthy(found), [one for one in found if one.is_ == "wrong"]
    assert {one.check for one in found} >= {
        "settings",
        "state",
        "daemon",
        "ledger",
        "audit",
        "queue",
        "index",
        "encoder",
        "vault",
        "inbox",
        "port",
        "git",
        "disk",
        "clock",
        "versions",
    }
    assert bytes_of(clinic.vault) == before
    assert format_summary(found).startswith("no problems found")


# The command


@pytest.mark.slow
def test_the_command_with_the_daemon_up_hung_killed_and_mended(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        (memex.home / ".config/memex").mkdir(parents=True)
        (memex.home / ".config/memex/config.toml").write_text("[server]\nport = 0\n")  # others may hold the usual one
        memex.write("A.md", "words")
        with pytest.raises(Failed) as failed:
            memex.run("doctor")  # not set up
        assert failed.value.code == 7
        memex.serve()
        memex.until(lambda: not memex.json("status")["degraded"])
        told = memex.json("doctor")
        assert told["well"]
        assert all(one.keys() == {"check", "is", "says", "mend", "fixable", "mended"} for one in told["findings"])
        assert any(memex.url in one["says"] for one in told["findings"])
        memex.process.send_signal(signal.SIGSTOP)
        with pytest.raises(Failed) as failed:
            memex.run("doctor")
        assert f"process {memex.process.pid} runs, but does not answer" in " ".join(str(failed.value).split())
        memex.process.send_signal(signal.SIGCONT)
        memex.stop(signal.SIGKILL)
        with pytest.raises(Failed) as failed:
            memex.run("doctor", "--json")
        left = [one for one in json.loads(failed.value.args[0].splitlines()[1])["findings"] if one["is"] == "wrong"]
        assert [one["check"] for one in left] == ["daemon"]
        assert "repaired: removed daemon.json, control.sock, control.token" in memex.run("doctor", "--fix")
        memex.run("doctor")


def test_settings_that_are_wrong_are_a_finding(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        (memex.home / "config.toml").write_text("[server]\nport = 'x'\n")
        with pytest.raises(Failed) as failed:
            memex.run("doctor", "--config", str(memex.home / "config.toml"))
        assert failed.value.code == 7
        assert "server.port" in str(failed.value)


def test_a_finding_is_shown_with_its_way_out():
    text = format_finding(Finding("git", "wrong", "it is " + "very " * 30 + "broken", "git status"), width=40)
    assert text.splitlines()[0].startswith("✗ git        it is")
    assert text.splitlines()[-1] == " " * 13 + "→ git status"
    assert max(map(len, text.splitlines())) <= 40
    assert "repaired: x" in format_finding(Finding("a", "ok", "", mended="x"))


def test_the_summary_counts():
    wrong = Finding("a", "wrong", "x", fix=lambda: "")
    assert format_summary([wrong]) == "1 problem found; `memex doctor --fix` repairs it"
    assert format_summary([wrong, Finding("b", "wrong", "y"), Finding("c", "advice", "z")]).startswith(
        "2 problems found; advice: 1"
    )
