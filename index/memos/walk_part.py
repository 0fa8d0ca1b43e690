"""Follow the relations from a memo, level by level.

Law, tested: each relation is reported once, at the least depth at which it is met, and no memo is gone through twice; so a
walk ends, whatever loops there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from index.memos.relations import End, Tie, Ties

Direction: TypeAlias = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Step:
    """A relation that was met on the way."""

    tie: Tie
    depth: int  # from 1
    direction: Direction  # in which it was gone
    path: tuple[str, ...]  # the ids of the memos from the start to its far end, both included
    loop: bool  # its far end is on that way already


def walk(
    ties: Ties, start: End, directions: Collection[Direction], *, depth: int, most: int, tag: str | None = None
) -> tuple[list[Step], bool]:
    """The relations within `depth` of `start`, the nearest first, heavier ones before lighter; and whether there are more."""
    steps: list[Step] = []
    met: set[tuple[str, str, str]] = set()
    reached = {start.path}
    edge: dict[str, tuple[End, tuple[str, ...]]] = {start.path: (start, (start.id,))}
    for level in range(1, depth + 1):
        further: dict[str, tuple[End, tuple[str, ...]]] = {}
        for tie, direction in _around(ties, [memo for memo, _ in edge.values()], directions):
            if tie.key in met or tag not in (None, tie.relation.tag):
                continue
            if len(steps) == most:
                return steps, True
            near, far = (tie.source, tie.target) if direction == "forward" else (tie.target, tie.source)
            way = edge[near.path][1]
            met.add(tie.key)
            steps.append(Step(tie, level, direction, (*way, far.id), far.id in way))
            if far.path not in reached:
                reached.add(far.path)
                further[far.path] = (far, (*way, far.id))
        edge = further
        if not edge:
            break
    return steps, False


def _around(ties: Ties, memos: Collection[End], directions: Collection[Direction]) -> Iterable[tuple[Tie, Direction]]:
    """The relations of these memos, in the order in which they are reported."""

    def found() -> Iterator[tuple[Tie, Direction]]:
        if "forward" in directions:
            yield from ((tie, "forward") for tie in ties.out_of(memos))
        if "backward" in directions:
            yield from ((tie, "backward") for tie in ties.into(memos))

    return sorted(
        found(), key=lambda pair: (-pair[0].relation.weight, pair[0].created_at, pair[0].key, pair[1] == "backward")
    )
