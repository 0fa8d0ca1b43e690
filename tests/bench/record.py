"""The record of measured rows in docs/benchmarks.json, and which rows of a run are worse than the record.

Law: figures of two machines are never compared, only ratios to the same yardstick; a ratio is a cost, so less is better."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import TypeAlias

SLACK = 1.25  # a ratio may be so many times the recorded one
REPEATS = 3  # measurements that must all be worse after the first one was


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `met` is None where a row has no target of its own.

    `ratios` are costs in units of `yardstick`, by the name of the figure: p50, p95, CPU… `jobs` are those that ran meanwhile."""

    name: str
    target: str
    figure: str
    met: bool | None
    note: str = ""
    ratios: Mapping[str, float] = field(default_factory=dict)
    yardstick: str = ""  # its name alone: what it took goes into the note
    jobs: str = ""


# A row as it came, or a measurement that can be repeated where it stands.
Step: TypeAlias = Row | Callable[[], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A row as it was measured for a release."""

    version: str
    commit: str
    date: str
    machine: str
    row: str
    target: str
    figure: str
    met: bool | None
    yardstick: str
    ratios: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Slip:
    """A ratio that is worse than the record allows."""

    row: str
    figure: str
    before: float
    now: float
    since: str  # the version and commit of the record

    def __str__(self) -> str:
        return (
            f"{self.row}, {self.figure}: {self.now:.2f} x the yardstick; "
            f"{self.before:.2f} x in {self.since} ({self.now / self.before - 1:+.0%})"
        )


def parse(text: str) -> list[Entry]:
    """The entries of a record, oldest first."""
    return [Entry(**entry) for entry in json.loads(text or "[]")]


def format_entries(entries: Iterable[Entry]) -> str:
    """A record as JSON, one entry a line."""
    lines = ",\n".join(json.dumps(asdict(entry), ensure_ascii=False) for entry in entries)
    return f"[\n{lines}\n]\n" if lines else "[]\n"


def entries(rows: Iterable[Row], *, version: str, commit: str, date: str, machine: str) -> list[Entry]:
    """The rows of a run as entries of a record."""
    return [
        Entry(
            version,
            commit,
            date,
            machine,
            row.name,
            row.target,
            row.figure,
            row.met,
            row.yardstick,
            {name: float(f"{ratio:.4g}") for name, ratio in row.ratios.items()},
        )
        for row in rows
    ]


def newest(recorded: Iterable[Entry]) -> dict[str, Entry]:
    """The last entry of each row, by the row's name."""
    return {entry.row: entry for entry in recorded}


def slips(rows: Iterable[Row], recorded: Iterable[Entry], slack: float = SLACK) -> list[Slip]:
    """The ratios that are more than `slack` times those of the newest entry of their row.

    A row without an entry, or whose yardstick is another one by now, can't be compared: `unrecorded` names it."""
    last = newest(recorded)
    found = []
    for row in rows:
        entry = last.get(row.name)
        if entry is None or entry.yardstick != row.yardstick:
            continue
        for name, now in row.ratios.items():
            before = entry.ratios.get(name)
            if before is not None and now > slack * before:
                found.append(Slip(row.name, name, before, now, f"{entry.version} ({entry.commit})"))
    return found


def unrecorded(rows: Iterable[Row], recorded: Iterable[Entry]) -> list[str]:
    """The rows with ratios that can't be compared, because no entry has them against the same yardstick."""
    last = newest(recorded)
    return [
        row.name
        for row in rows
        if row.ratios
        and (
            (entry := last.get(row.name)) is None
            or entry.yardstick != row.yardstick
            or not row.ratios.keys() <= entry.ratios.keys()
        )
    ]


def measure(
    group: Callable[[], Iterable[Step]], recorded: Sequence[Entry], tell: Callable[[str], None], *, times: int = 1
) -> Iterator[Row]:
    """The rows of a group. Of a measurement that looks worse than the record, the best of up to three repeats counts too.

    A group whose rows can't be repeated alone is repeated whole. With `times` each measurement that can be repeated is
    made so often, and the median counts: for a record, which should be neither lucky nor unlucky."""
    rows: list[Row] = []
    fixed = False  # whether a row that can't be repeated alone looks worse
    for step in group():
        found = [step] if isinstance(step, Row) else _settled(step, recorded, tell, times)
        fixed |= isinstance(step, Row) and bool(slips(found, recorded))
        rows += found
        for row in found:
            tell(line(row))
    for _ in range(REPEATS if fixed else 0):
        worse = slips(rows, recorded)
        if not worse:
            break
        tell(f"(again, as it looks worse: {'; '.join(map(str, worse))})")
        again = [row for step in group() for row in ([step] if isinstance(step, Row) else step())]
        rows = best(rows, again)
    yield from rows


def _settled(
    step: Callable[[], Sequence[Row]], recorded: Sequence[Entry], tell: Callable[[str], None], times: int
) -> list[Row]:
    rows = typical([step() for _ in range(times)])
    for _ in range(REPEATS):
        worse = slips(rows, recorded)
        if not worse:
            break
        tell(f"(again, as it looks worse: {'; '.join(map(str, worse))})")
        rows = best(rows, step())
    return rows


def best(rows: Sequence[Row], again: Sequence[Row]) -> list[Row]:
    """Two measurements of the same rows as one: the smaller of each ratio, and the text of the one with the smaller sum.

    A row is worse only if it is worse each time, so a noisy neighbour does not count as a change of the program."""
    repeated = {row.name: row for row in again}
    return [_merged([row, repeated[row.name]], min) if row.name in repeated else row for row in rows]


def typical(measured: Sequence[Sequence[Row]]) -> list[Row]:
    """Several measurements of the same rows as one: the median of each ratio, and the text of the one in the middle."""
    return [
        _merged([row for rows in measured for row in rows if row.name == first.name], median) for first in measured[0]
    ]


def _merged(rows: Sequence[Row], chosen: Callable[[list[float]], float]) -> Row:
    """One row of several, with the chosen of each ratio; `chosen` of the sums decides whose text is shown."""
    sums = [sum(row.ratios.values()) for row in rows]
    shown = min(rows, key=lambda row: abs(sum(row.ratios.values()) - chosen(sums)))
    both = {name: chosen([row.ratios[name] for row in rows if name in row.ratios]) for name in shown.ratios}
    return replace(shown, ratios=both)


def verdict(rows: Sequence[Row], recorded: Sequence[Entry], *, where: str) -> tuple[list[str], bool]:
    """What to tell after a run, and whether nothing is worse than the record."""
    worse, missing = slips(rows, recorded), unrecorded(rows, recorded)
    compared = sum(bool(row.ratios) for row in rows) - len(missing)
    lines = []
    if missing:
        lines.append(
            f"{len(missing)} rows have no record in {where}, so nothing was compared for them: {'; '.join(missing)}. "
            "At a release, record them: make bench RECORD=1"
        )
    if compared:
        lines.append(f"{compared} rows were compared with their last record in {where}.")
    lines += [f"worse by more than {SLACK - 1:.0%} each time it was measured: {slip}" for slip in worse]
    return lines, not worse


def table(rows: Iterable[Row]) -> str:
    """The rows as a table in Markdown."""
    head = "| what | target | measured | met | against its yardstick | jobs meanwhile | note |\n|---|---|---|---|---|---|---|\n"
    return head + "".join(f"{line(row)}\n" for row in rows)


def line(row: Row) -> str:
    """A row of the table."""
    met = {True: "yes", False: "**no**", None: ""}[row.met]
    figures = ", ".join(f"{name} {ratio:.3g}" for name, ratio in row.ratios.items())
    against = f"{figures} x {row.yardstick}" if figures else ""
    return f"| {row.name} | {row.target} | {row.figure} | {met} | {against} | {row.jobs} | {row.note} |"
