"""`python -m tests.bench.context [--data DIR] [--tune] [--json FILE]`: how much a context answers of what the next session asks.

Each turn of a conversation of `locomo_dev` is a capture. Each question is asked in one session after its evidence, drawn by
its digest, and counts as answered if the context at the start of that session has all turns of the evidence. When it is
asked, an agent searches (ten hits) and reads the first hit, which counts as use. Compared are the context and the newest
captures alone, as lines of the same form within the same tokens. The constants of `fact_choice` were chosen on DEV with
`--tune`; the other conversations are the result. Questions without an answer ("adversarial") are left out."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from index.encoders.bundled_tokenizer import count_tokens
from index.query import make_query
from index.text.sentences import shorten
from syncd.app import App
from syncd.context import fact_choice
from syncd.context.fact_choice import choose_facts
from syncd.context.fact_reader import FactReader
from syncd.context.note_facts import WeighedFact
from syncd.context.session_context import frame_tokens
from syncd.settings.settings import Settings, VaultSettings
from tests.bench.measure import ROOT, p50, p95

SET: Final = "locomo_dev"
DEV: Final = ("conv-26", "conv-30")
TOKENS: Final = 1_200
DRAWS: Final = 3  # how often the questions are distributed over the sessions
HITS: Final = 10
TITLE: Final = 60  # characters of the title that a capture without one gets from its text
TRIED: Final[Mapping[str, tuple[float, ...]]] = {  # by `--tune`, one constant at a time
    "HALF_LIFE_DAYS": (20.0, 30.0, 40.0, 60.0),
    "OLDEST": (0.0, 0.15, 0.3),
    "USED": (0.0, 0.25, 0.5, 1.0),
    "QUESTION": (0.25, 0.5, 1.0),
    "REPEATED": (0.25, 0.5, 0.75),
}
_TURN: Final = re.compile(r"\*\*([^*]+):\*\* (.*)", re.DOTALL)
_CREATED: Final = re.compile(r"^created: (\S+)", re.MULTILINE)

Choose: TypeAlias = Callable[[Sequence[WeighedFact], int, Mapping[str, float]], list[WeighedFact]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the ids of the captures that answer it."""

    qid: str
    text: str
    evidence: frozenset[str]
    last: int  # session of the last evidence


@dataclass(slots=True)
class Conversation:
    """The facts of a conversation by session, its questions, and what a search finds before a session."""

    app: App
    name: str
    facts: dict[int, list[WeighedFact]]
    questions: list[Asked]
    begins: dict[int, int]  # epoch milliseconds of each session
    hits: dict[tuple[str, int], list[str]] = field(default_factory=dict)

    def search(self, question: Asked, session: int) -> list[str]:
        """The ids that a search before the end of a session finds."""
        if (question.qid, session) not in self.hits:
            until = self.begins.get(session)
            query = make_query(
                question.text, limit=HITS, mode="hybrid", workspace=self.name, collections=(), until=until
            )
            answer = self.app.agent_access.workspace(self.name).search(query)
            self.hits[question.qid, session] = [hit.record.id for hit in answer.hits]
        return self.hits[question.qid, session]


@dataclass(frozen=True, slots=True)
class Result:
    """The share of answered questions, of evidence turns, and the mean tokens of a text."""

    answered: float
    turns: float
    tokens: float
    questions: int


def turn_id(conversation: str, evidence: str) -> str:
    """The id of the capture of a turn such as `D3:12`."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{conversation}/{evidence}"))


def write_turns(folder: Path, vault: Path, name: str) -> dict[int, int]:
    """Write each turn of a conversation as a capture, and return when each session began."""
    begins = {}
    for file in sorted((folder / "notes" / name).glob("*.md")):
        session, text = int(file.stem.rpartition("s")[2]), file.read_text("utf-8")
        created = _CREATED.search(text)
        assert created is not None, file
        begins[session] = int(datetime.fromisoformat(created[1]).replace(tzinfo=UTC).timestamp() * 1000)
        turns = [turn for part in text.split("\n\n") if (turn := _TURN.match(part.strip()))]
        for number, turn in enumerate(turns, 1):
            at = datetime.fromtimestamp(begins[session] / 1000 + number, UTC)
            id = turn_id(name, f"D{session}:{number}")
            note = vault / "Captures" / name / f"{id}.md"
            note.parent.mkdir(parents=True, exist_ok=True)
            said = " ".join(turn[2].split())
            front = f"id: {id}\ncreated_at: {at:%Y-%m-%dT%H:%M:%S}.000Z\nsource: {json.dumps(turn[1])}"
            note.write_text(f"---\n{front}\ntitle: {json.dumps(shorten(said, TITLE))}\n---\n{said}\n", "utf-8")
    return begins


def read_questions(folder: Path, name: str) -> list[Asked]:
    """The questions of a conversation that have an answer."""
    asked = []
    for line in (folder / "qrels.jsonl").read_text("utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        if row["conversation"] == name and row["category"] != "adversarial" and row["evidence"]:
            last = max(int(evidence[1:].partition(":")[0]) for evidence in row["evidence"])
            ids = frozenset(turn_id(name, evidence) for evidence in row["evidence"])
            asked.append(Asked(row["qid"], row["query"], ids, last))
    return asked


@contextmanager
def open_conversations(folder: Path, work: Path) -> Iterator[list[Conversation]]:
    """Index the turns of all conversations in one vault, and yield the conversations while it is open."""
    vault, state = work / "vault", work / "state"
    names = sorted(path.name for path in (folder / "notes").iterdir())
    begins = {name: write_turns(folder, vault, name) for name in names}
    state.mkdir(mode=0o700)
    with App(Settings(vault=VaultSettings(path=vault), state=state)) as app:
        app.opened.builds.wait_for_encoders()
        app.opened.sync.run(accept=True)
        reader = FactReader(app.opened.captures, count_tokens)
        opened = []
        for name in names:
            facts = defaultdict(list)
            for weighed in reader.read(name, ()):
                session = max(number for number, begin in begins[name].items() if begin <= weighed.fact.at)
                facts[session].append(weighed)
            opened.append(Conversation(app, name, dict(facts), read_questions(folder, name), begins[name]))
        yield opened


def choose_context(facts: Sequence[WeighedFact], tokens: int, uses: Mapping[str, float]) -> list[WeighedFact]:
    """The facts of the context."""
    by_key = {weighed.fact.key: weighed for weighed in facts}
    return [by_key[choice.fact.key] for choice in choose_facts(facts, tokens, uses=uses)]


def choose_newest(facts: Sequence[WeighedFact], tokens: int, _: Mapping[str, float]) -> list[WeighedFact]:
    """The newest facts that fit."""
    chosen = []
    for weighed in sorted(facts, key=lambda weighed: -weighed.fact.at):
        if weighed.tokens <= tokens:
            chosen.append(weighed)
            tokens -= weighed.tokens
    return chosen


def distribute(conversation: Conversation, draw: int) -> dict[int, list[Asked]]:
    """The questions by the session in which each is asked."""
    last, asked = max(conversation.begins), defaultdict(list)
    for question in conversation.questions:
        number = int(hashlib.sha256(f"{draw} {question.qid}".encode()).hexdigest(), 16)
        asked[question.last + 1 + number % (last + 1 - question.last)].append(question)
    return dict(asked)


def judge(conversations: Sequence[Conversation], choose: Choose, *, with_use: bool = True) -> Result:
    """Ask all questions in every draw."""
    answered, shares, sizes = 0, [], []
    for conversation in conversations:
        frame = frame_tokens(conversation.name, count_tokens)
        for draw in range(DRAWS):
            asked, uses, facts = distribute(conversation, draw), defaultdict[str, float](float), list[WeighedFact]()
            for session in range(2, max(conversation.begins) + 2):
                facts += conversation.facts.get(session - 1, ())
                chosen = choose(facts, TOKENS - frame, uses)
                ids = {weighed.fact.id for weighed in chosen}
                sizes.append(frame + sum(weighed.tokens for weighed in chosen))
                for question in asked.get(session, ()):
                    shares.append(len(question.evidence & ids) / len(question.evidence))
                    answered += question.evidence <= ids
                for question in asked.get(session, ()) if with_use else ():
                    hits = conversation.search(question, session)
                    for id in hits:
                        uses[id] += 1 / len(hits) + (id == hits[0])
    return Result(answered / len(shares), sum(shares) / len(shares), sum(sizes) / len(sizes), len(shares) // DRAWS)


def time_reads(conversations: Sequence[Conversation]) -> dict[str, float]:
    """Milliseconds in which the daemon gives a context: the first time, after a change, and again."""
    cold, changed, again = [], [], []
    for conversation in conversations:
        workspace = conversation.app.agent_access.workspace(conversation.name)
        for spent, project in ((cold, ""), (again, ""), (changed, "heron"), (changed, "boats"), (again, "")):
            begun = time.perf_counter()
            workspace.context(project)
            spent.append((time.perf_counter() - begun) * 1000)
    return {
        "first": max(cold),
        "another project, p50": p50(changed),
        "another project, p95": p95(changed),
        "again": max(again),
    }


def tune(conversations: Sequence[Conversation]) -> None:
    """Print what each value of each constant gives on the conversations of DEV."""
    for name, values in TRIED.items():
        usual = getattr(fact_choice, name)
        for value in values:
            setattr(fact_choice, name, value)
            result = judge(conversations, choose_context)
            mark = "  (in use)" if value == usual else ""
            sys.stdout.write(f"{name} {value:g}: {result.answered:.3f} answered, {result.turns:.3f} of turns{mark}\n")
        setattr(fact_choice, name, usual)


def report(conversations: Sequence[Conversation], label: str) -> dict[str, Any]:
    """Print and return the results on these conversations."""
    rows = {
        "newest captures": judge(conversations, choose_newest),
        "context without use": judge(conversations, choose_context, with_use=False),
        "context": judge(conversations, choose_context),
    }
    for way, result in rows.items():
        sys.stdout.write(
            f"{label}, {result.questions} questions, {way}: {100 * result.answered:.1f} % answered, "
            f"{100 * result.turns:.1f} % of turns, {result.tokens:,.0f} tokens\n"
        )
    return {way: [result.answered, result.turns, result.tokens] for way, result in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.context", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--tune", action="store_true", help="only try other constants on the conversations of DEV")
    parser.add_argument("--json", type=Path, help="write the results here too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, open_conversations(given.data / SET, Path(work)) as opened:
        dev = [conversation for conversation in opened if conversation.name in DEV]
        others = [conversation for conversation in opened if conversation.name not in DEV]
        if given.tune:
            tune(dev)
            return
        results = {"dev": report(dev, "dev"), "others": report(others, "others"), "milliseconds": time_reads(opened)}
        for name, spent in results["milliseconds"].items():
            sys.stdout.write(f"milliseconds, {name}: {spent:.1f}\n")
        if given.json:
            given.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
