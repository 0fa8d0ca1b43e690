"""A note under update when the process is killed or the disk is full: the old note whole, or the new one, and the index agrees."""

from __future__ import annotations

import random
import threading
import time

import pytest

from index.errors import MemexError, Unavailable
from tests.support.disk_faults import filled, small_disk
from tests.support.fast_daemon import Daemon
from tests.support.world import World, until

pytestmark = pytest.mark.faults


@pytest.mark.timeout(1800)
def test_killed_in_the_middle_of_updates_each_note_is_whole(tmp_path):
    """Two agents update, a person edits; what was acknowledged is there, nothing is half of one text and half of another."""
    world = World(tmp_path)
    space = world.app.agent_access.workspace("default")
    notes = [space.capture(f"note {n}, " + "first words. " * 200).record for n in range(2)]
    mine = space.capture("mine, the beginning\n").record
    world.close()
    chance = random.Random(815)
    asked: dict[str, list[str]] = {one.id: [] for one in notes}
    told: dict[str, tuple[str, int]] = {}
    typed = "mine, the beginning\n"
    for life in range(8):
        daemon = Daemon(tmp_path)
        dying = threading.Event()

        def update(note, daemon=daemon, dying=dying, life=life):
            for count in range(1_000):
                text = f"note {life} {count}, " + f"word{count} \u65e5\r\n" * 200
                asked[note.id].append(text)
                try:
                    done = daemon.ask("updatenote", id=note.id, text=text)
                except MemexError:
                    assert dying.is_set() or daemon.process.poll() is not None
                    return
                told[note.id] = (text, done["version"])

        busy = [threading.Thread(target=update, args=(note,)) for note in notes]
        for thread in busy:
            thread.start()
        file = world.vault / mine.path
        typed += f"line {life}\n"
        file.write_bytes(file.read_bytes() + f"line {life}\n".encode())
        time.sleep(chance.uniform(0.1, 1.2) + (3.0 if life % 4 == 0 else 0))
        dying.set()
        daemon.kill()
        for thread in busy:
            thread.join()
    daemon = Daemon(tmp_path)
    until(lambda: daemon.ask("status")["pending"] == 0, 60)
    assert daemon.stop() == 0
    world = World(tmp_path)
    try:
        world.run()
        space = world.app.agent_access.workspace("default")
        assert told
        for one in notes:
            kept = space.get(one.id)
            text, version = told[one.id]
            assert (
                kept.content in (text, asked[one.id][-1]) or kept.content in asked[one.id][asked[one.id].index(text) :]
            )
            assert kept.record.version >= version
            assert (kept.record.path, kept.record.created_at) == (one.path, one.created_at)
        kept = space.get(mine.id)
        assert kept.content == typed
        assert 2 <= kept.record.version <= 9, "each edit is stamped once, or with the one after it"
        assert not world.app.opened.sync.edits.paths
        assert list(world.vault.rglob(".memex-*")) == []
        assert world.dump() == world.rebuilt(tmp_path / "other")
    finally:
        world.close()


def test_a_full_disk_refuses_an_update_and_an_edit_is_stamped_once_there_is_space(tmp_path):
    with small_disk(tmp_path / "vault", "2m"):
        world = World(tmp_path)
        try:
            space = world.app.agent_access.workspace("default")
            one, other = (space.capture(f"{name}, " + "old words. " * 1000).record for name in ("one", "other"))
            world.run()
            file = world.vault / other.path
            before = (world.vault / one.path).read_bytes()
            file.write_bytes(file.read_bytes()[:-20])
            edited = file.read_bytes()
            with filled(world.vault):
                with pytest.raises(Unavailable, match="disk is full"):
                    space.update_note(one.id, "new words. " * 1000)
                assert (world.vault / one.path).read_bytes() == before
                world.run()
                assert file.read_bytes() == edited
                assert set(world.app.opened.sync.edits.paths) == {other.path}
                assert space.get(one.id).record.version == 1
            world.run()
            assert space.get(other.id).record.version == 2
            assert space.update_note(one.id, "new words")[1]
            world.run()
            assert world.dump() == world.rebuilt(tmp_path / "other")
        finally:
            world.close()
