"""The context while agents capture and delete and the owner edits its note: what the owner decided holds after every step.

MEMEX_CONTEXTS=200 sets the examples of a long run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.context import contexts
from tests.support.example_counts import examples
from tests.support.world import World

SUBJECTS = ("filter", "boiler", "sailboat", "mortgage", "telescope", "orchard")
NOTE = "Captures/Context/default.md"
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["capture", "capture", "forget", "strike", "erase", "change", "keep", "run", "reopen"]),
        st.sampled_from(SUBJECTS),
    ),
    min_size=4,
    max_size=14,
)


class Owner:
    """The vault, and beside it what the owner has decided about each subject."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.world.run()
        self.ids: dict[str, str] = {}
        self.out: set[str] = set()
        self.kept: dict[str, str] = {}

    @property
    def workspace(self):
        return self.world.app.agent_access.workspace("default")

    def line(self, subject: str) -> str | None:
        """The line of a subject in the note that is said, if there is one."""
        file = self.world.vault / NOTE
        lines = file.read_text().splitlines() if file.exists() else []
        return next((line for line in lines if subject in line and "~~" not in line), None)

    def replace(self, old: str, new: str) -> None:
        file = self.world.vault / NOTE
        file.write_text(file.read_text().replace(old, new))

    def take(self, step: str, subject: str) -> None:
        if step == "capture":
            self.ids[subject] = self.workspace.capture(f"The {subject} belongs to Ada").record.id
        elif step == "forget" and subject in self.ids:
            self.workspace.delete(self.ids.pop(subject))
        elif step == "run":
            self.world.app.services.write_contexts()
        elif step == "reopen":
            self.world.reopen()
        elif line := self.line(subject):
            self.decide(step, subject, line)

    def decide(self, step: str, subject: str, line: str) -> None:
        if step in ("strike", "erase"):
            body, _, mark = line.removeprefix("- ").partition(" ^")
            self.replace(f"{line}\n", f"- ~~{body}~~ ^{mark}\n" if step == "strike" else "")
            self.out.add(subject)
            self.kept.pop(subject, None)
        elif step == "change":
            said = f"{subject} number {len(self.kept)}"
            self.kept[subject] = said
            self.replace(line, f"- {said} ^{line.partition(' ^')[2]}")
        elif step == "keep":
            self.replace(f"{line}\n", "")
            self.replace("# What agents", f"## Kept\n{line}\n# What agents")
            self.kept.setdefault(subject, line.removeprefix("- ").partition(" (2")[0])

    def check(self) -> None:
        said = [line.line for line in self.workspace.context().lines]
        for subject in SUBJECTS:
            lines = [line for line in said if subject in line]
            if subject in self.kept:
                assert any(self.kept[subject] in line for line in lines)
            elif subject in self.out:
                assert lines == []


@pytest.mark.timeout(300)
@examples(int(os.environ.get("MEMEX_CONTEXTS", "15")))
@given(STEPS)
def test_what_the_owner_decided_holds_after_every_step(steps):
    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as folder:
        patched.setattr(contexts, "QUIET_S", 0.0)
        owner = Owner(Path(folder))
        try:
            for step, subject in steps:
                owner.take(step, subject)
                owner.check()
        finally:
            owner.world.close()
