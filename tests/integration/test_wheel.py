"""What `make dist` builds: the files of both distributions, and the wheel at work in an environment that had nothing."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import memex_vault
from distribution.model_weights import MADE
from tests.support.daemon_process import Memex
from tests.support.distributions import MODEL, build, tracked
from tests.support.mcp_calls import called
from tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SOURCE_ALONE = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "constraints.txt", "pyproject.toml"}
HEAVY = re.compile(r"nvidia-.*|cuda-.*|triton|torch|transformers|sentence-transformers|scipy|scikit-learn|sympy|onnx")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of both distributions, built from a copy of what Git knows."""
    folder = tmp_path_factory.mktemp("source")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return build(folder)


def shipped():
    """The files of the packages that Git has."""
    return {name for name in tracked() if name.partition("/")[0] in {*memex_vault.PACKAGES, "memex_vault.py"}}


def test_the_source_distribution_has_what_builds_memex_and_nothing_else(built):
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    written = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    builders = {name for name in tracked() if name.startswith("distribution/")}
    assert names - written == shipped() | builders | SOURCE_ALONE
    assert file.stat().st_size < 2e6


def test_the_wheel_has_the_packages_with_the_model_and_nothing_else(built):
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
    info = {name for name in names if name.startswith("memex_vault-")}
    assert names - info == shipped() | {f"{MODEL}/{name}" for name in MADE}
    assert {name.rpartition("/")[2] for name in info} == {
        "LICENSE",
        "METADATA",
        "RECORD",
        "WHEEL",
        "cytoscape-LICENSE.txt",
        "entry_points.txt",
        "top_level.txt",
    }


class Installed(Memex):
    """The command `memex` of an environment that has the wheel and what it asks for."""

    def __init__(self, folder, environment):
        super().__init__(folder)
        self.command = environment / "bin/memex"

    @property
    def environ(self):
        found = super().environ
        del found["PYTHONPATH"]
        return found

    def start(self, *words, **options):
        command = [self.command, *words, "--vault", self.vault, "--state", self.state]
        return subprocess.Popen(command, env=self.environ, cwd=self.home, **options)


def size(folder):
    """The size of the folder's files in bytes, as `du` counts it."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def test_the_wheel_serves_captures_and_finds_in_an_empty_environment(built, tmp_path):
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    empty = size(environment)
    (file,) = built.glob("*.whl")
    pip = [environment / "bin/python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([*pip, file], check=True)
    # 683 MB with what Python compiles; newer versions than these may take the rest to 700 MB.
    assert size(environment) - empty < 690 << 20
    (packages,) = environment.glob("lib/python*/site-packages")
    libraries = {each.name.lower() for each in distributions(path=[str(packages)])}
    assert "lancedb" in libraries
    assert [name for name in libraries if HEAVY.fullmatch(name)] == []

    memex = Installed(tmp_path, environment)
    memex.write("Kitchen.md", "# Kitchen\n\nThe oven reaches 250 degrees.")
    memex.run("init", "--no-welcome", str(memex.vault))
    memex.serve()
    try:
        memex.capture("Bread is baked at night.")
        found = memex.rest("POST", "/search", json={"query": "when do we bake"}).json()
        assert found["results"][0]["chunk_content"] == "Bread is baked at night."
        assert set(memex.found("how hot is the place where bread is made")) == {
            "Kitchen.md",
            "Captures/default/Bread is baked at night.md",
        }
        assert json.loads(memex.run("status", "--json"))["ready"]
        file = Path(memex.environ["HOME"], ".cursor/mcp.json")
        file.parent.mkdir(parents=True)
        file.write_text('{"mcpServers": {"docs": {"url": "https://docs.example"}}}')
        memex.run("connect", "cursor", "--write")
        servers = json.loads(file.read_text())["mcpServers"]
        assert servers.keys() == {"docs", "memex"}
        entry = servers["memex"]
        told = called(entry["url"], entry["headers"], "semantic_search", query="when do we bake")
        assert told["results"][0]["chunk_content"] == "Bread is baked at night."
        memex.run("connect", "cursor", "--remove")
        assert json.loads(file.read_text())["mcpServers"].keys() == {"docs"}
        memex.run("stop")
        assert memex.process.wait(60) == 0, memex.said
    finally:
        if memex.process.poll() is None:
            memex.stop(signal.SIGKILL)


def test_the_extra_is_what_the_line_in_messages_installs(built):
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        lines = archive.read(name).decode().splitlines()
    asked = [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist: ")]
    extra = {
        each.name
        for each in asked
        if each.marker and each.marker.evaluate({"extra": "models"}) and not each.marker.evaluate({"extra": ""})
    }
    assert extra == {"huggingface-hub", "sentence-transformers", "torch", "transformers"}
