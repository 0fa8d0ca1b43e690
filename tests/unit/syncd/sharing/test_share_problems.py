"""Shares that lead nowhere, each with its reason."""

from __future__ import annotations

from contextlib import closing

from syncd.settings.access import ShareSettings
from syncd.sharing.share_problems import find_share_problems
from syncd.sharing.share_rules import ShareRules
from syncd.vault.vault import Vault
from tests.support.world import World


def test_each_share_that_leads_nowhere_is_named_with_its_reason(tmp_path):
    (tmp_path / "Refs").mkdir()
    (tmp_path / "Plan.md").write_text("x\n")
    rules = ShareRules(
        "Captures",
        ("Diary",),
        {"default": ["Captures/x.md", "Diary/**", "Gone/**", "Gone.md", "Plan.md", "Refs/**"], "old": ["Refs/**"]},
    )
    with closing(Vault(tmp_path)) as vault:
        problems = find_share_problems(vault, rules, ["default"])
    assert [(problem.workspace, problem.entry, problem.reason) for problem in problems] == [
        ("default", "Captures/x.md", "it lies in the inbox"),
        ("default", "Diary/**", "share.never covers it"),
        ("default", "Gone/**", "the folder does not exist"),
        ("default", "Gone.md", "the note does not exist"),
        ("old", "Refs/**", "the workspace does not exist"),
    ]


def test_status_reports_them_to_the_owner_alone(tmp_path):
    world = World(tmp_path, share=ShareSettings())
    try:
        world.write("Refs/a.md", "x\n")
        ask = world.app.operations
        ask["share.add"]({"paths": ["Refs"]}, lambda _: None)
        assert ask["status"]({}, lambda _: None)["shares"] == {"count": 1, "problems": []}
        (world.vault / "Refs/a.md").unlink()
        (world.vault / "Refs").rmdir()
        facts = ask["status"]({}, lambda _: None)["shares"]
        assert facts["problems"] == [
            {"workspace": "default", "entry": "Refs/**", "reason": "the folder does not exist"}
        ]
        assert not any("Refs" in sentence for sentence in world.app.agent_access.status(["default"])["degraded"])
    finally:
        world.close()
