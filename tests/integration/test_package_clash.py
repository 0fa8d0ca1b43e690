"""memex_vault.py: a package of another project with the name of one of Memex's is named, and nothing else runs."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

import memex_vault
from tests.support.paths import DAEMON_PYTHON, ROOT


def memex(*folders: Path, start: str = "from memex_vault import main; main()") -> subprocess.CompletedProcess[str]:
    """`memex --version`, with folders in which Python looks first."""
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    code = f"import sys; sys.argv = ['memex', '--version']; {start}"
    return subprocess.run(
        [DAEMON_PYTHON, "-c", code], cwd="/", env=environ, capture_output=True, text=True, check=False
    )


def test_the_packages_are_those_that_are_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    find = project["tool"]["setuptools"]["packages"]["find"]
    assert {name.rstrip("*") for name in find["include"]} == set(memex_vault.PACKAGES)
    assert project["project"]["scripts"] == {"memex": "memex_vault:main"}


@pytest.mark.parametrize("stranger", ["index.py", "syncd/__init__.py"])
def test_a_package_that_is_found_first_is_named_with_its_place(tmp_path, stranger):
    file = tmp_path / stranger
    file.parent.mkdir(exist_ok=True)
    file.write_text("raise SystemExit('another package ran')")
    done = memex(tmp_path)
    name = stranger.partition("/")[0].removesuffix(".py")
    assert (done.returncode, done.stdout) == (7, "")
    place = file if stranger == "index.py" else file.parent
    assert f"the package `{name}` is not Memex's own: Python finds {place} first." in done.stderr
    assert f"from {ROOT}" in done.stderr
    assert "install Memex into a separate environment" in done.stderr


def test_a_package_of_which_another_project_took_files_away_is_named():
    done = memex(start="sys.modules['syncd.cli.main'] = None; from memex_vault import main; main()")
    assert done.returncode == 7
    assert "the package `syncd` is not Memex's own" in done.stderr
    assert f"{ROOT / 'syncd'} belongs to" in done.stderr


def test_without_another_package_memex_starts():
    done = memex()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("memex ")
