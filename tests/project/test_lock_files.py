"""tests/supply/lock_files.py: what the daemon is installed from, and that it has nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipfile
from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement

from tests.supply import audit, lock_files
from tests.support.paths import DAEMON_PYTHON, ROOT

TOOLS = ("boto3", "cfnlint", "coverage", "docker", "flask", "hypothesis", "moto", "mypy", "pytest", "ruff", "schemathesis", "uv", "pip_audit")  # fmt: skip
HASH = f"--hash=sha256:{'0' * 64}"
PROJECT = {
    "build-system": {"requires": ["setuptools==84.2.1"]},
    "project": {
        "dependencies": ["PyYAML>=6"],
        "optional-dependencies": {"otel": ["a.b[c]>=1; python_version > '3'"], "models": ["torch>=2"]},
    },
    "dependency-groups": {
        "dev": ["pytest"],
        "audit": [],
        "clients": [],
        "lock": [],
        "installer": ["setuptools==84.2.1"],
    },
}
DAEMON = f"# a head\na-b==1 ; sys_platform == 'linux' \\\n    {HASH} \\\n    {HASH}\npyyaml==6 \\\n    {HASH}\nsetuptools==84.2.1 \\\n    {HASH}\n"
CPU = f"pyyaml==6+cpu \\\n    {HASH}\n"
MODELS = f"torch==2 \\\n    {HASH}\n"
TESTS = f"pytest==9 \\\n    {HASH}\npyyaml==6 \\\n    {HASH}\n"


# Lock files


def said(daemon, models, tests, *, versions=None, cpu=CPU):
    versions = lock_files.without_hashes(daemon, models) if versions is None else versions
    return list(lock_files.faults(daemon, models, tests, versions, cpu, PROJECT))


def test_the_lock_files_of_the_project_are_whole():
    assert lock_files.read_faults() == []


def test_the_lock_of_the_daemon_has_no_test_tool():
    locked = lock_files.pins(lock_files.DAEMON.read_text())
    tools = lock_files.asked(lock_files.read_project()["dependency-groups"]["dev"]) - {"cryptography", "jsonschema"}
    assert "pytest" in tools
    assert tools & locked.keys() == set()


def test_the_lock_of_the_site_pins_every_tool_with_hashes():
    locked = lock_files.pins(lock_files.SITE.read_text())
    assert lock_files.asked(lock_files.read_project()["dependency-groups"]["docs"]) <= locked.keys()
    assert [pin.name for pin in locked.values() if not pin.hashes] == []


def test_a_lock_without_fault_has_none():
    assert said(DAEMON, MODELS, TESTS) == []


@pytest.mark.parametrize(
    ("daemon", "models", "tests", "fault"),
    [
        pytest.param(
            DAEMON.replace(f"pyyaml==6 \\\n    {HASH}", "pyyaml==6"), MODELS, TESTS, "pyyaml has no", id="no hash"
        ),
        pytest.param(DAEMON, MODELS, TESTS.replace("sha256:", "md5:", 1), "pytest has no", id="a weak hash"),
        pytest.param(
            DAEMON.replace("a-b", "a-c"), MODELS, TESTS, "a-b, which pyproject.toml names", id="a library missing"
        ),
        pytest.param(DAEMON, MODELS, TESTS.replace("pytest", "pytext"), "pytest, which pyproject", id="a tool missing"),
        pytest.param(DAEMON, MODELS, TESTS.replace("yaml==6", "yaml==7"), "pyyaml is 6 for", id="two versions"),
        pytest.param(DAEMON.replace("84.2.1", "85"), MODELS, TESTS, "another setuptools", id="another builder"),
        pytest.param(DAEMON, "", TESTS, "torch, which pyproject.toml names", id="a library of the extra missing"),
        pytest.param(DAEMON, f"{MODELS}a-b==1 \\\n    {HASH}\n", TESTS, "a-b is both in", id="one library in both"),
        pytest.param(
            DAEMON, MODELS, f"{TESTS}torch==3 \\\n    {HASH}\n", "torch is 2 for", id="another version in the extra"
        ),
    ],
)
def test_a_fault_of_a_lock_is_told(daemon, models, tests, fault):
    (complaint,) = said(daemon, models, tests)
    assert fault in complaint


def test_constraints_that_say_something_else_are_told():
    versions = lock_files.without_hashes(DAEMON, MODELS).replace("a-b==1", "a-b==2")
    (complaint,) = said(DAEMON, MODELS, TESTS, versions=versions)
    assert "constraints.txt and requirements.txt differ" in complaint


def test_a_build_of_another_version_than_the_locked_one_is_told():
    (complaint,) = said(DAEMON, MODELS, TESTS, cpu=CPU.replace("==6", "==5"))
    assert "pyyaml 5+cpu is no build of the version" in complaint


@pytest.mark.parametrize("line", ["pyyaml>=6", "pyyaml", "pyyaml @ https://example.org/pyyaml.whl"])
def test_a_line_that_pins_nothing_is_refused(line):
    with pytest.raises(ValueError, match="is not pinned"):
        lock_files.pins(f"{DAEMON}{line}\n")


def test_versions_without_hashes_keep_their_platforms():
    assert lock_files.without_hashes(DAEMON, MODELS).splitlines()[1:] == [
        "a-b==1 ; sys_platform == 'linux'",
        "pyyaml==6",
        "setuptools==84.2.1",
        "torch==2",
    ]


def test_the_lock_of_the_extra_keeps_what_the_daemon_s_has_not():
    assert lock_files.beyond(f"# a head\n{MODELS}{DAEMON}", DAEMON) == MODELS


# What the base install must do without

HEAVY = re.compile(r"nvidia-.*|cuda-.*|triton|torch|transformers|sentence-transformers|scipy|scikit-learn|sympy|onnx")


def test_the_daemon_alone_needs_no_torch_and_nothing_that_comes_with_it():
    base, models = (lock_files.pins(file.read_text()) for file in (lock_files.DAEMON, lock_files.MODELS))
    assert [name for name in base if HEAVY.fullmatch(name)] == []
    assert {"torch", "scipy", "transformers", "nvidia-cudnn-cu13"} <= models.keys()


def test_the_lock_is_what_the_libraries_themselves_ask_for():
    """No library of the base asks for one that the lock has not, so an install without the lock has no other."""
    base = lock_files.pins(lock_files.DAEMON.read_text())
    installed = {lock_files.canonical(each.name): each for each in distributions(path=[str(audit.PACKAGES)])}
    missing = {
        (owner, need)
        for owner in base.keys() & installed.keys()
        for line in installed[owner].requires or []
        if (parsed := Requirement(line)).marker is None or parsed.marker.evaluate({"extra": ""})
        if (need := lock_files.canonical(parsed.name)) not in base
    }
    assert missing == set()


# The two environments


def test_the_daemon_has_no_test_tool():
    code = f"import importlib.util, json; print(json.dumps([name for name in {TOOLS!r} if importlib.util.find_spec(name)]))"
    done = subprocess.run([DAEMON_PYTHON, "-c", code], cwd="/", env={}, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [], "make test keeps them apart: run the tests with .venv-dev/bin/python"


def test_the_daemon_has_nothing_but_what_is_locked():
    done = subprocess.run(
        [DAEMON_PYTHON, "-m", "tests.supply", "others"], cwd=ROOT, env={}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_the_command_of_the_set_up_starts_in_the_daemon_s_environment():
    memex = DAEMON_PYTHON.with_name("memex")
    done = subprocess.run([memex, "--version"], cwd="/", env={}, capture_output=True, text=True, check=True)
    assert "memex" in done.stdout.casefold()


def wheel(folder, name, *requires):
    """A wheel with nothing in it; its hash as a lock file writes it."""
    file, info = folder / f"{name}-1-py3-none-any.whl", f"{name}-1.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needs}")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return f"--hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


@pytest.mark.parametrize(
    ("lower", "said"),
    [
        pytest.param("{}", "Would install", id="its hash"),
        pytest.param(HASH, "THESE PACKAGES DO NOT MATCH THE HASHES", id="another hash"),
        pytest.param("", "In --require-hashes mode", id="no hash", marks=pytest.mark.slow),
        pytest.param(None, "In --require-hashes mode", id="not locked"),
    ],
)
def test_pip_installs_a_library_of_a_library_only_with_its_hash(tmp_path, lower, said):
    asked, needed = wheel(tmp_path, "upperx", "lowerx"), wheel(tmp_path, "lowerx")
    lock = tmp_path / "lock.txt"
    lock.write_text(f"upperx==1 {asked}\n" + ("" if lower is None else f"lowerx==1 {lower.format(needed)}\n"))
    words = ["install", "--dry-run", "--require-hashes", "--no-index", "--find-links", tmp_path, "--constraint", lock]
    done = subprocess.run(
        [DAEMON_PYTHON, "-m", "pip", "--isolated", *words, "upperx"], capture_output=True, text=True, check=False
    )
    assert said in done.stdout + done.stderr
    assert (done.returncode == 0) == (lower == "{}")
