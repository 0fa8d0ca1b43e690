"""What others read about Memex: server.json for the MCP registry, and the skill for agents; both say what the program does."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import jsonschema
import pytest
import yaml

from mcp_server.protocol.instructions import DECISIONS
from mcp_server.tools.families import OPERATIONS
from syncd.cli.main import memex

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "tests/files/mcp_registry/server.schema.json").read_text())
SERVER = json.loads((ROOT / "server.json").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SKILL = ROOT / "docs/skills/memex/SKILL.md"
_, FRONT_MATTER, BODY = SKILL.read_text().split("---\n", 2)


def taken(words):
    """The command of a line; the line is refused as the program would."""
    ctx, command = click.Context(memex, info_name="memex"), memex
    while isinstance(command, click.Group):
        name, command, words = command.resolve_command(ctx, words)
        ctx = click.Context(command, info_name=name, parent=ctx)
    return command.make_context(name, list(words), parent=ctx.parent)


def test_the_registry_takes_server_json():
    assert SERVER["$schema"] == SCHEMA["$id"]
    jsonschema.Draft7Validator(SCHEMA).validate(SERVER)


@pytest.mark.parametrize(
    "change",
    [{"name": "memex"}, {"description": "x" * 101}, {"version": None}, {"packages": [{"identifier": "x"}]}],
    ids=str,
)
def test_the_schema_refuses_what_the_registry_would(change):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(SCHEMA).validate(SERVER | change)


def test_server_json_is_about_this_version_and_its_command_is_taken():
    (package,) = SERVER["packages"]
    assert SERVER["version"] == package["version"] == PROJECT["version"]
    assert package["identifier"] == PROJECT["name"]
    words = []
    for argument in package["packageArguments"]:
        words += [argument["name"]] if argument["type"] == "named" else []
        words.append(argument.get("value") or argument["default"])
    assert taken(words).params["toolset"] == "core"
    assert [variable["name"] for variable in package["environmentVariables"] if variable.get("isSecret")] == [
        "MEMEX_KEY"
    ]


def test_the_skill_is_one_by_its_specification():
    """The page "Specification" of agentskills.io: names, lengths, and where the file lies."""
    properties = yaml.safe_load(FRONT_MATTER)
    assert set(properties) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert re.fullmatch(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)", properties["name"])
    assert properties["name"] == SKILL.parent.name
    assert 1 <= len(properties["description"]) <= 1024
    assert 1 <= len(properties["compatibility"]) <= 500
    assert len(SKILL.read_text().splitlines()) < 500


def test_the_skill_decides_as_the_servers_instructions_do():
    known = {operation.safe_name for operation in OPERATIONS}
    named = {word for word in re.findall(r"`(\w+)`", BODY) if "_" in word and word.islower()}
    assert named <= known
    first = [answers[0].split()[0].rstrip(",") for _, answers in DECISIONS]
    assert set(first) - named <= {"replace_observation"}
    rows = [line for line in BODY.splitlines() if line.startswith("| ") and "`" in line]
    assert [re.search(r"`(\w+)`", row)[1] for row in rows] == [tool for tool in first if tool != "replace_observation"]


def test_every_command_of_the_skill_is_taken():
    lines = [line for line in BODY.splitlines() if line.startswith("memex ")]
    assert len(lines) >= 8
    for line in lines:
        words = ["--dry-run" if word == "report.pdf" else word for word in shlex.split(line)[1:]]
        words = [word for word in words if word != "--dry-run"] + (["README.md"] if "addfile" in words else [])
        taken(words)
