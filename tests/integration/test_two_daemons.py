"""Two devices lose nothing and agree in the end, whatever is done on both, for a while or for as long as an hour's work."""

from __future__ import annotations

import os
import random
import shutil
import sys

import pytest

pytest.register_assert_rewrite("tests.support.two_devices")
from tests.support.two_devices import Apart, Here, Story, hasten  # noqa: E402 - its assertions are to be told like a test's

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def told(tmp_path, monkeypatch, steps, seed, begin):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = T\nemail = t@example.org\n[core]\neditor = true\n")
    story = Story(tmp_path, seed, begin)
    try:
        for _ in range(steps):
            story.step()
        story.end()
        gone = story.true(tmp_path)
    finally:
        sys.stderr.write(f"seed {seed}: {story.counts}, {len(story.wanted)} texts\n")
        for device in story.devices:
            device.stop(kill=True)
    sys.stderr.write(f"{gone} texts are in the history alone\n")


@pytest.mark.slow
def test_two_devices_lose_nothing_and_come_to_the_same_files(tmp_path, monkeypatch):
    hasten(monkeypatch.setattr)
    told(tmp_path, monkeypatch, 40, random.randrange(1 << 30), Here)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_hour_of_two_devices_loses_nothing_and_comes_to_the_same_files(tmp_path, monkeypatch):
    """With daemons in processes of their own, which are killed."""
    steps, seed = (int(os.environ.get(name) or 0) for name in ("STEPS", "SEED"))
    told(tmp_path, monkeypatch, steps or 600, seed or random.randrange(1 << 30), Apart)
