"""Compose the note of an entity, and apply edits to it: observations, relations and properties.

Laws, tested: text reads back as it was given. An edit changes only the lines that it concerns, and a few properties.
Memex parses the result of each edit and refuses it if anything else changed. No two observations ever get the same
ordinal. A person's block id stays with its observation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from index.errors import Conflict, InvalidArgument, NotFound
from index.model import Observation, Statement
from syncd.documents.entity_lines import (
    LARGEST,
    Item,
    format_ids_line,
    format_observation,
    indentation,
    is_underline,
    item_indentation,
    parse_page,
    state_ordinal,
)
from syncd.documents.entity_node import (
    ONE_LINE,
    NodeProperties,
    NumberedObservations,
    checked_content,
    checked_type,
    find_statements,
)
from syncd.notes.front_matter import PropertyValue, edit, read_properties, split
from syncd.notes.front_matter import compose as composed
from syncd.notes.inline_fields import change_type, find_fields, is_list_item, line_prefix, remove_targets
from syncd.notes.timestamps import iso

_LINE_END = re.compile(r"\r\n|\r|\n")


# If one of these is None, the node's earlier note did not state it, and the new note does not either.
UNKNOWN: Final = frozenset({"observed_at", "summary_updated_at"})


def compose(
    values: Mapping[str, PropertyValue],
    observations: Sequence[str],
    ordinals: Sequence[int] = (),
) -> str:
    """Compose a new note of a node from its properties and observations.

    `ordinals` are ascending, one for each observation; () = 1, 2, 3…"""
    numbers = ordinals or range(1, len(observations) + 1)
    facts = [Observation(at, checked_content(text)) for at, text in zip(numbers, observations, strict=True)]
    lines = [
        "## Observations",
        *(line for fact in facts for line in format_observation("-", fact.content, fact.ordinal)),
    ]
    front = {key: value for key, value in values.items() if value is not None or key not in UNKNOWN}
    if facts:
        front["last_ordinal"] = max(
            [facts[-1].ordinal, *(n for n in [values.get("last_ordinal")] if isinstance(n, int))]
        )
        front |= {"observed_at": values["created_at"]} if "created_at" in values and "observed_at" not in values else {}
    text = composed(front, "".join(f"{line}\n" for line in lines))
    _check(text, tuple(facts), ())
    return text


def add_observations(text: str, contents: Sequence[str], *, now: int) -> tuple[str, list[Observation]]:
    """Add observations after the existing ones; return the new text, and the added observations with their ordinals."""
    draft = _Draft(text)
    first = draft.found.highest + 1
    new = [Observation(at, checked_content(content)) for at, content in enumerate(contents, first)]
    if not new:
        return text, []
    lines = [
        line
        for observation in new
        for line in format_observation(draft.observation_lead(), observation.content, observation.ordinal)
    ]
    draft.append_to_section("observations", lines)
    draft.found.highest += len(new)
    return draft.finish(now, {"observed_at": iso(now)}, says=(*draft.found.observations, *new)), new


def replace_observation(text: str, ordinal: int, content: str, *, now: int) -> tuple[str, str]:
    """Replace an observation, keeping its ordinal and place; return the new text, and the old observation.

    Raises NotFound if the node has no observation with this ordinal."""
    draft = _Draft(text)
    content = checked_content(content)
    item = draft.found.items.get(ordinal)
    if item is None:
        raise NotFound(
            f"no observation {ordinal} in this node; open the node to list its observations", ordinal=ordinal
        )
    if item.content == content:
        return text, content
    draft.splice(item.first, item.behind, format_observation(item.lead, content, ordinal, item.anchor))
    draft.found.given.pop(ordinal, None)
    says = tuple(
        Observation(observation.ordinal, content if observation.ordinal == ordinal else observation.content)
        for observation in draft.found.observations
    )
    return draft.finish(now, {"observed_at": iso(now)}, says=says), item.content


def remove_observations(text: str, ordinals: Collection[int], *, now: int) -> tuple[str, list[int]]:
    """Remove observations; return the new text, and the ordinals that were removed."""
    draft = _Draft(text)
    gone = {ordinal: None for ordinal in ordinals if ordinal in draft.found.items}
    if not gone:
        return text, []
    for ordinal in gone:
        draft.splice(draft.found.items[ordinal].first, draft.found.items[ordinal].behind, [])
        draft.found.given.pop(ordinal, None)
    says = tuple(observation for observation in draft.found.observations if observation.ordinal not in gone)
    return draft.finish(now, {}, says=says), list(gone)


def add_relations(text: str, relations: Sequence[tuple[str, str]], *, now: int, counted: bool = True) -> str:
    """Add several relations, each a type and a `link`, as one change; skip those that `text` already states.

    With `counted=False`, the version and the time of the last change stay as they are."""
    draft = _Draft(text)
    before = find_statements(draft.found.page)
    lines = {statement: line for line, statement in (_relation_line(type, to) for type, to in relations)}
    new = [statement for statement in lines if statement not in before]
    if not new:
        return text
    draft.append_to_section("relations", [lines[statement] for statement in new])
    return draft.finish(now, {}, states=(*before, *new), version=counted, time=counted)


def remove_relations(text: str, gone: Callable[[Statement], bool], *, now: int) -> tuple[str, int]:
    """Remove the relations for which `gone` is true; return the new text, and how many were removed."""
    draft = _Draft(text)
    before = find_statements(draft.found.page)
    kept = [statement for statement in before if not gone(statement)]
    if len(kept) == len(before):
        return text, 0
    for at in dict.fromkeys(at for at, _ in draft.found.page.fields):
        line = draft.line(at)
        left = remove_targets(line, gone, keep=draft.has_nested(at))
        if left != line:
            draft.splice(at, at + 1, [] if left is None else [left])
    return draft.finish(now, {}, states=kept), len(before) - len(kept)


def retype_relations(text: str, which: Callable[[Statement], bool], new: str, *, now: int) -> str:
    """Change the type of the relations for which `which` is true to `new`, and return the new text."""
    draft = _Draft(text)
    type = checked_type(new)
    before = find_statements(draft.found.page)
    states = dict.fromkeys(Statement(type, statement.target) if which(statement) else statement for statement in before)
    if tuple(states) == before:
        return text
    for at in dict.fromkeys(at for at, _ in draft.found.page.fields):
        line = draft.line(at)
        left = change_type(line, which, type)
        moved = [
            f"{line_prefix(line)}- {type}:: {left[target.start : target.end]}"
            for field in find_fields(left)
            for target in field.targets
            if which(target.says) and target.says.type != type
        ]
        if moved:
            rest = remove_targets(left, lambda statement: which(statement) and statement.type != type, keep=True) or ""
            # Nested lines stay with the line above them.
            draft.splice(at, at + 1, [*moved, rest] if is_list_item(line) else [rest, *moved])
        elif left != line:
            draft.splice(at, at + 1, [left])
    return draft.finish(now, {}, states=states)


def set_properties(text: str, changes: Mapping[str, PropertyValue], *, now: int) -> str:
    """Change properties of the node (None removes one); a new summary also sets `summary_updated_at`."""
    if not changes:
        return text
    stamp = {"summary_updated_at": iso(now) if changes["summary"] else None} if "summary" in changes else {}
    return _Draft(text).finish(now, {**changes, **stamp})


def state_ordinals(text: str, *, now: int) -> str:
    """Write down the ordinals of observations that have one but do not state it; otherwise return `text` unchanged."""
    draft = _Draft(text)
    if not draft.found.unsettled:
        return text
    return draft.finish(now, {}, version=False)


def _relation_line(type: str, link: str) -> tuple[str, Statement]:
    """Return the line of a relation, and the statement that it makes. Raises InvalidArgument."""
    line = f"- {checked_type(type)}:: [[{link}]]"
    targets = [target for field in find_fields(line) for target in field.targets] if ONE_LINE.fullmatch(link) else []
    if [(target.end, target.says.target) for target in targets] != [(len(line), link.partition("|")[0].strip())]:
        raise InvalidArgument(f"{link[:100]!r} can't be linked: rename its file without # ^ [ ] |")
    return line, targets[0].says


class _Draft:
    """Holds a note during an edit: its parsed content, and the lines to replace."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.front, body = split(text)
        self.own = NodeProperties(read_properties(self.front), [])
        self.stated = self.own.last_ordinal()
        self.found = NumberedObservations(parse_page(body), self.stated)
        self.lines = self.found.page.lines
        self.splices: list[tuple[int, int, list[str]]] = []
        self.unseen = self.found.unsettled

    def line(self, at: int) -> str:
        return self.lines[at].rstrip("\r\n")

    def has_nested(self, at: int) -> bool:
        """Return whether the next line is indented more than this line."""
        below = self.line(at + 1) if at + 1 < len(self.lines) else ""
        return below.strip() != "" and len(line_prefix(below)) > len(line_prefix(self.line(at)))

    def splice(self, first: int, behind: int, lines: list[str]) -> None:
        """Replace `self.lines[first:behind]` with `lines`; lines without a line end get one."""
        self.splices.append((first, behind, lines))

    def observation_lead(self) -> str:
        """Return the indentation and list mark for a new observation: those of the last one, but never a number."""
        section = self.found.page.sections.get("observations")
        leads = [item.lead for item in self.found.page.items if section and item.behind <= section.behind]
        last = leads[-1] if leads else "-"
        return last if last[-1] not in ".)" else last.rstrip("0123456789.)") + "-"

    def append_to_section(self, name: str, lines: list[str]) -> None:
        """Append `lines` to the list in the section `name`; create the section if it is missing."""
        page = self.found.page
        section = page.sections.get(name)
        if section:
            ends = [item.behind for item in page.items] if name == "observations" else [at + 1 for at, _ in page.fields]
            at = max((end for end in ends if section.inner < end <= section.behind), default=section.inner)
            while name == "relations" and at < section.behind and self.lines[at].strip() and self.lines[at][0] in " \t":
                at += 1  # indented lines belong to the relation above
            if name == "observations":
                at = self._next_clear_line(at, section.behind)
            prose = at == section.inner and at < len(self.lines) and self.lines[at].strip()
            self.splice(at, at, [*lines, ""] if prose else lines)
            return
        other = page.sections.get("relations") if name == "observations" else None
        at = other.first if other else len(self.lines)
        level = max(2, other.level) if other else 2
        above = [""] if at and self.lines[at - 1].strip() else []
        self.splice(at, at, [*above, f"{'#' * level} {name.title()}", *lines, *([""] if other else [])])

    def _next_clear_line(self, at: int, behind: int) -> int:
        """Return the first line from `at` on where a new item can go without absorbing the indented lines after it."""
        deep = item_indentation(self.observation_lead())
        for n in range(at, behind):
            if self.lines[n].strip():
                if indentation(self.lines[n]) < deep:
                    break
                at = n + 1
        return at

    def finish(
        self,
        now: int,
        changes: Mapping[str, PropertyValue],
        *,
        says: Sequence[Observation] | None = None,
        states: Collection[Statement] | None = None,
        version: bool = True,
        time: bool = True,
    ) -> str:
        """Return the text after the edit. Raises Conflict if it would not state exactly what it should."""
        numbered = self.found
        says = numbered.observations if says is None else says
        states = find_statements(numbered.page) if states is None else states
        if numbered.highest > LARGEST:
            raise Conflict(f"the note has no ordinals left: its ids or its `last_ordinal` are near {LARGEST:,}")
        self.splices[:0] = [self._ordinal_splice(item, ordinal) for ordinal, item in numbered.given.items()]
        changes = {"updated_at": iso(now), **changes} if time else dict(changes)
        if version:
            changes["version"] = self._version() + 1
        if numbered.highest > self.stated:
            changes["last_ordinal"] = numbered.highest
        if self.unseen:
            changes["observed_at"] = iso(now)
        text = self._apply_splices(split(edit(self.text, changes))[0])
        _check(text, says, states)
        return text

    def _ordinal_splice(self, item: Item, ordinal: int) -> tuple[int, int, list[str]]:
        """Return the splice that makes an item state its ordinal."""
        if item.place is None:
            return item.behind, item.behind, format_ids_line(item.lead, item.content, ordinal)
        return item.place, item.place + 1, [state_ordinal(self.lines[item.place], item, ordinal)]

    def _version(self) -> int:
        version = self.own.get("version")
        return version if isinstance(version, int) and not isinstance(version, bool) and 1 <= version < 2**53 else 1

    def _apply_splices(self, front: str) -> str:
        """Return the text with all splices applied.

        New lines get the line end of the note's first line; the end of the last line stays as it was."""
        ends = _LINE_END.search(self.text)
        newline = ends[0] if ends else "\n"
        out: list[str] = []
        at = 0
        for first, behind, new in sorted(self.splices, key=lambda splice: splice[:2]):
            out += self.lines[at:first]
            # Without an empty line here, a following line of dashes would turn the text above into a heading.
            lines = new or ([""] if behind < len(self.lines) and is_underline(self.lines[behind]) else [])
            if lines and out and out[-1][-1] not in "\r\n":
                out[-1] += newline
            out += [line if line[-1:] in ("\r", "\n") else line + newline for line in lines]
            at = behind
        out += self.lines[at:]
        if out and self.lines and self.lines[-1][-1] not in "\r\n":
            out[-1] = out[-1].rstrip("\r\n") or out[-1]  # an empty line consists of its line end, so it stays
        if out and front[-1:] not in ("", "\ufeff", "\r", "\n"):
            front += newline
        return front + "".join(out)


def _check(text: str, says: Sequence[Observation], states: Collection[Statement]) -> None:
    """Raise Conflict unless `text` reads back as these observations and relations."""
    numbered = NumberedObservations(parse_page(split(text)[1]), 0)
    if numbered.given or numbered.observations != tuple(says) or set(find_statements(numbered.page)) != set(states):
        raise Conflict(
            "Memex can't change the note here: it has an unclosed code block or comment, a list that is not plain, or many fields "
            "inside each other; its owner must repair it"
        )
