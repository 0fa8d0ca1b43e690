"""kill -9, full disks and torn files, done to a real daemon; only the model is faked, so that it starts fast."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

import pytest

from index.errors import MemexError, Unavailable
from syncd.sync import pipeline
from tests.support.disk_faults import filled, small_disk
from tests.support.fast_daemon import Daemon
from tests.support.shifted_clock import Clock
from tests.support.world import World, until


def killed_under_load(folder: Path, kills: int) -> None:
    world = World(folder)
    for number in range(400):
        world.write(f"n/{number:03}.md", f"---\nid: n-{number}\n---\nnote {number} about the knot, word{number}\n")
    world.git("init", "-q")
    world.git("add", "-A")
    world.git("commit", "-qm", "all")
    world.close()
    kept: dict[str, str] = {}
    chance = random.Random(4711)
    starts = []
    for life in range(kills):
        daemon = Daemon(folder)
        starts.append(daemon.took)
        dying = threading.Event()

        def capture(number: int, daemon: Daemon = daemon, dying: threading.Event = dying, life: int = life) -> None:
            for count in range(1_000):
                text = f"capture {life}-{number}-{count}\r\n\u2028 of a ruff, \x00 exactly so "
                try:
                    path = daemon.ask("capture", content=text)["path"]
                except MemexError:
                    assert dying.is_set() or daemon.process.poll() is not None
                    return
                kept[path] = text

        def edit(dying: threading.Event = dying, life: int = life) -> None:
            count = 0
            while not dying.is_set():
                number = chance.randrange(400)
                world.write(f"n/{number:03}.md", f"---\nid: n-{number}\n---\nedited {life} {count} about the knot\n")
                if count % 7 == 3:
                    # Git gives up when a file that it listed is gone, as the first name of a new capture soon is.
                    with contextlib.suppress(subprocess.CalledProcessError):
                        world.git("add", "-A")
                        world.git("commit", "-qm", "more")
                count += 1
                time.sleep(0.02)

        busy = [threading.Thread(target=capture, args=(number,)) for number in range(2)]
        busy += [threading.Thread(target=edit)]
        for thread in busy:
            thread.start()
        time.sleep(chance.uniform(0.1, 1.2))
        dying.set()
        daemon.kill()
        for thread in busy:
            thread.join()
    daemon = Daemon(folder)
    starts.append(daemon.took)
    until(lambda: daemon.ask("status")["pending"] == 0)
    told = daemon.ask("status")
    assert told["degraded"] == []
    assert daemon.stop() == 0
    assert kept
    for path, text in kept.items():
        raw = (world.vault / path).read_bytes()
        assert raw.endswith(b"---\n" + text.encode()), path
    assert list(world.vault.rglob(".memex-*")) == []
    world.app = world._open()
    try:
        manifest = world.app.opened.builds.scopes["captures"].index.manifest
        assert kept.keys() <= manifest.keys()
        before = world.dump()
        world.run()
        assert world.dump() == before  # nothing was left to do
        assert before == world.rebuilt(folder / "other")
        log = world.app.operations["audit.verify"]({}, lambda _: None)
        assert log["entries"] >= len(kept)
        assert not any(log[name] for name in ("breaks", "changed", "gone", "unlogged")), log
    finally:
        world.close()
    sys.stdout.write(
        f"{kills} kills, {len(kept)} captures acknowledged, starts of {median(starts):.1f} s of CPU, at most {max(starts):.1f} s\n"
    )
    assert median(starts) < 10
    assert max(starts) < 30


@pytest.mark.faults
def test_killed_under_load_nothing_acknowledged_is_lost(tmp_path):
    killed_under_load(tmp_path, 2)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_killed_again_and_again_under_load_nothing_acknowledged_is_lost(tmp_path):
    killed_under_load(tmp_path, int(os.environ.get("MEMEX_KILLS", "20")))


# Full disks


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.md")}


@pytest.mark.faults
def test_a_full_disk_under_the_vault_refuses_captures_and_leaves_nothing_behind(tmp_path):
    with small_disk(tmp_path / "vault", "2m"):
        world = World(tmp_path)
        world.write("Note.md", "the turnstone\n")
        try:
            with world.serving():
                world.settled()
                workspace = world.app.agent_access.workspace("default")
                kept = workspace.capture("kept, a sanderling")
                before = everything(world.vault)
                with filled(world.vault):
                    with pytest.raises(Unavailable, match="disk is full"):
                        workspace.capture("refused " * 1000)
                    with pytest.raises(Unavailable, match="disk is full"):
                        workspace.capture("kept, a sanderling")  # would move its date
                    assert everything(world.vault) == before
                    assert [path.name for path in world.vault.rglob("*") if path.is_file()].count("filler") == 1
                    assert len(list((world.vault / "Captures/default").iterdir())) == 1
                    assert world.found("turnstone", mode="text") == ["Note.md"]
                    assert workspace.get(kept.record.id).content == "kept, a sanderling"
                assert workspace.capture("taken again").created
                world.settled()
                assert not world.app.health.degraded()
        finally:
            world.close()


@pytest.mark.faults
def test_a_full_disk_under_the_state_keeps_edits_pending_until_there_is_space(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "PAUSE", (0.5, 0.5))
    with small_disk(tmp_path / "state", "48m"):
        world = World(tmp_path)
        world.write("Note.md", "the turnstone\n")
        try:
            with world.serving():
                world.settled()
                workspace = world.app.agent_access.workspace("default")
                before = everything(world.vault)
                with filled(world.state):
                    with pytest.raises(Unavailable, match="disk is full"):
                        workspace.capture("refused " * 20_000)
                    assert everything(world.vault) == before
                    for number in range(40):
                        world.write(f"n/{number}.md", f"the phalarope {number}\n" + "more of it. " * 2000)
                    until(lambda: any("disk is full" in told for told in world.app.health.degraded()), 120)
                    assert len(world.app.opened.sync.pending_paths) > 0
                    for _ in range(5):
                        assert world.found("turnstone", mode="text") == ["Note.md"]
                        time.sleep(0.2)
                    assert len(world.app.opened.sync.pending_paths) > 0
                until(lambda: len(world.found("phalarope", mode="text", limit=50)) == 40, 120)
                world.settled()
                until(lambda: not world.app.health.degraded(), 120)  # the audit log is tried twice a minute
                assert workspace.capture("taken again").created
                assert world.dump() == world.rebuilt(tmp_path / "other")
        finally:
            world.close()


# Torn files


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def tear(state: Path, harm: str) -> None:
    live = state / "index" / (state / "index/current").read_text().strip()
    match harm:
        case "manifest cut":
            manifest = newest(live, "vault.lance/chunks.lance/_versions/*.manifest")
            os.truncate(manifest, manifest.stat().st_size // 2)
        case "manifests cut":
            for manifest in live.glob("vault.lance/chunks.lance/_versions/*.manifest"):
                os.truncate(manifest, 3)
        case "data cut":
            data = newest(live, "vault.lance/chunks.lance/data/*")
            os.truncate(data, data.stat().st_size // 2)
        case "data gone":
            shutil.rmtree(live / "vault.lance/chunks.lance/data")
        case "index cut":
            for file in (live / "vault.lance/chunks.lance/_indices").rglob("*"):
                if file.is_file():
                    os.truncate(file, file.stat().st_size // 2)
        case "catalog zeroed":
            with (live / "vault.db").open("r+b") as file:
                file.write(b"\0" * 4096)
        case "catalog cut":
            os.truncate(live / "vault.db", (live / "vault.db").stat().st_size // 2)
        case "catalog's middle":
            with (live / "vault.db").open("r+b") as file:
                file.seek(8192)
                file.write(os.urandom(16384))
        case "rows lost":
            shutil.rmtree(live / "captures.lance")
        case "head":
            (state / "head").write_bytes(b"\xff\xfe\0")


# Each part and each kind of answer is quick; what LanceDB files lose is also in unit/index/storage/test_crash_repair.py.
HARMS = ["manifest cut", "data cut", "catalog zeroed", "rows lost", "head"]
MORE_HARMS = ["manifests cut", "data gone", "index cut", "catalog cut", "catalog's middle"]


@pytest.mark.parametrize("harm", [*HARMS, *(pytest.param(harm, marks=pytest.mark.slow) for harm in MORE_HARMS)])
def test_torn_files_are_mended_or_made_anew_and_never_answer_with_nothing(tmp_path, harm):
    world = World(tmp_path)
    try:
        for number in range(45):
            world.write(f"n/{number:02}.md", f"note {number} about the curlew, word{number}\n")
            if number % 20 == 0:
                world.run()
        world.run()
        kept = world.app.agent_access.workspace("default").capture("a captured curlew").record
        world.git("init", "-q")
        world.close()
        tear(world.state, harm)
        world.app = world._open()
        asked = {"query": "curlew", "scope": "all", "limit": 50}
        try:
            answer = world.app.operations["search"](asked, lambda _: None)
        except Unavailable:
            pass
        else:
            assert len(answer["hits"]) == 46 or answer["degraded"]
        with world.serving():
            world.settled()
            until(lambda: len(world.found("curlew", limit=50)) == 46)
            until(lambda: not world.app.health.degraded())
            assert world.app.agent_access.workspace("default").get(kept.id).content == "a captured curlew"
            assert world.app.agent_access.workspace("default").capture("another curlew").created
        assert world.dump() == world.rebuilt(tmp_path / "other")
        world.reopen()
        assert not world.app.health.degraded()
    finally:
        world.close()


@pytest.mark.skipif(not Clock.possible, reason="no compiler to make a clock with")
@pytest.mark.slow  # test_health.py and test_chunk_store_maintenance.py shift the clock without a daemon
def test_a_clock_before_1970_is_told_in_few_words_and_passes(tmp_path, monkeypatch):
    clock = Clock(tmp_path)
    for name, value in clock.environ.items():
        monkeypatch.setenv(name, value)
    with Daemon(tmp_path) as daemon:
        daemon.write("A.md", "a heron\n")
        until(lambda: daemon.found("heron") == ["A.md"])
        before = len(daemon.log.read_text().splitlines())
        clock.set(-int(time.time()) - 1_000_000)
        for number in range(20):
            with pytest.raises(Unavailable, match="clock"):
                daemon.ask("capture", content=f"capture {number}")
            time.sleep(0.3)
        assert any("before 1970" in sentence for sentence in daemon.status("degraded"))
        said = daemon.log.read_text().splitlines()[before:]
        assert len(said) < 40, said
        clock.set(0)
        assert daemon.ask("capture", content="a kingfisher")["created"]
        until(lambda: daemon.found("heron") == ["A.md"] and daemon.found("kingfisher"))
        until(lambda: daemon.status("degraded") == [])
