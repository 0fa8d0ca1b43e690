"""Chain the entries of the audit log by digest, and check the chain for changed, added and missing entries.

Law, tested: `check` reports a change of any value of any entry, a missing entry and an inserted one. Entries cut off
at the end can be detected only by a reader who recorded the head."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from index.document_ids import sha256

GENESIS = "0" * 64
HEAD = re.compile(r"(\d{1,15}):([0-9a-f]{64})\Z")
BREAKS = 100  # most reported breaks; a rewritten log has one at each entry


@dataclass(frozen=True, slots=True)
class Entry:
    """Describes one entry of the log.

    Digests are SHA-256 in hex of a file's bytes; "" = no file, or not about a file."""

    seq: int  # 1, 2, 3 … without a gap
    at: int  # epoch milliseconds
    # create, update, delete, undone, moved, kept: state of a file; denied, read, pruned, cut: not about a file
    kind: str
    surface: str  # mcp, rest, cli, daemon or file
    tool: str = ""
    request: str = ""
    key: str = ""  # public id of the key; `name` is the name that its owner gave it
    name: str = ""
    workspace: str = ""
    type: str = ""  # note, entity or file
    id: str = ""  # id of the note
    path: str = ""
    bytes: int = 0  # size of the file afterwards
    before: str = ""
    after: str = ""
    outcome: str = "done"
    undoes: int = 0  # the entry that did not happen, or whose earlier state an undo restored; 0 = none
    seal: str = ""  # digest of the previous seal and all other values
    address: str = ""  # address of the client; entries older than this column were sealed without it


COLUMNS = tuple(column.name for column in fields(Entry))
EVERY = "SELECT * FROM audit ORDER BY seq"
PRUNINGS = "SELECT * FROM audit WHERE kind = 'pruned' ORDER BY seq"


@dataclass(frozen=True, slots=True)
class Head:
    """Identifies an entry by its number and seal: the end or the start of a chain. Number 0 is before the first."""

    seq: int = 0
    seal: str = GENESIS

    def __str__(self) -> str:
        return f"{self.seq}:{self.seal}"

    @classmethod
    def parse(cls, text: str) -> Head | None:
        """Parse the text of a head; None for anything else."""
        match = HEAD.match(text.strip())
        return cls(int(match[1]), match[2]) if match else None


@dataclass(slots=True)
class ChainCheck:
    """Holds the result of checking a chain: number of entries, its end, and its breaks."""

    entries: int = 0
    first: int = 0  # number of the first entry
    head: Head = field(default_factory=Head)
    breaks: list[str] = field(default_factory=list)
    broken: int = 0

    def add_break(self, text: str) -> None:
        """Count a break, and keep the text of the first ones."""
        self.broken += 1
        if len(self.breaks) < BREAKS:
            self.breaks.append(text)


def compute_seal(entry: Entry, before: str) -> str:
    """Compute the seal of an entry that follows the seal `before`."""
    values = [getattr(entry, name) for name in COLUMNS if name not in ("seal", "address")]
    values += [entry.address] if entry.address else []
    return sha256(f"{before}\n{json.dumps(values)}".encode())


def check(entries: Iterable[Entry], base: Head | None = None, *, heads: Iterable[Head] = ()) -> ChainCheck:
    """Check a chain, in order.

    `base`: the entry before its first one; None = the first entry is not checked against one.

    Each of `heads`, as somebody recorded it, must be one of its entries."""
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
            result.add_break(f"entry {entry.seq} does not match its seal: it or the entry before it was changed")
        if entry.kind == "cut":
            reached = (entry.outcome or "").partition(":")[0]
            result.add_break(f"the log was cut before entry {entry.seq}: it had already reached entry {reached}")
        if entry.seq in wanted and wanted.pop(entry.seq) != entry.seal:
            result.add_break(f"entry {entry.seq} does not have the recorded seal: the log was rewritten")
        result.entries += 1
        result.head = Head(entry.seq, entry.seal)
    for seq in sorted(wanted):
        if seq < result.first:
            result.add_break(
                f"entry {seq} was recorded, but this log begins at entry {result.first}: check where older entries were moved"
            )
        else:
            result.add_break(
                f"the log ends at entry {result.head.seq}, but entry {seq} was recorded: the end was cut off"
            )
    return result


def _describe_gap(last: int, seq: int) -> str:
    if seq <= last:
        return f"entry {seq} comes after entry {last}"
    missing = f"entry {last + 1} is" if seq == last + 2 else f"entries {last + 1} to {seq - 1} are"
    return f"{missing} missing"


def find_base(entries: Iterable[Entry]) -> Head:
    """Return the entry before the first of `entries`, according to the newest entry about a prune; else the very beginning."""
    heads = [head for entry in entries if entry.kind == "pruned" and (head := Head.parse(entry.outcome))]
    return heads[-1] if heads else Head()


def format_line(entry: Entry) -> str:
    """Format an entry as a line of JSON."""
    return json.dumps(asdict(entry), ensure_ascii=False)


def parse_line(text: str) -> Entry:
    """Parse the entry in a line of JSON. Raises ValueError for anything else."""
    values: Any = json.loads(text)
    if not isinstance(values, Mapping) or {*values, "address"} != set(COLUMNS):
        raise ValueError("its fields are not those of an entry")
    values = {"address": "", **values}
    if not all(isinstance(values[column.name], int if column.type == "int" else str) for column in fields(Entry)):
        raise ValueError("a value of the entry has the wrong type")
    return Entry(**values)
