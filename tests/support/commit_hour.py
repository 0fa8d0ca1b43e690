"""An hour of a vault under Git, with the real committer and a clock that the caller sets: which commits Memex makes by itself.

`python -m tests.support.commit_hour FOLDER` prints them for an hour of ordinary use."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from index.document_ids import sha256
from syncd.history.audit_log import Author
from syncd.settings.automation import GitSettings
from tests.support.commit_crash import CHAT, CODE, Rig

REVIEW = Author("daemon", "review")
CURSOR = Author("mcp", "kb_update_note", "k3", "cursor")
BEGIN_MS, TICK_S, HOUR_S = 1_795_000_000_000, 10, 3_600
CAPTURES, DECISIONS = 30, 3  # of an hour of ordinary use


class Hour:
    """A vault whose daemon looks every ten seconds whether something is to be committed."""

    def __init__(self, folder: Path) -> None:
        settings = GitSettings()
        self.rig = Rig(folder, quiet_s=settings.quiet_s, every_s=settings.every_s)
        self.now = BEGIN_MS
        self.rig.audit.now = lambda: self.now
        self.begun = len(self.rig.subjects())

    def pass_time(self, seconds: int, events: Iterable[tuple[int, Callable[[], object]]] = ()) -> None:
        """Let time pass; each event is a second and what happens then."""
        due = sorted(events, key=lambda event: event[0])
        for second in range(0, seconds, TICK_S):
            while due and due[0][0] <= second:
                due.pop(0)[1]()
            self.rig.commits.tick()
            self.now += TICK_S * 1000

    def pass_ordinary_hour(self) -> None:
        """Let an hour pass in which agents capture, suggestions follow a minute later, and a person promotes."""
        dice, rig = random.Random(3), self.rig
        events: list[tuple[int, Callable[[], object]]] = []
        for n in range(CAPTURES):
            second, author, path = (
                dice.randrange(HOUR_S),
                dice.choice([CODE, CHAT, CURSOR]),
                f"Captures/default/N{n}.md",
            )

            def capture(path: str = path, author: Author = author) -> None:
                rig.agent(path, "A thought.\n", author)

            def suggest(path: str = path) -> None:
                rig.agent(path, "---\npromote: false\n---\nA thought.\n", REVIEW)

            events += [(second, capture), (second + 60, suggest)]
        for n in range(DECISIONS):

            def decide(n: int = n) -> None:
                path = f"Notes/Mine {n}.md"
                rig.agent(path, "kept\n", Author("cli", "promote"))
                assert rig.commits.commit({path: sha256(b"kept\n")}, f"Promote Mine {n}\n", approved={path})

            events.append((dice.randrange(HOUR_S), decide))
        self.pass_time(HOUR_S, events)

    @property
    def subjects(self) -> list[str]:
        return self.rig.subjects()[self.begun :]

    @property
    def automatic(self) -> list[str]:
        """Return the commits that no decision of a person made."""
        return [subject for subject in self.subjects if not subject.startswith("Promote ")]


def main(folder: Path) -> None:
    hour = Hour(folder)
    try:
        hour.pass_ordinary_hour()
        sys.stdout.write(f"{CAPTURES} captures and {DECISIONS} promotions in an hour; automatic commits:\n")
        sys.stdout.write("".join(f"{subject}\n" for subject in hour.automatic))
    finally:
        hour.rig.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
