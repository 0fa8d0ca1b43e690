"""What is to become of a capture that is promoted, decided from what is on the disk now; or why it can't be.

Law, tested: nothing is written here, and nothing that is there already is a destination."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.errors import Conflict, MemexError, NotFound
from index.model import Document, Record, Stat
from index.names import fold
from syncd.edits import LOCKED_S
from syncd.file_names import ending, numbered
from syncd.journal import Step, Way, moved, sha256, written
from syncd.kinds import KNOWN
from syncd.markdown import open_ended
from syncd.marks import marks
from syncd.moving import Relinking, relinking
from syncd.names import join, objection
from syncd.note import FrontmatterError, decode, encode, split
from syncd.promotion import Problem, another, goal, identified, names, promoted, refusal, spelled
from syncd.repo import Repo
from syncd.vault_snapshot import Ground

_UNLINKED: Final = re.compile(r'[<>:"|?*#^\[\]]')  # what no name can hold in Windows, or in a link


class Taken(Problem):
    """Something has the name at the destination already."""

    def __init__(self, target: str) -> None:
        super().__init__(f"{target} is there already, and is not overwritten", target=target)
        self.target = target


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored file that goes along."""

    old: str
    new: str
    digest: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of one capture."""

    document: Document
    raw: bytes  # as it is
    target: str
    text: bytes  # as it is to be, its links aside
    at: int  # epoch ms: when it was marked
    tool: str  # promote, mark
    chosen: str  # what chose the folder: you, rule, suggestion, setting
    id: str  # that it has in the vault proper: its own, unless a note there has it
    stored: Stored | None = None

    @property
    def source(self) -> str:
        """Where it is."""
        return self.document.path

    @property
    def moves(self) -> dict[str, str]:
        """Which files go where."""
        along = {self.stored.old: self.stored.new} if self.stored else {}
        return {self.source: self.target, **along}

    def steps(self, found: Relinking) -> list[Step]:
        """What becomes of each file, in order: what is made, then what leads to it, and what goes at the end."""
        text = found.changes[self.source][1] if self.source in found.changes else self.text
        steps = [written(self.target, None, text)]
        steps += [written(path, *raws) for path, raws in sorted(found.changes.items()) if path != self.source]
        steps.append(written(self.source, self.raw, None))
        if self.stored:
            copied, gone = moved(self.stored.old, self.stored.new, self.stored.digest)
            steps = [copied, *steps, gone]
        return steps


def restless(ground: Ground, repo: Repo, path: str) -> bool:
    """Whether somebody may still be at work on a note, or Git on the files. Raises what keeps it from being read."""
    raw, stat = ground.vault.read(path)
    age, busy = time.time() - stat.mtime_ns / 1e9, repo.busy()
    if 0 <= age < ground.settings.sync.adopt_s or (busy and not (busy.endswith(".lock") and age > LOCKED_S)):
        return True
    document = ground.parsed(raw, path, stat)
    return document.writable and ground.sync.edits.pending(document)  # what can't be written to stays so


def fit(ground: Ground, record: Record) -> tuple[Document, bytes]:
    """The capture as it is. Raises Problem when it can't be promoted, or Conflict when it has just changed."""
    raw, stat = ground.vault.read(record.path)
    if sha256(raw) != record.digest:
        raise Conflict("the capture was changed a moment ago; try again in a moment", retryable=True)
    document = ground.parsed(raw, record.path, stat)
    if why := refusal(document, marks(decode(raw))) or _double(ground, document):
        raise Problem(why)
    return document, raw


def planned(
    ground: Ground,
    record: Record,
    *,
    tool: str,
    at: int,
    to: str | None = None,
    called: str | None = None,
    spoken: Mapping[str, str] | None = None,
) -> Plan:
    """What is to become of this capture, in the folder `to` and `called` so, if that is said.

    `spoken` for is what `speak` has noted. Raises Problem, Taken, or Conflict when it has just changed."""
    document, raw = fit(ground, record)
    said, spoken = marks(decode(raw)), spoken or {}
    own, name = ground.settings.promote, record.path.rpartition("/")[2][:-3]
    where = goal(document, said, own.rules, folder=own.folder, name=own.name, inbox=ground.inbox, to=to)
    folder = there_of(ground, where.folder, spoken)
    target = join(folder, f"{_named(ground, folder, called or where.stem, name, spoken)}.md")
    stored = stored_of(ground, document, there_of(ground, own.attachments or folder, spoken), spoken)
    for path in (target, stored.new if stored else target):
        if wrong := objection(path, new=True):
            raise Problem(f"the path {path!r} {wrong}")
    id = own_id(ground, document, raw)
    try:
        text = encode(promoted(decode(raw), at, id=id))
    except FrontmatterError as error:
        raise Problem(f"its properties can't be changed line by line: {error}") from error
    return Plan(document, raw, target, text, at, tool, where.by, id, stored)


def own_id(ground: Ground, document: Document, raw: bytes, given: Collection[str] = ()) -> str:
    """The id of a capture in the vault proper: another one than its own if a note there has that, or it was just `given`."""
    assert document.claimed_id is not None, "it is fit"
    there = (path for path in ground.notes.index.claiming(document.claimed_id) if not ground.archived(path))
    taken = document.claimed_id in given or any(there)
    return another(document.claimed_id, raw) if taken else document.claimed_id


def freed(
    ground: Ground, text: bytes, target: str, changed: Mapping[str, tuple[bytes, bytes]]
) -> dict[str, tuple[bytes, bytes]]:
    """What changes so that a note which comes back to `target` has its id: another there that took it since has its own.

    `changed` is what changes anyway. Raises Problem."""
    workspace, freed = ground.workspace(target), dict(changed)
    id = ground.parsed(text, target, Stat(0, 0, 0)).claimed_id
    for path in ground.captures.index.claiming(id) if id else ():
        if ground.workspace(path) == workspace:
            before, now = freed[path] if path in freed else (ground.vault.read(path)[0],) * 2
            try:
                freed[path] = before, encode(identified(decode(now), another(id or "", before)))
            except FrontmatterError as error:
                raise Problem(
                    f"{path} has the same `id` by now, and its properties can't be changed: mend them"
                ) from error
    return freed


def _double(ground: Ground, document: Document) -> str:
    """Why the id of a capture keeps it where it is; "" = nothing does."""
    if document.claimed_id is None:
        raise Conflict(
            "the capture has no id yet; it gets one once it is quiet, so try again in a moment", retryable=True
        )
    captures = ground.captures.index.claiming(document.claimed_id)
    others = [path for path in captures if path != document.path and ground.workspace(path) == document.workspace]
    return f"{others[0]} has the same `id`: take it out of one of the two" if others else ""


def speak(spoken: dict[str, str], plan: Plan) -> None:
    """Note for plans that follow which paths this one is to make, each folded and as it is spelled; folders too."""
    for path in plan.moves.values():
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            made = "/".join(parts[:depth])
            spoken.setdefault(fold(made), made)


def there_of(ground: Ground, folder: str, spoken: Mapping[str, str]) -> str:
    """The folder as it is spelled on the disk, or where it is spoken for, as far as it is. Raises Problem when no note can be put there."""
    done = ""
    for part in folder.split("/") if folder else ():
        try:
            there = spelled(part, known := ground.vault.folders(done))
        except MemexError as error:
            raise Problem(f"the folder {folder!r} can't be used: {error.message}") from error
        if there not in known:
            there = spoken.get(fold(join(done, part)), part).rpartition("/")[2]
        if there not in known and (wrong := _UNLINKED.search(part)):
            raise Problem(
                f"the new folder {part!r} can't have {wrong[0]} in its name: links or other systems would break"
            )
        done = join(done, there)
    if done and ground.vault.ignores(done, folder=True):
        raise Problem(f"the folder {done!r} is left out of the index (vault.ignore), so the note would not be found")
    if done:
        above, _, last = done.rpartition("/")
        if last in ground.vault.names(above) and last not in ground.vault.folders(above):
            raise Problem(f"the folder {done!r} can't be used: it is a link or a file")
    return done


def _named(ground: Ground, folder: str, wanted: str, own: str, spoken: Mapping[str, str]) -> str:
    """The base name of the note: one that no other note of the vault has. Raises Taken when the destination has it."""
    there = {fold(name): name for name in ground.vault.names(folder)}
    for name in names(wanted, own):
        file = fold(f"{name}.md")
        if file in there or fold(join(folder, f"{name}.md")) in spoken:
            if name == wanted:
                raise Taken(join(folder, there.get(file, f"{name}.md")))
        elif fold(name) == fold(own) or not ground.sync.taken(fold(name)):
            return name
    raise AssertionError


def stored_of(ground: Ground, document: Document, folder: str, spoken: Mapping[str, str]) -> Stored | None:
    """The file that goes along with the note of its text, unless another note holds its text too."""
    old = document.file
    if old is None or {one.path for one in ground.captures.index.of_file(old)} - {document.path}:
        return None
    try:
        digest = ground.vault.measured(old).digest
    except NotFound:
        return None
    own = old.rpartition("/")[2]
    there = {fold(name) for name in ground.vault.names(folder)}
    for name in numbered(own, ending(own, KNOWN)):
        new = join(folder, name)
        if fold(name) in there or fold(new) in spoken:
            continue
        if name == own or not ground.sync.taken(fold(name)):
            return Stored(old, new, digest)
    raise AssertionError


def other_name(ground: Ground, target: str) -> str:
    """A base name for a note in the place of `target`, that no note of the vault has."""
    folder, _, name = target.rpartition("/")
    there = {fold(one) for one in ground.vault.names(folder)}
    made = names(name[:-3], name[:-3])
    return next(one for one in made if fold(f"{one}.md") not in there and not ground.sync.taken(fold(one)))


def merged(ground: Ground, record: Record, target: str) -> Way:
    """How the text of a capture is appended to the note at `target`. Raises Problem, or Conflict when it has just changed."""
    document, raw = fit(ground, record)
    assert document.claimed_id is not None, "it is fit"
    if document.file:
        raise Problem("it holds the text of a stored file, which can't be appended: promote it under another name")
    there, _ = ground.vault.read(target)
    body = split(decode(raw))[1]
    found = relinking(ground.vault, {record.path: target}, texts={record.path: encode(body)}, inbox=ground.inbox)
    if record.path in found.changes:
        body = decode(found.changes[record.path][1])
    changed = {path: pair for path, pair in found.changes.items() if path not in (record.path, target)}
    text = decode(found.changes[target][1] if target in found.changes else there)
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text or text.endswith(end * 2) else end if text.endswith(end) else end * 2
    if body and open_ended(split(text)[1]):
        raise Problem(f"{target} ends in code or a comment that is not closed: close it, and tick again")
    steps = [written(target, there, encode(f"{text}{gap}{body}"))]
    steps += [written(path, *pair) for path, pair in sorted(changed.items())]
    steps.append(written(record.path, raw, None))
    about = {"title": document.title, "origin": document.source or "", "tool": "merge", **told(found, sorted(changed))}
    return Way("merge", document.claimed_id, record.path, target, steps, about)


def told(found: Relinking, changed: Sequence[str]) -> dict[str, Any]:
    """What is to be told of links, as JSON values; `changed` are the notes that were given other ones."""
    pairs = {"lost": found.lost, "mentions": found.mentions}
    lists = {name: [list(one) for one in given] for name, given in pairs.items()}
    return {"relinked": list(changed), **lists, "unread": list(found.unread)}
