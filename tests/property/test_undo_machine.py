"""Whatever agents wrote is taken back to the byte; whatever a person wrote among it stays; and the undo goes back too."""

from __future__ import annotations

import random
import re
import time
from contextlib import suppress

import pytest

from index.errors import MemexError
from index.graph.vertex import Edge
from syncd.graph.node_request import NewNode
from syncd.history.audit_log import Author, acting_as
from tests.support.agent_writes import by, inbox, undo
from tests.support.world import World

MINE = re.compile(rb"mine[0-9]+x")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("undo"))
    yield made
    made.close()


class Story:
    """What becomes of one workspace, by the dice."""

    def __init__(self, world, name, dice):
        self.world, self.name, self.dice = world, name, dice
        self.space = world.app.agent_access.create_workspace(name)
        self.folder = world.vault / "Captures" / name
        self.number = 0

    def text(self):
        self.number += 1
        return f"# {self.name} {self.number}\n\n{self.dice.choice(['salt', 'sun', 'rain'])} {self.number}\n"

    def records(self):
        return [one for one in self.space.recent(200) if one.type != "entity"]

    def names(self):
        return [f"Node {number}" for number in range(4)]

    # What agents do

    def agent(self):
        pick = self.dice.choice
        records, names = self.records(), self.names()
        act = pick(
            [
                *["capture", "update", "tags", "delete", "again", "memo", "node", "observe"],
                *["relate", "forget", "stamp", "run"],
            ]
        )
        key = pick(["claude", "codex"])
        with by(key, act), suppress(MemexError):
            match act:
                case "capture":
                    self.space.capture(self.text(), metadata={"tags": ["a"]})
                case "update" if records:
                    self.space.update_note(pick(records).id, self.text())
                case "tags" if records:
                    self.space.set_tags(pick(records).id, [pick(["b", "c"])])
                case "delete" if records:
                    self.space.delete(pick(records).id)
                case "again" if records:
                    self.space.capture(self.space.get(pick(records).id).content)
                case "memo":
                    self.space.memos.save(self.text(), memo_id=f"m{self.dice.randrange(3)}")
                case "node":
                    self.space.nodes.create(
                        [NewNode(name, "thing", (self.text(),)) for name in self.dice.sample(names, 2)]
                    )
                case "observe":
                    self.space.nodes.add_observations([(pick(names), [self.text()])])
                case "relate":
                    self.space.nodes.add_relations(
                        [Edge(names[0], names[1], "knows"), Edge(names[2], names[1], "knows")]
                    )
                case "forget":
                    self.space.nodes.delete(self.dice.sample(names, 2))
                case "stamp" if records:
                    self.stamp(pick(records).path)
                case "run":
                    self.world.run()

    def stamp(self, path):
        """The daemon itself writes a property, because of what the note says."""
        raw, _ = self.world.app.opened.vault.read(path)
        if b"\npromote: false" not in raw and raw.startswith(b"---\n"):
            from hashlib import sha256

            with acting_as(Author("daemon", "review")):
                self.world.app.opened.vault.replace(
                    path, raw.replace(b"---\n", b"---\npromote: false\n", 1), digest=sha256(raw).hexdigest()
                )

    # What the person does

    def person(self):
        files = sorted(file for file in self.folder.rglob("*.md") if file.is_file())
        self.number += 1
        mine = f"mine{self.number}x"
        act = self.dice.choice(["edit", "edit", "put", "remove", "rename"])
        file = self.dice.choice(files) if files else None
        if act == "put" or file is None:
            (self.folder / f"by hand {self.number}.md").write_text(f"{mine}\n")
        elif act == "edit":
            file.write_bytes(file.read_bytes() + f"\n{mine}\n".encode())
        elif act == "remove":
            file.unlink()
        else:
            file.rename(file.with_name(f"renamed {self.number}.md"))
        if self.dice.random() < 0.7:
            self.world.run()

    def files(self):
        return {path: raw for path, raw in inbox(self.world).items() if path.startswith(f"Captures/{self.name}/")}

    def mine(self):
        return {word for raw in self.files().values() for word in MINE.findall(raw)}


def unstamped(files):
    """Without what the daemon itself has written, which no undo of agents' writes need take back."""
    return {path: raw.replace(b"promote: false\n", b"") for path, raw in files.items()}


def tick(world):
    """A moment after everything that is in the log."""
    last = max([0, *(entry.at for entry in world.app.opened.audit.find(1))]) + 1
    while time.time_ns() // 1_000_000 <= last:
        time.sleep(0.001)
    return last


def story(world, seed, *, steps, person):
    told = Story(world, f"s{seed}{'p' if person else ''}", random.Random(seed))
    for _ in range(6):
        told.agent()
    if person:
        told.person()
    world.run()
    before, since = told.files(), tick(world)
    for _ in range(steps):
        if person and told.dice.random() < 0.3:
            told.person()
        else:
            told.agent()
    world.run()
    return told, before, since


def alone(world, seed, steps):
    told, before, since = story(world, seed, steps=steps, person=False)
    after = told.files()
    first = undo(world, since=since, workspace=told.name)
    assert unstamped(told.files()) == unstamped(before), first
    assert first["skipped"] == []
    if first["undo"]:
        second = undo(world, first["undo"])
        assert told.files() == after, second
        undo(world, second["undo"])
        assert unstamped(told.files()) == unstamped(before)
    assert world.dump() == world.rebuilt(world.vault.parent / "rebuilt")


def together(world, seed, steps):
    told, _, since = story(world, seed, steps=steps, person=True)
    mine, after = told.mine(), told.files()
    first = undo(world, since=since, workspace=told.name)
    assert told.mine() >= mine, first
    if first["undo"]:
        undo(world, first["undo"])
        assert told.files() == after


@pytest.mark.parametrize("seed", range(2))
def test_what_agents_wrote_goes_to_the_byte_and_comes_back(world, seed):
    alone(world, seed, 14)


@pytest.mark.parametrize("seed", range(2))
def test_no_word_of_a_person_is_lost(world, seed):
    together(world, seed, 14)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_hold_for_long_stories(world):
    for seed in range(100, 125):
        alone(world, seed, 40)
        together(world, seed, 40)
