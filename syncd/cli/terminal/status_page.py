"""Compose the page of `memex status`: the verdict first, then the state of each part, in words for people.

Law, tested: every problem is part of the verdict, and a part that an older daemon does not report is left out of the
page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from index.names import pluralize
from syncd.cli.terminal.result_text import BOLD, GREEN, RED, YELLOW, colorize, line
from syncd.cli.terminal.text_width import hang_indent, pad
from syncd.jobs.job_names import job_name

LABEL = 11  # cells of the first column
FEW = 3  # items of a list, unless the whole list is requested
QUIET = frozenset({"root", "remote"})  # jobs that the page shows only when they fail
Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class StatusVerdict:
    """Hold the health of Memex in one sentence, and each problem."""

    is_: Literal["well", "busy", "unwell"]
    says: str
    problems: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"is": self.is_, "says": self.says, "problems": list(self.problems)}


def add_daemon(status: Mapping[str, Any], command_version: str, **facts: Any) -> dict[str, Any]:
    """Return a running daemon's status with the field `daemon`: its version, the version of the command that asked, and `facts`."""
    versions = {"version": status.get("version"), "command_version": command_version}
    return {**status, "daemon": {"state": "running", **facts, **versions}}


def verdict(now: Mapping[str, Any]) -> StatusVerdict:
    """Judge a status. `now` may lack fields that a daemon of another version does not report."""
    problems = list(dict.fromkeys(line(_with_git_advice(str(text), now), 600) for text in now.get("degraded", ())))
    running = now.get("daemon", {})
    if running.get("state") == "down":
        return StatusVerdict(
            "unwell", "no daemon is running, so changes are not indexed; to start it: memex serve", tuple(problems)
        )
    theirs, ours = running.get("version"), running.get("command_version")
    if theirs and ours and theirs != ours:
        problems.insert(0, f"daemon: it has version {theirs}, and this command version {ours}; restart the daemon")
    if not now.get("ready", True):
        return StatusVerdict("busy", f"starting: the vault is being indexed{_format_progress(now)}", tuple(problems))
    if problems:
        return StatusVerdict("unwell", f"{pluralize(len(problems), 'problem')} found", tuple(problems))
    if pending := now.get("pending", 0):
        return StatusVerdict("busy", f"all is well; indexing {pluralize(pending, 'change')}")
    return StatusVerdict("well", "all is well")


def _with_git_advice(problem: str, now: Mapping[str, Any]) -> str:
    """Replace a reference to this page by the advice that the page has."""
    text, elsewhere, _ = problem.partition("; memex status shows how to fix this")
    git = now.get("git")
    advice = git.get("advice") if elsewhere and isinstance(git, Mapping) else ""
    return f"git: {advice}" if advice else text


def render_page(
    now: Mapping[str, Any],
    *,
    at: int,
    width: int = 80,
    color: bool = False,
    everything: bool = False,
    complete: Callable[[str], str] = str,
) -> str:
    """Render the whole page. `at`: the present time in epoch milliseconds; `everything`: don't cut lists.

    `complete`: completes the commands in a text."""
    status = verdict(now)
    style = {"well": GREEN, "busy": YELLOW, "unwell": RED}[status.is_]
    mark = {"well": "●", "busy": "◐", "unwell": "▲"}[status.is_]
    lines = [f"{colorize(mark, style, color)} {colorize(complete(status.says), BOLD, color)}"]
    for problem in status.problems:
        lines += hang_indent("  - ", complete(problem), width)
    lines.append("")
    for label, text in _page_rows(now, at, None if everything else FEW):
        item = text.startswith("- ")
        lines += hang_indent(pad(label, LABEL) + "- " * item, complete(text.removeprefix("- ")), width)
    return "\n".join(lines)


def _page_rows(now: Mapping[str, Any], at: int, few: int | None) -> Iterator[Row]:
    yield from _daemon_rows(now, at)
    if now.get("vault_path"):
        yield "vault", line(str(now["vault_path"]), 300)
    for scope, label in (("captures", "captures"), ("vault", "notes")):
        if scope in now:
            yield label, _count_scope(now, scope)
    for label, listed in (("skipped", _skipped_files(now)), ("attention", _note_defects(now))):
        yield from _list_rows(label, listed, few)
    yield from _part_rows(now)
    yield from _review_rows(now)
    yield from _consolidation_rows(now, at)
    yield from _list_rows("promotion", _promotion_problems(now), few)
    yield from _list_rows("contexts", _stray_notes(now), few)
    yield from _list_rows("shares", _share_problems(now), few)
    yield from _list_rows("loose ends", _loose_ends(now), few)
    yield from _job_rows(now, at, everything=few is None)
    yield from _key_rows(now)
    yield from _list_rows("flagged", _flagged_notes(now), few)
    yield from _list_rows("kept local", _uncommitted_notes(now), few)


def _daemon_rows(now: Mapping[str, Any], at: int) -> Iterator[Row]:
    daemon = now.get("daemon", {})
    if daemon.get("state") == "down":
        yield "daemon", "not running"
    elif now.get("pid"):
        parts = [f"process {now['pid']}", f"version {now['version']}" if now.get("version") else ""]
        parts += [f"up {format_duration(at - now['since'])}" if now.get("since") else "", str(daemon.get("url") or "")]
        yield "daemon", ", ".join(filter(None, parts))


def _count_scope(now: Mapping[str, Any], scope: str) -> str:
    covered = now.get("coverage", {}).get(scope)
    chunks = pluralize(now[scope]["chunks"], "chunk")
    if covered is None:
        text = f"{pluralize(now[scope]['documents'], 'note')}, {chunks}"
    elif covered["of"] is None:
        text = f"{covered['indexed']:,} of an unknown number of files indexed, {chunks}"
    else:
        text = f"{covered['indexed']:,} of {pluralize(covered['of'], 'file')} indexed, {chunks}"
    more = covered or {}
    text += f"; {more['waiting']:,} waiting" if more.get("waiting") else ""
    text += f"; {more['words_only']:,} found by words only" if more.get("words_only") else ""
    if scope == "captures" and now.get("workspaces"):
        text += f"; in {pluralize(len(now['workspaces']), 'workspace')}"
    return text


def _skipped_files(now: Mapping[str, Any]) -> list[str]:
    covered = now.get("coverage", {}).values()
    return [f"{line(file['path'], 200)} {line(file['reason'], 300)}" for scope in covered for file in scope["skipped"]]


def _note_defects(now: Mapping[str, Any]) -> list[str]:
    """List the defects of indexed notes, one line each; skipped and flagged notes have their own rows."""
    skipped = {entry["path"] for scope in now.get("coverage", {}).values() for entry in scope["skipped"]}
    wrong = [entry for entry in now.get("defects", ()) if entry["path"] not in skipped]
    wrong = [entry for entry in wrong if not entry["defect"].startswith("not-indexed")] if skipped else wrong
    notes: dict[str, list[str]] = {}
    flagged = {entry["path"] for entry in now.get("flagged", ())}
    for entry in wrong:
        if not (entry["path"] in flagged and entry["defect"].startswith("secret:")):
            notes.setdefault(entry["path"], []).append(line(entry["defect"], 300))
    return [f"{line(path, 200)}: {'; '.join(_drop_implied(defects))}" for path, defects in notes.items()]


def _drop_implied(defects: Sequence[str]) -> list[str]:
    """Drop defects that follow from another one: the properties of a template are never valid."""
    if not any(defect.startswith("template:") for defect in defects):
        return list(defects)
    return [defect for defect in defects if not defect.startswith("bad-frontmatter:")]


def _flagged_notes(now: Mapping[str, Any]) -> list[str]:
    return [
        f"{line(note['path'], 200)} looks as if it contains a secret ({line(note['rule'], 80)})"
        for note in now.get("flagged", ())
    ]


def _uncommitted_notes(now: Mapping[str, Any]) -> list[str]:
    """List files that Memex wrote and does not commit, one line each, with the reason."""
    git = now.get("git")
    kept = git.get("commits", {}).get("kept", ()) if isinstance(git, Mapping) else ()
    flagged = {note["path"] for note in now.get("flagged", ())}
    pairs = ((note["path"], "because it is flagged" if note["path"] in flagged else note["why"]) for note in kept)
    return [f"{line(path, 200)} is not committed: {line(why, 200)}" for path, why in pairs]


def _promotion_problems(now: Mapping[str, Any]) -> list[str]:
    """List marked captures that can't be promoted, and notes that were changed during a promotion, one line each."""
    facts = now.get("promotion") or {}
    marked = [
        f"{line(note['path'], 200)} is marked for promotion, but can't be promoted: {line(note['problem'], 300)}"
        for note in facts.get("problems", ())
    ]
    torn = [
        (f"{line(note['what'], 200)}: a note" if note.get("what") else line(note["path"], 200))
        + f" was changed while it was {'done' if note.get('what') else 'promoted'}; check {line(', '.join(note['left']), 300)}"
        for note in facts.get("torn", ())
    ]
    return marked + torn


def _stray_notes(now: Mapping[str, Any]) -> list[str]:
    """List what lies in the folder of contexts and is not a context, one line each."""
    strays = (now.get("contexts") or {}).get("strays", ())
    return [
        f"{line(path, 200)} is in the folder of contexts, so no search finds it; to repair it: memex doctor"
        for path in strays
    ]


def _share_problems(now: Mapping[str, Any]) -> list[str]:
    """List the shares through which agents read nothing, one line each."""
    return [
        f"{line(share['entry'], 200)}, shared with {line(share['workspace'], 100)}: {line(share['reason'], 200)}"
        for share in (now.get("shares") or {}).get("problems", ())
    ]


def _list_rows(label: str, items: Sequence[str], few: int | None) -> Iterator[Row]:
    """Show the first `few` items of a list, and the command that shows the rest."""
    if not items:
        return
    yield label, f"{len(items):,}:" if len(items) > 1 else items[0]
    if len(items) > 1:
        yield from (("", f"- {item}") for item in items[:few])
    if few is not None and len(items) > few:
        yield "", f"… and {len(items) - few:,} more: `memex status --all`"


def _part_rows(now: Mapping[str, Any]) -> Iterator[Row]:
    for name, words in _WORDS.items():
        if name in now and (text := _format_part(words, now[name])):
            yield name.replace("_", " "), text
    if held := now.get("removals_held"):
        yield "held", f"{pluralize(held, 'removal')} held back; to confirm: `memex index --accept-removals`"


def _format_part(words: Callable[[Mapping[str, Any]], list[str]], facts: Any) -> str:
    """Format one part on a line; an older daemon reports only a word."""
    return line(", ".join(filter(None, words(facts) if isinstance(facts, Mapping) else [str(facts)])), 400)


def _state_words(facts: Mapping[str, Any]) -> list[str]:
    return [": ".join(filter(None, (str(facts.get("state", "")), str(facts.get("problem", "")))))]


def _reranker_words(facts: Mapping[str, Any]) -> list[str]:
    return [] if facts.get("state") == "off" else _state_words(facts)


_UNDER_WAY: Final = ("conflict", "mid-operation")


def _git_words(facts: Mapping[str, Any]) -> list[str]:
    at = f" on {facts['branch']}" if facts.get("branch") else ""
    at += f" at {str(facts['head'])[:8]}" if facts.get("head") else ""
    hooks = "hooks: " + " ".join(map(str, facts["hooks"])) if facts.get("hooks") else ""
    waiting = facts.get("commits", {}).get("waiting")
    commits = f"{pluralize(waiting, 'file')} to commit" if waiting else ""
    exchange, advice = (facts.get("exchange") or {}).get("problem"), facts.get("advice")
    if facts.get("state") in _UNDER_WAY and advice:
        exchange = ""  # the problem of the last exchange may be the one being resolved
    return [f"{facts.get('state', '')}{at}", commits, hooks, str(exchange or advice or "")]


def _watch_words(facts: Mapping[str, Any]) -> list[str]:
    counted = (("folders", "folder"), ("overflows", "overflow"), ("restarts", "restart"))
    counts = [pluralize(facts[key], word) for key, word in counted if facts.get(key)]
    return [str(facts.get("state", "")), *counts, str(facts.get("problem") or "")]


def _enrichment_words(facts: Mapping[str, Any]) -> list[str]:
    missing = (
        f"{pluralize(facts['missing'], 'capture')} without summary or tags: `memex enrich --backfill`"
        if facts.get("missing")
        else ""
    )
    return [str(facts.get("by", "")), missing, str(facts.get("problem") or "")]


def _queue_words(facts: Mapping[str, Any]) -> list[str]:
    jobs = facts.get("jobs", {})
    shown = [f"{jobs[status]:,} {status}" for status in ("queued", "running", "failed") if jobs.get(status)]
    shown[-1:] = [f"{shown[-1]}: `memex job queue --status failed`"] if jobs.get("failed") else shown[-1:]
    return [*shown, str(facts.get("hindrance") or "")] if shown else []


def _file_words(facts: Mapping[str, Any]) -> list[str]:
    kinds = {
        "waiting": "waiting to be read",
        "missing": "missing (their notes remain)",
        "unread": "can't be read at the moment",
    }
    counts = {key: facts[key] if isinstance(facts[key], int) else len(facts[key]) for key in kinds if facts.get(key)}
    shown = [f"{count:,} {kinds[key]}" for key, count in counts.items()]
    return [pluralize(facts.get("known", 0), "file"), *shown] if shown or facts.get("known") else []


def _sandbox_words(facts: Mapping[str, Any]) -> list[str]:
    """Name the layers that confine the readers of files, or the missing ones."""
    if facts.get("problem") or "landlock" not in facts:
        return [str(facts.get("problem") or "")]
    if facts.get("missing"):
        if facts.get("system") == "darwin":
            return [
                "macOS has neither Landlock nor seccomp: PDF and Office files are read with limits of time and size only"
            ]
        lacking = " and ".join(str(layer) for layer in facts["missing"])
        return [f"without {lacking}: PDF and Office files are still read, because kb.confined is preferred"]
    network = "a separate network namespace" if facts.get("network_namespace") else ""
    return [f"Landlock {facts['landlock']}", "seccomp", network]


def _name_words(facts: Mapping[str, Any]) -> list[str]:
    kinds = {
        "twins": ("set", " of names that differ in case only"),
        "conflict_copies": ("conflict copy", ""),
        "placeholders": ("placeholder", " not downloaded"),
    }
    return [f"{pluralize(len(facts[key]), noun)}{more}" for key, (noun, more) in kinds.items() if facts.get(key)]


_GRAPH_NOUNS: Final = {"nodes": "entity", "observations": "fact", "relations": "relation"}


def _graph_words(facts: Mapping[str, Any]) -> list[str]:
    return [pluralize(facts[key], noun) for key, noun in _GRAPH_NOUNS.items()] if facts.get("nodes") else []


def _review_rows(now: Mapping[str, Any]) -> Iterator[Row]:
    """Count the captures that wait for a decision."""
    facts = now.get("review") or {}
    if waiting := facts.get("waiting"):
        words = [
            f"{pluralize(waiting, 'capture')} {'waits' if waiting == 1 else 'wait'} for your decision: `memex review`"
        ]
        words += [f"{facts['marked']:,} marked for promotion"] if facts.get("marked") else []
        words += [f"{facts['problems']:,} can't be promoted yet"] if facts.get("problems") else []
        yield "inbox", ", ".join(words)


def _consolidation_rows(now: Mapping[str, Any], at: int) -> Iterator[Row]:
    """Show the last consolidation, and the proposals that wait for an answer."""
    facts = now.get("consolidation") or {}
    words = [f"consolidation ran {format_duration(at - facts['at'])} ago"] if facts.get("at") else []
    if waiting := facts.get("waiting"):
        where = f" in {line(str(facts['report']), 200)}" if facts.get("report") else ": `memex consolidate` lists them"
        words.append(f"{pluralize(waiting, 'proposal')} {'waits' if waiting == 1 else 'wait'}{where}")
    if facts.get("accepted"):
        words.append(
            f"{facts['accepted']:,} accepted, not carried out yet"
            + f": {line(str(facts['problem']), 300)}" * bool(facts.get("problem"))
        )
    if words:
        yield "reports", ", ".join(words)


def _loose_ends(now: Mapping[str, Any]) -> list[str]:
    """List names and relations in the graph that lead to no entity, one line each."""
    facts = now.get("graph", {})
    twins = [
        f"{line(other, 200)} is not an entity: {line(node, 200)} has its name"
        for node, *others in facts.get("twins", ())
        for other in others
    ]
    return twins + [
        f"{line(edge['path'], 200)} has the relation {line(edge['relation_type'], 100)} to {line(edge['target'], 200)!r}, which is not an entity"
        for edge in facts.get("dangling", ())
    ]


def _deep_check_words(facts: Mapping[str, Any]) -> list[str]:
    return (
        [f"{pluralize(facts.get('checked', 0), 'file')} read", f"{facts.get('mended', 0)} repaired"]
        if facts.get("at")
        else []
    )


def _audit_words(facts: Mapping[str, Any]) -> list[str]:
    return [pluralize(facts["entries"], "entry"), f"head {facts['head']}"] if facts.get("entries") else []


_WORDS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {  # in the order of the page
    "encoder": _state_words,
    "reranker": _reranker_words,
    "git": _git_words,
    "watch": _watch_words,
    "enrichment": _enrichment_words,
    "queue": _queue_words,
    "files": _file_words,
    "sandbox": _sandbox_words,
    "graph": _graph_words,
    "names": _name_words,
    "deep_check": _deep_check_words,
    "audit": _audit_words,
}


def _job_rows(now: Mapping[str, Any], at: int, *, everything: bool) -> Iterator[Row]:
    """Show the jobs that run or have failed, and count the others; or show every job."""
    label = "jobs"
    shown = {key: job for key, job in now.get("jobs", {}).items() if key not in QUIET or job.get("error")}
    busy = {key: job for key, job in shown.items() if everything or job.get("running") or job.get("error")}
    for key, job in sorted(busy.items(), key=lambda pair: job_name(pair[0])):
        name = job_name(key)
        if job.get("running"):
            text = f"running for {_format_seconds(job.get('seconds') or 0)}"
        elif job.get("started_at"):
            did = f"failed ({line(job['error'], 120)})" if job.get("error") else "ran"
            text = (
                f"{did} {format_duration(at - job['started_at'])} ago, took {_format_seconds(job.get('seconds') or 0)}"
            )
        else:
            text = "has not run yet"
        if job.get("next_run_at"):
            text += (
                f"; next in {format_duration(job['next_run_at'] - at)}" if job["next_run_at"] > at else "; next: now"
            )
        yield label, f"{name}: {text}"
        label = ""
    if rest := len(shown) - len(busy):
        yield label, f"{rest:,} {'more' if busy else 'scheduled, none failed'}: `memex job list`"


def _key_rows(now: Mapping[str, Any]) -> Iterator[Row]:
    if facts := now.get("keys"):
        soon = ", ".join(line(str(name), 64) for name in facts.get("expiring", ()))
        yield (
            "keys",
            str(facts.get("problem") or f"{facts.get('live', 0)} live" + (f"; expiring soon: {soon}" if soon else "")),
        )


def _format_progress(now: Mapping[str, Any]) -> str:
    covered = now.get("coverage", {}).values()
    if not covered or any(scope["of"] is None for scope in covered):
        return ""
    return f", {sum(scope['indexed'] for scope in covered):,} of {sum(scope['of'] for scope in covered):,} so far"


def format_duration(ms: float) -> str:
    """Format a duration in its largest unit that is not zero."""
    seconds = max(0, int(ms // 1000))
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else format_duration(seconds * 1000)
