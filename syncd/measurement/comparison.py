"""Make a comparison of two setups of search on the owner's notes: choose notes and questions, run both trials, judge the difference.

Law, tested: both trials index the same notes and answer the same questions."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from index.errors import InvalidArgument, MemexError
from index.model import Document
from syncd.documents.parser import parse
from syncd.measurement.known_items import KINDS, Question, hide_names, make_questions
from syncd.measurement.rank_figures import Interval, compare_ranks, compute_figures, judge
from syncd.measurement.trial import TOP, Progress, SearchSetup, TrialResult, measure_speed, run_trial
from syncd.measurement.trial_process import call_in_process
from syncd.settings.settings import Settings
from syncd.vault.vault import Vault

Call: TypeAlias = Callable[..., Any]  # calls a function with arguments, and `progress`

NOTES: Final = 3_000  # most notes of a comparison
QUESTIONS: Final = 400
RERANKED: Final = 150  # most questions where a reranker reads the passages of each
SEARCHES: Final = 200  # most recorded queries
EMBED_S: Final = 330.0  # seconds that embedding the notes may take, both setups together: about half of ten minutes
PROBES: Final = 24  # texts by which the speed of an encoder is measured
PROBE_LENGTH: Final = 1_000  # characters of such a text


@dataclass(frozen=True, slots=True)
class NoteSample:
    """Holds the parsed notes of a comparison, and how many notes there are in all."""

    documents: tuple[Document, ...]
    notes_in_all: int


def read_sample(settings: Settings, progress: Progress, most: int = NOTES) -> NoteSample:
    """Read and parse notes of the vault and the inbox; of more than `most`, those whose paths have the smallest digests.

    So each comparison takes the same notes. Notes that can't be read are left out."""
    about = settings.vault
    documents = []
    with closing(Vault(about.path, ignore=about.ignore, max_bytes=about.max_bytes)) as vault:
        files = vault.list_notes().files
        chosen = sorted(files, key=lambda path: hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest())[:most]
        for done, path in enumerate(chosen):
            progress({"stage": "reading notes", "done": done, "total": len(chosen)})
            with suppress(MemexError):  # a note that is damaged, or vanishes meanwhile
                raw, stat = vault.read(path)
                times, collections = stat.mtime_ms, settings.kb.all_collections
                documents.append(parse(raw, path, mtime_ms=times, inbox=about.inbox, collections=collections))
    return NoteSample(tuple(documents), len(files))


def make_setup(settings: Settings) -> SearchSetup:
    """Return the setup of search that `settings` make."""
    return SearchSetup(settings.embed, settings.search, settings.index.chunk_tokens, settings.index.chunk_overlap)


def compare_setups(
    present: SearchSetup,
    changed: SearchSetup,
    notes: NoteSample,
    searches: Sequence[str],
    *,
    progress: Progress,
    call: Call = call_in_process,
) -> dict[str, Any]:
    """Measure both setups, and return the figures, the differences and the verdict on `changed` as JSON values.

    `searches`: recorded queries, the latest last; the first hits of both setups are compared for each.
    Raises InvalidArgument when the notes give no question, and Unavailable when a model can't be loaded."""
    setups = {"present": present, "changed": changed}
    sample: Sequence[Document] = notes.documents
    _require_questions(sample, 1)  # before a model is loaded
    with tempfile.TemporaryDirectory(prefix="memex-", ignore_cleanup_errors=True) as folder:
        speeds = _measure_speeds(setups, sample, Path(folder), call, progress)
        sample = _limit_size(sample, list(speeds.values()))
        most = RERANKED if present.search.reranker or changed.search.reranker else QUESTIONS
        questions = _require_questions(sample, most)
        hidden = [hide_names(document) for document in sample]
        searches = searches[-SEARCHES:]
        results = {
            name: call(
                *(run_trial, setup, hidden, questions, searches, Path(folder)),
                progress=lambda event, name=name: progress(event | {"stage": f"{name}: {event['stage']}"}),
            )
            for name, setup in setups.items()
        }
    return _report(results, questions) | {
        "notes": len(sample),
        "notes_in_all": notes.notes_in_all,
        "recorded": _agreement(results) if searches else None,
    }


def _require_questions(documents: Sequence[Document], most: int) -> list[Question]:
    """Return at most `most` questions about `documents`. Raises InvalidArgument when they give none."""
    if questions := make_questions(documents, most):
        return questions
    raise InvalidArgument(
        "these notes give no question: a title, heading, alias or link text of at least two words, to a note of at "
        "least 100 characters, is needed"
    )


def _measure_speeds(
    setups: dict[str, SearchSetup], sample: Sequence[Document], work: Path, call: Call, progress: Progress
) -> dict[str, float]:
    """Return the characters that each setup embeds in a second; the second of two with one encoder reuses all vectors."""
    step = max(1, len(sample) // PROBES)
    texts = [hide_names(document).text[:PROBE_LENGTH] or " " for document in sample[::step][:PROBES]]
    speeds: dict[str, float] = {}
    for name, setup in setups.items():
        progress({"stage": f"{name}: loading", "done": 0, "total": 1})
        if speeds and _index_inputs(setup) == _index_inputs(setups["present"]):
            continue
        speeds[name] = call(_measure_speed, setup, texts, work, progress=progress)
    return speeds


def _measure_speed(setup: SearchSetup, texts: Sequence[str], work: Path, *, progress: Progress) -> float:  # noqa: ARG001 - one form for all calls
    return measure_speed(setup, texts, work)


def _index_inputs(setup: SearchSetup) -> tuple[Any, ...]:
    return setup.embed.encoders[:1], setup.tokens, setup.overlap


def _limit_size(sample: Sequence[Document], speeds: Sequence[float]) -> list[Document]:
    """Return the first documents whose texts all setups together embed within the time limit, at least one."""
    room = EMBED_S / sum(1 / speed for speed in speeds)
    kept: list[Document] = []
    for document in sample:
        room -= len(document.text)
        if kept and room < 0:
            break
        kept.append(document)
    return kept


def _report(results: dict[str, TrialResult], questions: Sequence[Question]) -> dict[str, Any]:
    present, changed = results["present"], results["changed"]
    difference = compare_ranks(changed.ranks, present.ranks)
    near_difference = compare_ranks(changed.near_ranks, present.near_ranks)
    return {
        "questions": {kind: sum(question.kind == kind for question in questions) for kind in KINDS},
        "search": {name: _intervals(compute_figures(result.ranks)) for name, result in results.items()}
        | {"difference": _intervals(difference)},
        "meaning": {name: _intervals(compute_figures(result.near_ranks)) for name, result in results.items()}
        | {"difference": _intervals(near_difference)},
        "cost": {name: dict(_costs(result)) for name, result in results.items()},
        "verdict": judge([difference, near_difference], len(questions)),
    }


def _intervals(figures: dict[str, Interval]) -> dict[str, dict[str, float]]:
    return {name: {key: round(value, 4) for key, value in asdict(figure).items()} for name, figure in figures.items()}


def _costs(result: TrialResult) -> Iterator[tuple[str, Any]]:
    for name in ("load_s", "index_s", "p50_ms", "p95_ms", "memory_mb"):
        yield name, round(getattr(result, name), 2)
    for name in ("passages", "degraded", "reason"):
        yield name, getattr(result, name)


def _agreement(results: dict[str, TrialResult]) -> dict[str, Any]:
    """Return how alike both setups answer the recorded queries. Which hits were right is not known, so this judges neither."""
    pairs = list(zip(results["present"].tops, results["changed"].tops, strict=True))
    shared = [len({*before} & {*after}) / max(len(before), len(after), 1) for before, after in pairs]
    return {
        "queries": len(pairs),
        "same_first": sum(before[:1] == after[:1] for before, after in pairs) / len(pairs),
        f"shared_top_{TOP}": sum(shared) / len(pairs),
    }
