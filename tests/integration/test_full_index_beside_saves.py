"""A new index is made in full while notes are saved, moved and captured all the while: never refused, and true in the end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.world import World

NOTES, FULL = 120, 8


@contextmanager
def beside(*works: Callable[[], None]) -> Iterator[None]:
    """Do each of `works` again and again in a thread of its own."""
    over = threading.Event()
    failures: list[Exception] = []

    def repeat(work: Callable[[], None]) -> None:
        while not over.is_set():
            try:
                work()
            except Exception as error:  # raised below, in the test's own thread
                failures.append(error)
                return

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


def save_notes(vault: Path, rng: random.Random) -> None:
    """Save one note in place, one by renaming, and remove one that comes back."""
    number = rng.randrange(NOTES)
    folder = vault / f"Area {number % 6}"
    with suppress(FileNotFoundError):  # its folder is being moved
        (folder / f"Note {number}.md").write_text(f"Saved at {time.time_ns()}: the heron.\n", "utf-8")
        temporary = folder / f".note-{number}.tmp"
        temporary.write_text(f"Renamed at {time.time_ns()}: the gannet.\n", "utf-8")
        temporary.rename(folder / f"Other {number}.md")
        (folder / f"Other {(number * 7) % NOTES}.md").unlink()
    time.sleep(0.1)


def move_folders(vault: Path, rng: random.Random) -> None:
    """Move one folder away and back."""
    folder, away = vault / f"Area {rng.randrange(6)}", vault / "Deep/er/Moved"
    away.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(away)
    time.sleep(0.02)
    folder.mkdir(exist_ok=True)  # an editor makes the folder of what it saves
    for path in away.iterdir():
        path.rename(folder / path.name)
    away.rmdir()
    time.sleep(0.05)


@pytest.mark.slow
def test_full_indexes_are_made_beside_saves_and_moves(tmp_path):
    world, rng = World(tmp_path), random.Random(3)
    for number in range(NOTES):
        world.write(f"Area {number % 6}/Note {number}.md", f"The heron {number}.\n")
    captured: list[str] = []

    def capture() -> None:
        record = world.app.agent_access.workspace("default").capture(f"Capture {len(captured)} of the dunlin.").record
        captured.append(record.id)
        time.sleep(0.05)

    try:
        with world.serving():
            world.settled()
            with beside(
                lambda: save_notes(world.vault, rng), lambda: move_folders(world.vault, random.Random()), capture
            ):
                for _ in range(FULL):
                    world.app.operations["index"]({"full": True}, lambda _: None)  # raised Unavailable, exit code 7
        world.reopen()  # a pipe that was stopped makes no pass
        world.run()
        index = world.app.opened.builds.scopes["captures"].index
        assert [id for id in captured if index.record(id) is None] == []
        assert world.dump() == world.rebuilt(tmp_path / "fresh")
    finally:
        world.close()
