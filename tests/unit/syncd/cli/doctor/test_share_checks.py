"""The doctor on contexts and shares: with a daemon by its facts, without one by the files."""

from __future__ import annotations

import pytest

from syncd.cli.doctor.doctor import DoctorContext
from syncd.cli.doctor.share_checks import check_contexts, check_shares
from tests.support.world import World, settings_of


@pytest.fixture
def context(tmp_path):
    """A vault with a note in the folder of contexts and a share that leads nowhere, and its settings; no daemon runs."""
    world = World(tmp_path)
    world.write("Refs/a.md", "x\n")
    world.write("Captures/Context/alpha/Mine.md", "mine\n")
    for path in ("Refs", "Gone"):
        (world.vault / path).mkdir(exist_ok=True)
        world.app.operations["share.add"]({"paths": [path]}, lambda _: None)
    (world.vault / "Gone").rmdir()
    facts = world.app.operations["status"]({}, lambda _: None)
    world.close()
    return DoctorContext(settings_of(world.vault, world.state), {}, None, facts)


def without_daemon(context):
    return DoctorContext(context.settings, {}, None, None)


@pytest.mark.parametrize("running", [True, False])
def test_strays_and_broken_shares_are_advice_with_the_command_that_helps(context, running):
    context = context if running else without_daemon(context)
    (stray,) = check_contexts(context)
    assert (stray.check, stray.is_) == ("contexts", "advice")
    assert stray.says.startswith("Captures/Context/alpha/: ")
    assert stray.mend == f"mv {context.vault}/Captures/Context/alpha {context.vault}/Captures/default/"
    (broken,) = check_shares(context)
    assert (broken.check, broken.is_) == ("shares", "advice")
    assert broken.says == "Gone/** is shared with the workspace default, but the folder does not exist"
    assert broken.mend == "memex share remove 'Gone/**' --workspace default"


def test_what_is_well_needs_no_words_or_few(context):
    (context.vault / "Captures/Context/alpha/Mine.md").unlink()
    (context.vault / "Captures/Context/alpha").rmdir()
    (context.vault / "Gone").mkdir()
    context = without_daemon(context)
    assert list(check_contexts(context)) == []
    (well,) = check_shares(context)
    assert (well.is_, well.says) == ("ok", "2 shares; memex share preview lists what agents read")


def test_without_a_vault_or_a_ledger_nothing_is_said(tmp_path):
    for vault in (tmp_path / "none", tmp_path):
        context = DoctorContext(settings_of(vault, tmp_path / "state"), {}, None, None)
        assert list(check_contexts(context)) == []
        assert list(check_shares(context)) == []
