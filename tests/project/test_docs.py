"""The documents say what the program does."""

from __future__ import annotations

import json
import re
import shlex
import tomllib

import click

from index.encoders.settings import BundledSettings, EndpointSettings
from syncd.cli.main import EXIT, SERVE_EXIT, memex
from syncd.settings.settings import all_settings as settings
from syncd.settings.settings import load
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands(group=memex, words=()):
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def test_the_settings_table_is_the_program_s():
    rows = []
    for name, one in settings().items():
        default = "" if one.default is None else f"`{json.dumps(one.default, default=str)}`"
        rows.append(f"| `{name}` | {one.type} | {default} | {one.doc} |")
    for row in rows:
        assert row in README.splitlines()
    assert len(re.findall(r"^\| `[a-z]+(?:\.[a-z_]+)?` \| .* \| .* \| .* \|$", README, re.MULTILINE)) == len(rows)


def test_every_command_is_in_the_readme():
    for words, command in commands():
        if not isinstance(command, click.Group):
            assert re.search(rf"memex {words[0]}\b", README), words
            assert words[-1] in README, words


def test_every_command_of_the_readme_exists_with_its_options():
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL)).replace("\\\n", " ")
    lines = [line.partition("#")[0] for line in blocks.splitlines() if line.startswith("memex ")]
    lines += re.findall(r"`(memex [^`]+)`", README)
    known = dict(commands())
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line)[1:]
        command = next((known[tuple(words[:n])] for n in (2, 1) if tuple(words[:n]) in known), None)
        assert command is not None, line
        options = {option for param in command.params for option in param.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_every_make_target_of_the_documents_exists():
    makefile = (ROOT / "Makefile").read_text()
    text = README + (ROOT / "CONTRIBUTING.md").read_text()
    for target in set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)) | {
        "test",
        "test-all",
        "faults",
        "bench",
        "golden",
        "format",
    }:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_exit_code_is_in_the_readme():
    told = README[README.index("Exit codes:") :]
    for number in {*EXIT.values(), *SERVE_EXIT.values(), 64, 65, 130}:
        assert re.search(rf"\b{number}\b", told), number


def test_the_settings_of_the_readme_are_read(tmp_path):
    (text,) = (block for block in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "embed.encoders" in block)
    file = tmp_path / "config.toml"
    file.write_text(f'[vault]\npath = "x"\n{text}')
    embedding = load({"config": str(file)}, {"HOME": str(tmp_path)}).embed
    assert embedding.encoders == (
        EndpointSettings(base_url="http://127.0.0.1:11434/v1", model="nomic-embed-text"),
        BundledSettings(),
    )


def test_the_access_settings_of_the_readme_are_read(tmp_path):
    (text,) = (block for block in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[access]" in block)
    file = tmp_path / "config.toml"
    file.write_text(f'[vault]\npath = "x"\n{text}')
    access = load({"config": str(file)}, {"HOME": str(tmp_path)}).access
    assert access.is_enabled
    assert access.keys["ann@example.org"] == "ann"


def test_the_changelog_names_the_version_of_the_program():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
