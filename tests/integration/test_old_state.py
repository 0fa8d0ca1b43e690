"""What people have goes on working: the state folder, service units, hooks, settings and a backup, as b1ced60 left them.

The archive is made by `tests/files/make_state.py`, which says how. An unpacked vault has other inodes, so its notes are
read again; none of them may be embedded again."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from index.encoders.embedder import PROBE, Embedder, EmbedSettings
from syncd.indexes.build_inputs import build_in_use
from tests.support.daemon_process import Memex, daemon
from tests.support.paths import FILES, ROOT
from tests.support.world import World, until

NOTES = [
    *("Captures/default/Entities/Heron.md", "Captures/default/Filter.md", "Captures/default/Kettle.md"),
    *("Captures/default/Spare key.md", "Garden/Compost.md", "Garden/Ferns.md", "Work/Tide table.md"),
]
HOOKS = ["post-commit", "post-merge", "post-checkout", "post-rewrite"]


class Recording:
    """The bundled model, and every document's text that it was given."""

    def __init__(self, encoder):
        self._encoder, self.documents = encoder, []

    def __getattr__(self, name):
        return getattr(self._encoder, name)

    def encode(self, texts, *, kind, urgent):
        self.documents += [text for text in texts if kind == "document" and text != PROBE]
        return self._encoder.encode(texts, kind=kind, urgent=urgent)

    def close(self):
        """The model is other tests' too."""


@pytest.fixture
def old(tmp_path, bundled, models):
    """Everything of the archive, as if this folder were where it was made."""
    places = {b"@ROOT@": str(tmp_path).encode(), b"@BIN@": str(Path(sys.executable).parent).encode()}
    with tarfile.open(FILES / "state-b1ced60.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)  # from 3.11.4 on
        archive.extractall(tmp_path)
        names = [member.name for member in archive if member.isfile()]
    for file in (tmp_path / name for name in names):
        before = after = file.read_bytes()
        for mark, place in places.items():
            after = after.replace(mark, place)
        if after != before:
            file.write_bytes(after)
    with daemon(tmp_path, models) as memex:
        yield memex


def build(memex):
    return (memex.state / "index/current").read_text().strip()


def builds(memex):
    return sorted(folder.name for folder in (memex.state / "index").iterdir() if folder.is_dir())


def program(memex, name):
    """What the unit of that name runs."""
    text = (memex.home / f".config/systemd/user/{name}.service").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    return shlex.split(line.removeprefix("ExecStart="))


def program_words(memex):
    """What follows the program in the units of the archive."""
    named = ("--config", str(memex.home / ".config/memex/config.toml"))
    return ["serve", "--vault", str(memex.vault), "--state", str(memex.state), *named]


def jobs(world):
    return world.app.operations["queue.list"]({"status": None, "workspace": None, "limit": 9}, lambda _: None)["jobs"]


def served(memex, words):
    """Start a daemon by these words, as a service manager does."""
    with memex.log.open("ab") as log:
        memex.process = subprocess.Popen(
            words, env=memex.environ, cwd=memex.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    memex.until(lambda: memex._bound(memex.process), 60)
    memex.settled(120)


def test_no_note_is_embedded_again(old, bundled, models):
    before, encoder = build(old), Recording(bundled)
    _, made = build_in_use(old.state / "index")
    assert before == f"{made.made_by[:12]}-1", "the fingerprint of the same settings is another one now"
    embedder = Embedder(EmbedSettings(), cache=models, prefer=made.identity, load=lambda *_: encoder)
    embedder.start()
    world = World(old.folder, embedder=embedder)
    try:
        outcome = world.run()
        captures = sum(path.startswith("Captures/") for path in NOTES)  # read once: their rows have new columns
        expected = (0, captures, 0, len(NOTES) - captures)
        assert (outcome.embedded, outcome.changes, outcome.failed, outcome.unchanged) == expected
        assert encoder.documents == []
        assert [(job["title"], job["status"]) for job in jobs(world)] == [("report.txt", "queued")]
        assert not world.app.opened.builds.is_outdated()
        with world.serving():
            until(lambda: jobs(world)[0]["status"] == "done")
            world.settled()
        assert encoder.documents, "the queued file was read"
        assert all("lighthouse" in text for text in encoder.documents), "nothing but the queued file was embedded"
        (relation,) = world.dump()["captures"]["catalog"]["memo_relations"]
        assert {"Captures/default/Kettle.md", "Filter", "needs", 0.8} <= set(relation)
    finally:
        world.close()
    assert (build(old), builds(old)) == (before, [before])


@pytest.mark.slow
def test_the_daemon_of_an_installed_unit_takes_the_state_over(old):
    before = build(old)
    served(old, program(old, "memex-module"))
    assert (build(old), builds(old)) == (before, [before])
    assert old.found("how to keep a plant alive")[0] == "Garden/Ferns.md"
    assert "Captures/default/Spare key.md" in old.found("how to get in without my own key")
    (hit,) = old.json("node", "search", "sea water trial")
    assert (hit["name"], hit["matched_observation"]) == ("Heron", "Passed the salt test in the harbour.")
    chain = old.json("audit", "verify")
    assert (chain["broken"], chain["breaks"], chain["changed"], chain["gone"]) == (0, [], [], [])
    old.until(lambda: old.json("job", "queue")["counts"]["done"] == 1)
    values = {setting["name"]: (setting["value"], setting["origin"]) for setting in old.json("config")}
    assert values["kb.collections"] == (["recipes"], str(old.home / ".config/memex/config.toml"))


@pytest.mark.slow
def test_keys_open_the_door_as_before(old):
    agent = json.loads((old.folder / "agent.key").read_text())["key"]
    old.serve()
    for secret, status in ((old.key, 200), (agent, 200), (agent[:-1] + "x", 401)):
        answer = old.client.get(f"{old.url}/thoughts", headers={"authorization": f"Bearer {secret}"})
        assert answer.status_code == status, answer.text
    assert [key["name"] for key in old.json("key", "list")] == ["owner", "claude"]


SCRIPT = """
import re
import sys
from syncd.cli import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
"""The program `memex` as an install of b1ced60 wrote it; a checkout that is pulled, and not installed again, keeps it."""


def test_a_program_that_was_installed_before_still_runs():
    command = [sys.executable, "-c", SCRIPT, "--version"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("memex ")
    wrong = subprocess.run(
        [*command[:-1], "nonsense"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (wrong.returncode, "nonsense" in wrong.stderr) == (2, True)


def test_a_unit_that_runs_the_script_still_has_its_program(old):
    script, *words = program(old, "memex")
    assert words == program_words(old) == program(old, "memex-module")[3:]
    done = subprocess.run([script, "--version"], env=old.environ, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("memex ")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "module"])
def test_a_service_is_installed_over_the_old_unit(old, name):
    unit = f"memex-{name}" if name else "memex"
    config = old.home / ".config/memex/config.toml"
    old.run("service", "install", "--file-only", "--config", str(config), *(["--name", name] if name else []))
    after = program(old, unit)
    assert after[after.index("serve") :] == program_words(old)
    assert old.json("service", "uninstall", *(["--name", name] if name else []))["removed"]


@pytest.mark.slow
def test_hooks_ring_and_are_known(old):
    folder, bell = old.vault / ".git/hooks", old.state / "bells/moved"
    before = {name: (folder / name).read_bytes() for name in HOOKS}
    assert [(hook["name"], hook["state"]) for hook in old.json("hook", "status")["hooks"]] == [
        (name, "installed") for name in HOOKS
    ]
    old.run("hook", "install")
    assert {name: (folder / name).read_bytes() for name in HOOKS} == before
    assert not bell.exists()
    old.git("commit", "-q", "--allow-empty", "-m", "Nothing")
    old.until(bell.exists)
    old.run("hook", "uninstall")
    assert [name for name in HOOKS if (folder / name).exists()] == []


@pytest.mark.slow
def test_a_backup_is_put_back_elsewhere(old, tmp_path):
    new = Memex(tmp_path / "new")
    new.run("restore", str(old.folder / "backup.tar.gz"))
    assert (new.state / "key").read_bytes() == (old.state / "key").read_bytes()
    assert (new.state / "hook-secret").read_bytes() == (old.state / "hook-secret").read_bytes()
    assert [key["name"] for key in new.json("key", "list")] == ["owner", "claude"]
    assert new.json("job", "queue")["counts"]["queued"] == 1
    assert new.json("audit", "verify")["broken"] == 0
    settings = (new.home / ".config/memex/config.toml").read_text()
    assert (str(new.vault) in settings, "recipes" in settings) == (True, True)
