"""The documents say what the program does."""

from __future__ import annotations

import ast
import re
import tomllib

import click
import yaml

from index.encoders.settings import BundledSettings, EndpointSettings
from syncd.cli.framework.command_outcome import EXIT, SERVE_EXIT
from syncd.cli.main import memex
from syncd.git.repository_state import STATES
from syncd.review.bases_table import compose_table
from syncd.settings.settings import all_settings as settings
from syncd.settings.settings import load
from tests.support.paths import ROOT
from tests.support.sources import sources
from tests.support.world import World

README = (ROOT / "README.md").read_text(encoding="utf-8")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def commands(group=memex, words=()):
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def test_every_command_and_every_setting_has_its_place_in_the_reference():
    """`tests/project/test_pages.py` holds that the reference is what the program says; this, that it leaves nothing out."""
    pages = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "docs/reference/commands").glob("*.md"))
    titles = re.findall(r"^## memex (.+)$", pages, re.MULTILINE)
    leaves = {" ".join(words) for words, command in commands() if not isinstance(command, click.Group)}
    assert leaves <= set(titles)
    assert len(titles) == len(set(titles))
    assert re.findall(r"^\| `([a-z]+(?:\.[a-z_]+)?)` \|", page("reference/settings.md"), re.MULTILINE) == list(
        settings()
    )


def test_every_make_target_of_the_documents_exists():
    makefile = (ROOT / "Makefile").read_text()
    written = ("getting-started.md", "benchmarks.md")
    text = README + (ROOT / "CONTRIBUTING.md").read_text() + "".join(map(page, written))
    for target in set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)) | {
        "test",
        "test-all",
        "faults",
        "bench",
        "golden",
        "format",
    }:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_code_and_exit_code_is_on_the_page_of_errors():
    told = page("errors.md")
    for number in {*EXIT.values(), *SERVE_EXIT.values(), 64, 65, 130}:
        assert re.search(rf"\b{number}\b", told), number
    for code, number in EXIT.items():
        assert re.search(rf"^\| `{code}` \| [\d, ]+ \| {number} \|", told, re.MULTILINE), code


def doctor_findings():
    """The names of all findings of `memex doctor`, which are those of its checks; two of them share one."""
    for source in sources("syncd"):
        for node in source.nodes if source.folder == "syncd/cli/doctor" else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                yield node.name.removeprefix("check_").removesuffix("_in_use")


def test_every_finding_of_the_doctor_and_every_state_of_git_is_on_the_page_of_troubleshooting():
    text, findings = page("troubleshooting.md"), set(doctor_findings())
    assert {"disk", "watch", "service"} <= findings
    assert sorted(name for name in findings | (STATES.keys() - {"ok"}) if f"`{name}`" not in text) == []


def test_every_promise_names_its_limit_and_its_test():
    promises = re.findall(r"^\*\*.+?(?=\n\n)", page("promises.md"), re.DOTALL | re.MULTILINE)
    assert len(promises) > 15
    assert [
        text for text in promises if not re.search(r"\nWhen it can't hold: .+\nTest: `tests/", text, re.DOTALL)
    ] == []


def test_the_settings_of_a_page_are_read(tmp_path):
    (text,) = (
        b for b in re.findall(r"```toml\n(.*?)```", page("guides/models.md"), re.DOTALL) if "embed.encoders" in b
    )
    file = tmp_path / "config.toml"
    file.write_text(f'[vault]\npath = "x"\n{text}')
    embedding = load({"config": str(file)}, {"HOME": str(tmp_path)}).embed
    assert embedding.encoders == (
        EndpointSettings(base_url="http://127.0.0.1:11434/v1", model="nomic-embed-text"),
        BundledSettings(),
    )


def test_the_access_settings_of_a_page_are_read(tmp_path):
    (text,) = (
        b for b in re.findall(r"```toml\n(.*?)```", page("guides/reverse-proxy.md"), re.DOTALL) if "[access]" in b
    )
    file = tmp_path / "config.toml"
    file.write_text(f'[vault]\npath = "x"\n{text}')
    access = load({"config": str(file)}, {"HOME": str(tmp_path)}).access
    assert access.is_enabled
    assert access.keys["ann@example.org"] == "ann"


def test_the_changelog_names_the_version_of_the_program():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_shows_the_columns_of_the_review_table():
    base = yaml.safe_load(compose_table("Captures"))
    columns = [base["properties"][column]["displayName"] for column in base["views"][0]["order"]]
    assert f"| {' | '.join(columns)} |\n" in README


def test_the_readme_shows_a_capture_as_the_program_writes_it(tmp_path):
    (shown,) = re.findall(r"```markdown\n(---\nid: .*?)\n```", README, re.DOTALL)
    world = World(tmp_path)
    try:
        captured = world.app.agent_access.workspace("default").capture(
            "The west box needs a wider vent before May.",
            source="cli",
            metadata={"title": "West vent", "tags": ["heron"]},
        )
        text = (world.vault / captured.record.path).read_text(encoding="utf-8")
    finally:
        world.close()
    varying = re.compile(r"^(id|created_at): .*$", re.MULTILINE)
    assert varying.sub(r"\1: …", text) == varying.sub(r"\1: …", shown)
