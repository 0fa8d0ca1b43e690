"""Store the perspectives of each workspace in the ledger: the defaults, until the owner changes them.

Law, tested: a table always holds at least one perspective and at most `MOST`, each name once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from index.errors import Conflict, InvalidArgument, NotFound
from index.observations.perspectives import DEFAULTS, MOST, Perspective, validate
from syncd.notes.secret_patterns import refuse_secret
from syncd.state.ledger import Ledger

Table: TypeAlias = tuple[Perspective, ...]


class Perspectives:
    """Manages the tables of all workspaces; safe from any thread. A change is on disk when the call returns."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._changing = threading.Lock()
        tables: dict[str, list[Perspective]] = {}
        for workspace, name, prompt in ledger.query(
            "SELECT workspace, name, prompt FROM perspectives ORDER BY workspace, place"
        ):
            tables.setdefault(workspace, []).append(Perspective(name, prompt))
        self._own = {workspace: tuple(table) for workspace, table in tables.items()}

    def of(self, workspace: str) -> Table:
        """Return the perspectives of a workspace in order; the first one also provides an observation's text for word search."""
        return self._own.get(workspace, DEFAULTS)

    def has_own(self, workspace: str) -> bool:
        """Return whether the workspace has other perspectives than the defaults."""
        return workspace in self._own

    def add(self, workspace: str, name: str, prompt: str) -> Table:
        """Add a perspective. Raises Conflict when the name exists."""
        refuse_secret("the perspective's name", name)
        new = validate(name, prompt)

        def append(table: Table) -> Table:
            if any(perspective.name == new.name for perspective in table):
                raise Conflict(
                    f"the perspective {name!r} already exists; change its prompt with `memex perspective set`"
                )
            if len(table) >= MOST:
                raise InvalidArgument(f"a workspace can have at most {MOST} perspectives; remove one first")
            return (*table, new)

        return self._change(workspace, append)

    def set_prompt(self, workspace: str, name: str, prompt: str) -> Table:
        """Change the prompt of a perspective."""
        new = validate(name, prompt)
        return self._change(
            workspace,
            lambda table: tuple(
                new if perspective == _find_perspective(table, name) else perspective for perspective in table
            ),
        )

    def remove(self, workspace: str, name: str) -> Table:
        """Remove a perspective; the last one can't be removed."""

        def drop(table: Table) -> Table:
            left = tuple(perspective for perspective in table if perspective != _find_perspective(table, name))
            if not left:
                raise InvalidArgument(f"{name!r} is the last perspective of {workspace!r}; add another one first")
            return left

        return self._change(workspace, drop)

    def reset(self, workspace: str) -> Table:
        """Restore the defaults."""
        return self._change(workspace, lambda _: DEFAULTS)

    def _change(self, workspace: str, change: Callable[[Table], Table]) -> Table:
        with self._changing:
            table = change(self.of(workspace))
            with self._ledger.transaction():
                self._ledger.execute("DELETE FROM perspectives WHERE workspace = ?", (workspace,))
                for place, perspective in enumerate(table if table != DEFAULTS else ()):
                    self._ledger.execute(
                        "INSERT INTO perspectives VALUES (?, ?, ?, ?)",
                        (workspace, place, perspective.name, perspective.prompt),
                    )
            tables = {name: held for name, held in self._own.items() if name != workspace}
            self._own = tables if table == DEFAULTS else tables | {workspace: table}
            return table


def _find_perspective(table: Table, name: str) -> Perspective:
    perspective = next((row for row in table if row.name == name), None)
    if perspective is None:
        raise NotFound(f"no perspective {name!r}; there are: {', '.join(row.name for row in table)}")
    return perspective
