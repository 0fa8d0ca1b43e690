"""Dockerfile, compose.yaml and distribution/container.sh: what a container is made of, may do, and runs."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from tests.support.paths import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["memex"]


def steps(name):
    """The arguments of all steps of one kind, in order."""
    return re.findall(rf"^{name} (.+)", DOCKERFILE.replace("\\\n", ""), re.MULTILINE)


def test_the_image_is_made_of_files_that_are_there_and_that_the_build_may_see():
    seen = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source for step in steps("COPY") if "--from" not in step for source in re.sub(r"--\S+ ", "", step).split()[:-1]
    }
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert {source.partition("/")[0] for source in copied} == seen


def test_the_libraries_of_the_image_are_checked_against_their_hashes():
    (locked,) = [step for step in steps("RUN") if "requirements.txt" in step]
    assert "--require-hashes" in locked
    assert "requirements-models.txt" not in DOCKERFILE


def test_the_daemon_runs_as_a_person_of_its_own_and_is_asked_how_it_is():
    assert steps("USER") == ["memex"]
    assert DOCKERFILE.rindex("\nUSER memex\n") > DOCKERFILE.rindex("\nRUN ")
    assert steps("VOLUME") == ['["/vault", "/state"]']
    assert 'CMD ["memex-container", "health"]' in steps("HEALTHCHECK")[0]


def test_a_composed_container_can_write_to_its_volumes_alone():
    assert SERVICE["read_only"] is True
    assert SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]
    assert [volume.rpartition(":")[2] for volume in SERVICE["volumes"]] == ["/vault", "/state"]
    assert "environment" not in SERVICE  # the key is a secret, which no inspection of the container shows
    assert SERVICE["secrets"] == ["memex_key"]
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"])


@pytest.fixture
def container(tmp_path):
    """Run container.sh with a `memex` and a `python` that say what they were asked, and with what key."""
    secret = tmp_path / "key"
    script = (ROOT / "distribution/container.sh").read_text().replace("/run/secrets/memex_key", str(secret))
    assert str(secret) in script
    for name in ("memex", "python"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\necho {name} "$1" "$2" "$KB_MCP_API_KEY" "$KB_API_KEY" | tee -a "{tmp_path}/asked"\n'
        )
        (tmp_path / name).chmod(0o755)

    def run(*words):
        subprocess.run(["sh", "-c", script, "sh", *words], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
        return (tmp_path / "asked").read_text().splitlines()

    return secret, run


def test_the_container_sets_the_vault_up_and_serves_it_with_the_secret_as_key(container):
    secret, run = container
    secret.write_text("a key with blanks\n")
    both = "a key with blanks a key with blanks"
    assert run("serve") == [f"memex init --yes {both}", f"memex serve  {both}"]


def test_other_words_are_a_command_of_memex_and_no_secret_is_no_key(container):
    _, run = container
    assert [line.rstrip() for line in run("search", "oven")] == ["memex search oven"]


def test_the_container_asks_the_daemon_how_it_is(container):
    _, run = container
    (asked,) = run("health")
    assert asked.startswith("python -c import urllib.request")
    assert "127.0.0.1:8765/healthz" in asked
