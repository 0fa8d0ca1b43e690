"""A node's note in two hands: what a person and an agent do to it in turn, against a plain model.

The model is a list of what the person sees, line by line; nothing of the program's reading or writing is used for it."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from index.model import Statement
from syncd.documents import entity_edits
from syncd.documents.entity_node import read_node
from syncd.notes.front_matter import read_properties, split
from tests.support.example_counts import examples

NOW = 1_790_000_000_000
PATH = "Captures/default/Entities/Ada.md"

words = st.sampled_from(
    ["born in London", "日本語の事実", 'said "so" [[Babbage|him]]', "עברית", "🙂 ^o7", "a ^o3 b", "`code` ## no", "[ ] todo", "- - x", "k:: [[B]]"]
)  # fmt: skip
more = st.lists(st.sampled_from(["more", "", "- nested", "```", "## Observations", "^o2", "  deep", "%%"]), max_size=3)
prose = st.sampled_from(["Prose.", "prose ^o2", "## Sources", "### Deeper", "> quote", "", "see [[B]]"])


class Fact:
    """An observation as the model has it: what it says, and its ordinal once the note states one."""

    def __init__(self, content: str, ordinal: int | None = None) -> None:
        self.content, self.ordinal = content, ordinal


class Shared(RuleBasedStateMachine):
    """The note, and the facts in the order of their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[Fact] = []
        self.last = 0  # the highest ordinal ever given
        self.spent: dict[int, Fact] = {}  # ordinal → the one fact that ever had it
        self.relations: set[Statement] = set()
        self.prose: list[str] = []
        self.count = 0

    @initialize(newline=st.sampled_from(["\n", "\r\n"]), bom=st.booleans(), given=st.lists(words, max_size=2))
    def begin(self, newline: str, bom: bool, given: list[str]) -> None:
        self.newline = newline
        contents = [self._unique(one) for one in given]
        text = entity_edits.compose({"id": "ada", "type": "entity"}, contents)
        self.text = "\ufeff" * bom + text.replace("\n", newline)
        self._given([Fact(content) for content in contents])

    def _unique(self, content: str) -> str:
        self.count += 1
        return f"fact{self.count} {content}".strip()

    # What the model does where ordinals are given

    def _settled(self) -> None:
        """Each fact that the note gives no ordinal, or one that an earlier line has, gets the next."""
        stated: set[int] = set()
        new = []
        for fact in self.facts:
            if fact.ordinal is None or fact.ordinal in stated:
                new.append(fact)
            else:
                stated.add(fact.ordinal)
        for fact in new:
            self._number(fact)

    def _number(self, fact: Fact) -> None:
        self.last += 1
        assert self.last not in self.spent
        fact.ordinal = self.last
        self.spent[self.last] = fact

    def _given(self, facts: list[Fact]) -> None:
        self._settled()
        for fact in facts:
            self._number(fact)
        self.facts += facts

    # The note as a person sees it

    def _lines(self) -> list[str]:
        return self.text.split(self.newline)

    def _write(self, lines: list[str]) -> None:
        self.text = self.newline.join(lines)

    def _block(self, fact: Fact) -> tuple[int, int]:
        """The lines of a fact: the one with its number, and what is indented below."""
        lines = self._lines()
        number = re.match(r"fact\d+", fact.content)[0]
        first = next(at for at, line in enumerate(lines) if re.match(rf"[-*] {number}\b", line))
        behind = end = first + 1
        while end < len(lines) and (not lines[end] or lines[end].startswith("  ")):
            end += 1
            behind = end if lines[end - 1] else behind
        return first, behind

    def _heading(self) -> int:
        return next(at for at, line in enumerate(self._lines()) if re.match(r"#+ observations", line, re.IGNORECASE))

    # A person

    @rule(content=words, lines=more, at=st.integers(0, 9), mark=st.sampled_from("-*"))
    def a_person_adds_an_item(self, content, lines, at, mark):
        text = self._unique(content)
        rest = [line and f"  {line}" for line in lines]
        while rest and not rest[-1].strip():
            rest.pop()
        if re.search(r" \^o[1-9]$", text) or any(line.strip().startswith("^o") for line in rest):
            return  # these would state an ordinal
        at = min(at, len(self.facts))
        where = self._block(self.facts[at - 1])[1] if at else self._heading() + 1
        lines = self._lines()
        lines[where:where] = [f"{mark} {text}", *rest]
        self._write(lines)
        self.facts.insert(at, Fact("\n".join([text, *(line[2:] for line in rest)]).strip()))

    @precondition(lambda self: self.facts)
    @rule(data=st.data())
    def a_person_rewords(self, data):
        fact = data.draw(st.sampled_from(self.facts))
        old = re.match(r"fact\d+", fact.content)[0]
        new = self._unique("").strip()
        lines = self._lines()
        first, behind = self._block(fact)
        lines[first:behind] = [re.sub(rf"{old}\b", f"{new} now", line) for line in lines[first:behind]]
        self._write(lines)
        fact.content = re.sub(rf"{old}\b", f"{new} now", fact.content)

    @precondition(lambda self: self.facts)
    @rule(data=st.data())
    def a_person_deletes(self, data):
        fact = data.draw(st.sampled_from(self.facts))
        lines = self._lines()
        first, behind = self._block(fact)
        del lines[first:behind]
        self._write(lines)
        self.facts.remove(fact)

    @precondition(lambda self: len(self.facts) > 1)
    @rule(data=st.data())
    def a_person_moves(self, data):
        fact = data.draw(st.sampled_from(self.facts))
        other = data.draw(st.sampled_from([one for one in self.facts if one is not fact]))
        lines = self._lines()
        first, behind = self._block(fact)
        block = lines[first:behind]
        del lines[first:behind]
        self._write(lines)
        at = self._block(other)[0]
        lines[at:at] = block
        self._write(lines)
        self.facts.remove(fact)
        self.facts.insert(self.facts.index(other), fact)

    @precondition(lambda self: self.facts)
    @rule(data=st.data())
    def a_person_duplicates(self, data):
        """The copy is reworded, so that the model can tell the two apart."""
        fact = data.draw(st.sampled_from(self.facts))
        old, new = re.match(r"fact\d+", fact.content)[0], self._unique("").strip()
        lines = self._lines()
        first, behind = self._block(fact)
        lines[behind:behind] = [re.sub(rf"{old}\b", new, line) for line in lines[first:behind]]
        self._write(lines)
        copy = Fact(re.sub(rf"{old}\b", new, fact.content), fact.ordinal)
        self.facts.insert(self.facts.index(fact) + 1, copy)

    @precondition(lambda self: any(fact.ordinal for fact in self.facts))
    @rule(data=st.data())
    def a_person_takes_an_id_away(self, data):
        fact = data.draw(st.sampled_from([fact for fact in self.facts if fact.ordinal]))
        lines = self._lines()
        first, behind = self._block(fact)
        block = lines[first:behind]
        for at in range(len(block) - 1, -1, -1):
            if block[at].strip() == f"^o{fact.ordinal}":
                del block[at]
                break
            if block[at].endswith(f" ^o{fact.ordinal}"):
                block[at] = block[at].removesuffix(f" ^o{fact.ordinal}")
                break
        if any(re.search(r"(?:^|\s)\^o[1-9]\d*$", line) for line in block):
            return  # what is left would state another
        lines[first:behind] = block
        self._write(lines)
        fact.ordinal = None

    @rule(text=prose, data=st.data())
    def a_person_writes_prose(self, text, data):
        """At the end of the note, or above the observations."""
        lines = self._lines()
        self.count += 1
        line = f"{text} prose{self.count}"
        at = data.draw(st.sampled_from([len(lines), self._heading()]))
        lines[at:at] = ["", line, ""]
        self._write(lines)
        self.prose.append(line)

    @precondition(lambda self: self.facts)
    @rule(data=st.data())
    def a_person_writes_prose_between_items(self, data):
        fact = data.draw(st.sampled_from(self.facts))
        self.count += 1
        lines = self._lines()
        at = self._block(fact)[1]
        lines[at:at] = [line := f"In between, prose{self.count} ^o1"]
        self._write(lines)
        self.prose.append(line)

    @rule(heading=st.sampled_from(["# Observations", "## OBSERVATIONS ##", "#### observations"]))
    def a_person_renames_the_heading(self, heading):
        lines = self._lines()
        lines[self._heading()] = heading
        self._write(lines)

    @rule(at=st.integers(0, 3))
    def a_person_edits_properties(self, at):
        lines = self._lines()
        self.count += 1
        lines[1 + min(at, 1) : 1 + min(at, 1)] = [f"key{self.count}: value # prose{self.count}"]
        self._write(lines)
        self.prose.append(f"key{self.count}: value # prose{self.count}")

    @rule(type=st.sampled_from(["knows", "likes"]), to=st.sampled_from("BCD"))
    def a_person_states_a_relation(self, type, to):
        lines = self._lines()
        at = self._heading()
        lines[at:at] = [f"{type}:: [[{to}]]", ""]
        self._write(lines)
        self.relations.add(Statement(type, to))

    # An agent, and the job that settles

    @rule(given=st.lists(st.tuples(words, more), min_size=1, max_size=2))
    def an_agent_adds(self, given):
        contents = [self._unique("\n".join([content, *lines])) for content, lines in given]
        self.text, new = entity_edits.add_observations(self.text, contents, now=NOW)
        self._given([Fact(content) for content in contents])
        assert [one.ordinal for one in new] == [fact.ordinal for fact in self.facts[-len(new) :]]

    @precondition(lambda self: self.facts)
    @rule(data=st.data(), content=words, lines=more)
    def an_agent_replaces(self, data, content, lines):
        told = self._told()
        ordinal = data.draw(st.sampled_from(sorted(told)))
        content = self._unique("\n".join([content, *lines]))
        self.text, old = entity_edits.replace_observation(self.text, ordinal, content, now=NOW)
        assert old == told[ordinal]
        self._settled()
        next(fact for fact in self.facts if fact.ordinal == ordinal).content = content

    @precondition(lambda self: self.facts)
    @rule(data=st.data())
    def an_agent_removes(self, data):
        told = self._told()
        ordinals = data.draw(st.sets(st.sampled_from(sorted(told)), min_size=1, max_size=2))
        self.text, gone = entity_edits.remove_observations(self.text, {*ordinals, 9_999}, now=NOW)
        assert set(gone) == ordinals
        self._settled()
        self.facts = [fact for fact in self.facts if fact.ordinal not in ordinals]

    @rule(type=st.sampled_from(["knows", "likes"]), to=st.sampled_from("BCD"))
    def an_agent_relates(self, type, to):
        before = self.text
        self.text = entity_edits.add_relations(self.text, [(type, to)], now=NOW)
        if Statement(type, to) in self.relations:
            assert self.text == before
            return
        self.relations.add(Statement(type, to))
        self._settled()

    @rule(to=st.sampled_from("BCD"), new=st.none() | st.just("met"))
    def an_agent_unrelates_or_renames(self, to, new):
        mine = {one for one in self.relations if one.target == to and one.type != new}
        if new:
            self.text = entity_edits.retype_relations(self.text, mine.__contains__, new, now=NOW)
        else:
            self.text, count = entity_edits.remove_relations(self.text, mine.__contains__, now=NOW)
            assert count == len(mine)
        self.relations -= mine
        self.relations |= {Statement(new, to)} if new and mine else set()
        if mine:
            self._settled()

    @rule(summary=st.sampled_from(["She wrote: programs", None]))
    def an_agent_describes(self, summary):
        self.text = entity_edits.set_properties(self.text, {"summary": summary}, now=NOW)
        self._settled()

    @rule()
    def the_job_settles(self):
        self.text = entity_edits.state_ordinals(self.text, now=NOW)
        self._settled()

    # What always holds

    def _told(self) -> dict[int, str]:
        """What an agent is told: ordinals as the note states them, else the next in the order of lines."""
        told: dict[int, str] = {}
        new = []
        for fact in self.facts:
            if fact.ordinal is None or fact.ordinal in told:
                new.append(fact)
            else:
                told[fact.ordinal] = fact.content
        return told | {self.last + at: fact.content for at, fact in enumerate(new, 1)}

    @invariant()
    def the_note_says_what_the_model_says(self):
        if not hasattr(self, "text"):
            return
        front, body = split(self.text)
        node, defects = read_node(read_properties(front), body, PATH)
        assert {one.ordinal: one.content for one in node.observations} == self._told()
        assert set(node.relations) == self.relations
        assert node.last_ordinal == max([self.last, *self._told()])
        assert not {defect.name for defect in defects} - {"repeated-ordinal"}

    @invariant()
    def nothing_of_the_person_s_is_lost(self):
        if not hasattr(self, "text"):
            return
        lines = self._lines()
        assert all(lines.count(line) == 1 for line in self.prose)
        assert "\n" not in self.text.replace(self.newline, "")
        assert "\r" not in self.text.replace(self.newline, "")


TestShared = Shared.TestCase
TestShared.settings = examples(150, stateful_step_count=30)
