"""Compose the note of an entity, and apply edits to it: observations, relations and properties.

Laws, tested: text comes back as it was given. An edit changes only the lines that it is about, the indentation of
lines that would otherwise become part of an item, and a few properties; its result has been read back, and nothing
in it changed but what was asked. An ordinal is never given to a second observation. A person's block id stays with
its observation."""

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
    checked_kind,
    checked_name,
    checked_type,
    find_statements,
    format_link,
    read_node,
)
from syncd.notes.front_matter import PropertyValue, edit, read_properties, split
from syncd.notes.front_matter import compose as composed
from syncd.notes.inline_fields import change_type, find_fields, is_list_item, line_prefix, remove_targets
from syncd.notes.timestamps import iso

__all__ = [
    "add_observations",
    "add_relation",
    "add_relations",
    "checked_content",
    "checked_kind",
    "checked_name",
    "checked_type",
    "compose",
    "format_link",
    "read_node",
    "remove_observations",
    "remove_relations",
    "replace_observation",
    "retype_relations",
    "set_properties",
    "state_ordinals",
]

_LINE_END = re.compile(r"\r\n|\r|\n")


UNKNOWN: Final = frozenset({"observed_at", "summary_updated_at"})  # None = of a node whose note did not say either


def compose(
    values: Mapping[str, PropertyValue],
    observations: Sequence[str],
    relations: Sequence[tuple[str, str]] = (),
    ordinals: Sequence[int] = (),
) -> str:
    """A new note of a node: its properties, its observations, its relations (type and `link`).

    The ordinals rise, one for each observation; () = from 1 on."""
    numbers = ordinals or range(1, len(observations) + 1)
    facts = [Observation(at, checked_content(text)) for at, text in zip(numbers, observations, strict=True)]
    lines = [
        "## Observations",
        *(line for fact in facts for line in format_observation("-", fact.content, fact.ordinal)),
    ]
    if relations:
        lines += ["", "## Relations", *(_relation_line(type, to)[0] for type, to in relations)]
    front = {key: value for key, value in values.items() if value is not None or key not in UNKNOWN}
    if facts:
        front["last_ordinal"] = max(
            [facts[-1].ordinal, *(n for n in [values.get("last_ordinal")] if isinstance(n, int))]
        )
        front |= {"observed_at": values["created_at"]} if "created_at" in values and "observed_at" not in values else {}
    text = composed(front, "".join(f"{line}\n" for line in lines))
    _check(text, tuple(facts), dict.fromkeys(_relation_line(type, to)[1] for type, to in relations))
    return text


def add_observations(text: str, contents: Sequence[str], *, now: int) -> tuple[str, list[Observation]]:
    """`text` with observations added behind those that are there; and these, with their ordinals."""
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
    """`text` with another observation under the same ordinal, in the same place; and the old one."""
    draft = _Draft(text)
    content = checked_content(content)
    item = draft.found.items.get(ordinal)
    if item is None:
        raise NotFound(f"no observation {ordinal} in this node: open it to see those there are", ordinal=ordinal)
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
    """`text` without these observations; and those ordinals that were there."""
    draft = _Draft(text)
    gone = {ordinal: None for ordinal in ordinals if ordinal in draft.found.items}
    if not gone:
        return text, []
    draft = draft.unindent_behind([draft.found.items[ordinal] for ordinal in gone])
    for ordinal in gone:
        draft.splice(draft.found.items[ordinal].first, draft.found.items[ordinal].behind, [])
        draft.found.given.pop(ordinal, None)
    says = tuple(observation for observation in draft.found.observations if observation.ordinal not in gone)
    return draft.finish(now, {}, says=says), list(gone)


def add_relation(text: str, type: str, link: str, *, now: int) -> str:
    """`text` with a relation of that type to `[[link]]`; as it is when it says so already."""
    return add_relations(text, [(type, link)], now=now)


def add_relations(text: str, relations: Sequence[tuple[str, str]], *, now: int) -> str:
    """The same with several relations, each a type and a `link`, as one change."""
    draft = _Draft(text)
    before = find_statements(draft.found.page)
    lines = {statement: line for line, statement in (_relation_line(type, to) for type, to in relations)}
    new = [statement for statement in lines if statement not in before]
    if not new:
        return text
    draft.append_to_section("relations", [lines[statement] for statement in new])
    return draft.finish(now, {}, states=(*before, *new))


def remove_relations(text: str, gone: Callable[[Statement], bool], *, now: int) -> tuple[str, int]:
    """`text` without the relations that are `gone`; and how many these were."""
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
    """`text` with `new` as the type of the relations that are among `which`."""
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
            draft.splice(
                at, at + 1, [*moved, rest] if is_list_item(line) else [rest, *moved]
            )  # what is below stays with it
        elif left != line:
            draft.splice(at, at + 1, [left])
    return draft.finish(now, {}, states=states)


def set_properties(text: str, changes: Mapping[str, PropertyValue], *, now: int) -> str:
    """`text` with properties of the node changed (None removes one); a summary that changes tells when."""
    stamp = {"summary_updated_at": iso(now) if changes["summary"] else None} if "summary" in changes else {}
    return _Draft(text).finish(now, {**changes, **stamp})


def state_ordinals(text: str, *, now: int) -> str:
    """`text` with the ordinals that its observations have but do not state; as it is when there are none."""
    draft = _Draft(text)
    if not draft.found.unsettled:
        return text
    return draft.finish(now, {}, version=False)


def _relation_line(type: str, link: str) -> tuple[str, Statement]:
    """The line of a relation, and what it states."""
    line = f"- {checked_type(type)}:: [[{link}]]"
    targets = [target for field in find_fields(line) for target in field.targets] if ONE_LINE.fullmatch(link) else []
    if [(target.end, target.says.target) for target in targets] != [(len(line), link.partition("|")[0].strip())]:
        raise InvalidArgument(f"{link[:100]!r} can't be linked to: rename its file, without any of # ^ [ ] |")
    return line, targets[0].says


class _Draft:
    """A note under change: what it says, and the lines to put in place of others."""

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
        """Whether something stands under a line, indented."""
        below = self.line(at + 1) if at + 1 < len(self.lines) else ""
        return below.strip() != "" and len(line_prefix(below)) > len(line_prefix(self.line(at)))

    def splice(self, first: int, behind: int, lines: list[str]) -> None:
        """Put `lines` in place of `lines[first:behind]`; those without a line end get one."""
        self.splices.append((first, behind, lines))

    def observation_lead(self) -> str:
        """The indentation and list mark of a further observation: those of the last one, if its list is not numbered."""
        section = self.found.page.sections.get("observations")
        leads = [item.lead for item in self.found.page.items if section and item.behind <= section.behind]
        last = leads[-1] if leads else "-"
        return last if last[-1] not in ".)" else last.rstrip("0123456789.)") + "-"

    def append_to_section(self, name: str, lines: list[str]) -> None:
        """Put `lines` at the end of the list in the section `name`, which is made if there is none."""
        page = self.found.page
        section = page.sections.get(name)
        if section:
            ends = [item.behind for item in page.items] if name == "observations" else [at + 1 for at, _ in page.fields]
            at = max((end for end in ends if section.inner < end <= section.behind), default=section.inner)
            while name == "relations" and at < section.behind and self.lines[at].strip() and self.lines[at][0] in " \t":
                at += 1  # what is indented belongs to the relation above
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
        """The next place from which on nothing would sink into an item that is put there."""
        deep = item_indentation(self.observation_lead())
        for n in range(at, behind):
            if self.lines[n].strip():
                if indentation(self.lines[n]) < deep:
                    break
                at = n + 1
        return at

    def unindent_behind(self, gone: Collection[Item]) -> _Draft:
        """The same note, which says the same, less the indentation by which lines would sink into another item.

        These are the lines behind the items that go, and that item is the one before them."""
        going = {at: item for item in gone for at in range(item.first, item.behind)}
        firsts = {item.first for item in self.found.page.items}
        lines = list(self.lines)
        for item in self.found.page.items:
            if item.first in going:
                continue
            deep = inner = item_indentation(lines[item.first])
            shift, sinks, apart = 0, False, False
            for at in range(item.behind, len(lines)):
                apart = apart or at in going
                if not lines[at].strip():
                    continue
                depth = indentation(lines[at])
                if at not in going:
                    if not apart or depth < deep:
                        break
                    shift = shift or depth - deep + 1
                elif at == going[at].first:
                    # Until it goes, it must not sink into what was moved above it.
                    sinks = shift > 0 and depth >= inner
                if at not in going or sinks:
                    lines[at] = lines[at][min(shift, len(lines[at]) - len(lines[at].lstrip(" "))) :]
                if at in firsts and at not in going:
                    inner = item_indentation(lines[at])
        return self if lines == self.lines else _Draft(self.front + "".join(lines))

    def finish(
        self,
        now: int,
        changes: Mapping[str, PropertyValue],
        *,
        says: Sequence[Observation] | None = None,
        states: Collection[Statement] | None = None,
        version: bool = True,
    ) -> str:
        """The text after the change. Raises Conflict when it would not say what it should."""
        numbered = self.found
        says = numbered.observations if says is None else says
        states = find_statements(numbered.page) if states is None else states
        if numbered.highest > LARGEST:
            raise Conflict(f"the note has no ordinals left: its ids or its `last_ordinal` are near {LARGEST:,}")
        self.splices[:0] = [self._ordinal_splice(item, ordinal) for ordinal, item in numbered.given.items()]
        changes = {"updated_at": iso(now), **changes}
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
        """The splice that makes an item state its ordinal."""
        if item.place is None:
            return item.behind, item.behind, format_ids_line(item.lead, item.content, ordinal)
        return item.place, item.place + 1, [state_ordinal(self.lines[item.place], item, ordinal)]

    def _version(self) -> int:
        version = self.own.values.get("version")
        return version if isinstance(version, int) and not isinstance(version, bool) and 1 <= version < 2**53 else 1

    def _apply_splices(self, front: str) -> str:
        """The text with the new lines. They end as the note's first line does; the last ends as it did."""
        ends = _LINE_END.search(self.text)
        newline = ends[0] if ends else "\n"
        out: list[str] = []
        at = 0
        for first, behind, new in sorted(self.splices, key=lambda splice: splice[:2]):
            out += self.lines[at:first]
            # Where nothing is put before a line of dashes, that would make a heading of what stands above.
            lines = new or ([""] if behind < len(self.lines) and is_underline(self.lines[behind]) else [])
            if lines and out and out[-1][-1] not in "\r\n":
                out[-1] += newline
            out += [line if line[-1:] in ("\r", "\n") else line + newline for line in lines]
            at = behind
        out += self.lines[at:]
        if out and self.lines and self.lines[-1][-1] not in "\r\n":
            out[-1] = out[-1].rstrip("\r\n") or out[-1]  # an empty line is nothing but its end
        if out and front[-1:] not in ("", "\ufeff", "\r", "\n"):
            front += newline
        return front + "".join(out)


def _check(text: str, says: Sequence[Observation], states: Collection[Statement]) -> None:
    """Refuse to return what would be read as something else."""
    numbered = NumberedObservations(parse_page(split(text)[1]), 0)
    if numbered.given or numbered.observations != tuple(says) or set(find_statements(numbered.page)) != set(states):
        raise Conflict(
            "the note can't be changed here: a code block or comment in it is not closed, or its lists are not plain ones"
        )
