"""The doctor as a whole: a vault that is well, the command, and how findings are shown."""

from __future__ import annotations

import json
import os
import signal

import pytest

from index.errors import Unavailable
from syncd.cli.doctor.agent_checks import check_contexts, check_shares
from syncd.cli.doctor.doctor import Finding, examine, format_finding, format_summary, is_healthy
from syncd.cli.doctor.host_checks import HOST_CHECKS
from syncd.cli.doctor.service_checks import SETTINGS_CHECKS, check_settings
from syncd.cli.doctor.state_checks import STATE_CHECKS
from tests.support.clinic import bytes_of
from tests.support.daemon_process import Failed, daemon


def test_what_is_well_is_called_well_and_nothing_is_changed(clinic):
    before = bytes_of(clinic.vault)
    found = list(examine(clinic.settings, {}, (*SETTINGS_CHECKS, *STATE_CHECKS, *HOST_CHECKS), fix=False))
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


def _refused(_context):
    raise PermissionError(13, "Permission denied", "/state/index")


def _unavailable(_context):
    yield Finding("ok", "no job waits", check="queue")
    raise Unavailable("the ledger ledger.db can't be read: file is not a database")


def test_a_check_that_fails_is_a_problem_and_the_others_run(clinic):
    looks = examine(clinic.settings, {}, (_refused, _unavailable, check_settings), fix=True)
    assert [(finding.check, finding.is_, finding.says) for finding in looks] == [
        ("refused", "wrong", "the check could not finish: /state/index can't be read or written: Permission denied"),
        ("queue", "ok", "no job waits"),
        (
            "unavailable",
            "wrong",
            "the check could not finish: the ledger ledger.db can't be read: file is not a database",
        ),
        ("settings", "ok", "no settings file; flags, environment variables and defaults apply"),
    ]


def _replace_head(state, make):
    (state / "audit.head").unlink(missing_ok=True)
    make(state / "audit.head")


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda state: (state / "ledger.db").write_bytes(os.urandom(9000)), id="a ledger of random bytes"),
        pytest.param(lambda state: _replace_head(state, os.mkfifo), id="a seal that is a pipe"),
        pytest.param(lambda state: _replace_head(state, lambda path: path.symlink_to("gone")), id="a broken link"),
    ],
)
def test_damage_of_the_state_folder_ends_no_check(clinic, damage):
    damage(clinic.state)
    findings = list(
        examine(clinic.settings, {}, (*STATE_CHECKS, check_contexts, check_shares, check_settings), fix=False)
    )
    assert [finding.check for finding in findings if finding.is_ == "wrong"]
    assert not [finding.says for finding in findings if "could not finish" in finding.says]
    assert findings[-1].check == "settings"


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


@pytest.mark.slow
def test_settings_that_are_wrong_are_a_finding(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        (memex.home / "config.toml").write_text("[server]\nport = 'x'\n")
        with pytest.raises(Failed) as failed:
            memex.run("doctor", "--config", str(memex.home / "config.toml"))
        assert failed.value.code == 7
        assert "server.port" in str(failed.value)


def test_a_finding_is_shown_with_its_way_out():
    text = format_finding(Finding("wrong", "it is " + "very " * 30 + "broken", "git status", check="git"), width=40)
    assert text.splitlines()[0].startswith("✗ git        it is")
    assert text.splitlines()[-1] == " " * 13 + "→ git status"
    assert max(map(len, text.splitlines())) <= 40
    assert "repaired: x" in format_finding(Finding("ok", "", mended="x"))


def test_the_summary_counts():
    wrong = Finding("wrong", "x", fix=lambda: "")
    assert format_summary([wrong]) == "1 problem found; `memex doctor --fix` repairs it"
    assert format_summary([wrong, Finding("wrong", "y"), Finding("advice", "z")]).startswith(
        "2 problems found; advice: 1"
    )
