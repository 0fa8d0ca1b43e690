"""Show the home view: Memex's health with what to do, what waits for the owner, what agents wrote today, and the jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from index.timings import now_ms
from syncd.cli.terminal.status_page import add_daemon, verdict
from syncd.jobs.job_names import job_name
from syncd.page.web.view import View, Visit, find_midnight, get, local_path, post
from syncd.version import installed

ENTRIES: Final = 2_000  # newest entries of the log that are grouped
NOTES: Final = 6  # most notes listed for one agent
AGENTS: Final = frozenset({"mcp", "rest"})
VERBS: Final[Mapping[str, str]] = {"create": "created", "update": "changed", "delete": "deleted", "moved": "moved"}


def show_home(visit: Visit) -> Response:
    """Show the view."""
    facts = add_daemon(visit.ask("status"), installed())
    since = find_midnight(datetime.now())  # noqa: DTZ005 - the local day
    entries = visit.ask("audit.list", since=since, limit=ENTRIES)
    return visit.render(
        "home.html",
        verdict=verdict(facts),
        facts=facts,
        decisions=list_decisions(facts),
        days=group_by_agent(entries),
        most=NOTES,
        is_cut=len(entries) == ENTRIES,
        jobs=list_jobs(facts),
        now=now_ms(),
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """Describes something that waits for the owner, and the command that shows it."""

    count: int
    what: str
    command: str
    view: str = ""  # the view that shows it, if the page has it
    is_urgent: bool = False


def list_decisions(facts: Mapping[str, Any]) -> list[Decision]:
    """Return what waits for the owner, from a status. Fields that another version of the daemon does not report count as 0."""
    review, reports = facts.get("review") or {}, facts.get("consolidation") or {}
    promotion, queue = facts.get("promotion") or {}, (facts.get("queue") or {}).get("jobs") or {}
    rows = [
        Decision(review.get("waiting", 0), "capture|captures", "memex review", "review"),
        Decision(len(promotion.get("problems", ())), "capture that can't be promoted|captures that can't be promoted", "memex status --all", "review", True),
        Decision(reports.get("waiting", 0), "proposal|proposals", "memex consolidate", "reports"),
        Decision(queue.get("failed", 0), "failed import|failed imports", "memex job queue --status failed", "jobs", True),
        Decision(int(facts.get("removals_held") or 0), "held removal|held removals", "memex index --accept-removals", "", True),
    ]  # fmt: skip
    return [row for row in rows if row.count]


def group_by_agent(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Group the log's entries of writes by agent, the agent with the latest write first: the number of writes, and the notes."""
    by_agent: dict[str, list[Mapping[str, Any]]] = {}
    for entry in sorted(entries, key=lambda entry: -int(entry["seq"])):
        if entry["surface"] in AGENTS and entry["kind"] in VERBS and entry["path"]:
            by_agent.setdefault(entry["name"] or entry["key"] or entry["surface"], []).append(entry)
    return [{"agent": agent, "writes": len(rows), "notes": _latest_notes(rows)} for agent, rows in by_agent.items()]


def _latest_notes(writes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the last write of each note: created, if it was created today and still exists."""
    notes: dict[str, dict[str, Any]] = {}
    for entry in writes:
        path, verb = entry["path"], VERBS[entry["kind"]]
        note = notes.setdefault(path, {"path": path, "verb": verb, "at": entry["at"]})
        if verb == "created" and note["verb"] == "changed":
            note["verb"] = verb
    return list(notes.values())


def list_jobs(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs that run or failed, from a status; failed ones first."""
    rows = [
        {"running": False, "started_at": None, "error": "", **job, "name": job_name(key)}
        for key, job in (facts.get("jobs") or {}).items()
        if job.get("running") or job.get("error")
    ]
    return sorted(rows, key=lambda row: (not row["error"], row["name"]))


def switch_letter_keys(visit: Visit) -> Response:
    """Turn the shortcuts that are single letters on or off in this browser, and return to the page that asked."""
    is_on = visit.session.has_letter_keys = visit.field("letter-keys") == "on"
    if visit.accepts_json:
        return JSONResponse({"on": is_on})
    return visit.redirect(local_path(visit.field("back")), f"Single-letter keys are {'on' if is_on else 'off'}.")


VIEW: Final = View("home", "Home", "/", "h", (get("/", show_home), post("/letter-keys", switch_letter_keys)))
