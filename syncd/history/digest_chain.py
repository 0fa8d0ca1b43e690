"""Chain the entries of the audit log by digest, and check the chain for changed, added and missing entries.

Law, tested: `check` reports a change of any value of any entry, a missing entry and an inserted one. Only a reader
who noted the head can detect that entries were cut off at the end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

GENESIS = "0" * 64
HEAD = re.compile(r"(\d{1,15}):([0-9a-f]{64})\Z")
BREAKS = 100  # that are told; a log that was rewritten has one at each entry


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log. Digests are sha256 in hex of a file's bytes; "" = no file, or no file is meant."""

    seq: int  # 1, 2, 3 … without a gap
    at: int  # epoch milliseconds
    kind: str  # create, update, delete, undone, moved, kept: what a file is now; denied, read, pruned, cut: nothing of a file
    surface: str  # mcp, rest, cli, daemon or file
    tool: str = ""
    request: str = ""
    key: str = ""  # the public id of the key, and the name that its owner gave it
    name: str = ""
    workspace: str = ""
    type: str = ""  # note, entity or file
    id: str = ""  # of the document
    path: str = ""
    bytes: int = 0  # of the file afterwards
    before: str = ""
    after: str = ""
    outcome: str = "done"
    undoes: int = 0  # the entry that did not come about, or to before which an undo went back; 0 = none
    seal: str = ""  # over the seal of the entry before and all of the rest
    address: str = ""  # of the client; entries that are older than this column were sealed without it


COLUMNS = tuple(column.name for column in fields(Entry))
EVERY = "SELECT * FROM audit ORDER BY seq"
PRUNINGS = "SELECT * FROM audit WHERE kind = 'pruned' ORDER BY seq"


@dataclass(frozen=True, slots=True)
class Head:
    """An entry by its number and seal: where a chain ends, or begins. Number 0 is before the first."""

    seq: int = 0
    seal: str = GENESIS

    def __str__(self) -> str:
        return f"{self.seq}:{self.seal}"

    @classmethod
    def parse(cls, text: str) -> Head | None:
        """What `str` made of a head; None for anything else."""
        match = HEAD.match(text.strip())
        return cls(int(match[1]), match[2]) if match else None


@dataclass(slots=True)
class ChainCheck:
    """What came of looking through a chain: how many entries, where it ends, and where it breaks."""

    entries: int = 0
    first: int = 0  # its number
    head: Head = field(default_factory=Head)
    breaks: list[str] = field(default_factory=list)
    broken: int = 0

    def add_break(self, text: str) -> None:
        """Count a break, and keep the first of them."""
        self.broken += 1
        if len(self.breaks) < BREAKS:
            self.breaks.append(text)


def compute_seal(entry: Entry, before: str) -> str:
    """The seal of an entry that follows the one with the seal `before`."""
    values = [getattr(entry, name) for name in COLUMNS if name not in ("seal", "address")]
    values += [entry.address] if entry.address else []
    return hashlib.sha256(f"{before}\n{json.dumps(values)}".encode()).hexdigest()


def check(entries: Iterable[Entry], base: Head | None = None, *, heads: Iterable[Head] = ()) -> ChainCheck:
    """Look through a chain, in order. `base`: what went before its first entry; None = that entry is taken as it is.

    Each of `heads`, as somebody has noted it down, must be one of its entries."""
    result = ChainCheck(head=base or Head())
    wanted = {head.seq: head.seal for head in heads if head not in (Head(), base)}
    for entry in entries:
        last = result.head
        if not result.entries:
            result.first = entry.seq
        if not result.entries and base is None:
            last = Head(entry.seq - 1, "")
        if entry.seq != last.seq + 1:
            result.add_break(_describe_gap(last.seq, entry.seq))
        elif last.seal and entry.seal != compute_seal(entry, last.seal):
            result.add_break(f"entry {entry.seq} does not match its seal: it was changed, or the one before it was")
        if entry.kind == "cut":
            result.add_break(
                f"entry {entry.seq} was written where the log had been cut: it had gone on to {entry.outcome}"
            )
        if entry.seq in wanted and wanted.pop(entry.seq) != entry.seal:
            result.add_break(f"entry {entry.seq} is not the one whose seal was noted down: the log was rewritten")
        result.entries += 1
        result.head = Head(entry.seq, entry.seal)
    for seq in sorted(wanted):
        if seq < result.first:
            result.add_break(
                f"entry {seq} was noted down, and this begins at entry {result.first}: look where it was moved to"
            )
        else:
            result.add_break(
                f"the log ends at entry {result.head.seq}, and entry {seq} was noted down: its end was cut off"
            )
    return result


def _describe_gap(last: int, seq: int) -> str:
    if seq <= last:
        return f"entry {seq} stands behind entry {last}"
    missing = f"entry {last + 1} is" if seq == last + 2 else f"entries {last + 1} to {seq - 1} are"
    return f"{missing} missing"


def find_base(entries: Iterable[Entry]) -> Head:
    """What went before the first of `entries`, as the newest of them about a prune says; the very beginning without one."""
    heads = [head for entry in entries if entry.kind == "pruned" and (head := Head.parse(entry.outcome))]
    return heads[-1] if heads else Head()


def format_line(entry: Entry) -> str:
    """An entry as a line of JSON."""
    return json.dumps(asdict(entry), ensure_ascii=False)


def parse_line(text: str) -> Entry:
    """The entry that a line of JSON holds. Raises ValueError for anything else."""
    values: Any = json.loads(text)
    if not isinstance(values, Mapping) or {*values, "address"} != set(COLUMNS):
        raise ValueError("it is no entry of an audit log")
    values = {"address": "", **values}
    if not all(isinstance(values[column.name], int if column.type == "int" else str) for column in fields(Entry)):
        raise ValueError("a value of the entry is of another kind")
    return Entry(**values)
