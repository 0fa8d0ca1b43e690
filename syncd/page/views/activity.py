"""Show the activity: the audit log with filters, what an entry changed, undo with a preview, and the check of the chain.

Law, tested: writes that came after the preview of an undo are left alone by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from starlette.responses import Response

from index.errors import Conflict, InvalidArgument, NotFound
from index.names import pluralize
from index.timings import now_ms
from syncd.notes.timestamps import zoned_time
from syncd.page.web.failures import describe_failure
from syncd.page.web.templates import link
from syncd.page.web.view import View, Visit, find_midnight, get, parse_number, post

ENTRIES: Final = 100  # of one page
NAMED: Final = 3  # most notes that a message names
UNDONE: Final = 500  # most files that a preview lists
PATHS: Final = 200  # most paths of each list below a check
ACTIVITY: Final = "/activity"
UNDO: Final = "/activity/undo"
SURFACES: Final[Mapping[str, str]] = {
    "mcp": "MCP",
    "rest": "REST",
    "cli": "a command",
    "daemon": "Memex itself",
    "file": "outside Memex",
}
VERBS: Final[Mapping[str, str]] = {
    "create": "created",
    "update": "changed",
    "delete": "deleted",
    "moved": "moved",
    "undone": "not written",
    "kept": "kept",
    "denied": "refused",
    "read": "read",
    "pruned": "pruned",
    "cut": "cut off",
}
WRITES: Final = frozenset({"create", "update", "delete"})
CALLERS: Final = frozenset({"mcp", "rest", "cli"})  # whose writes `memex undo` takes back


# The log


def show_activity(visit: Visit) -> Response:
    """Show a page of the log."""
    filters = {name: visit.query(name) for name in ("key", "tool", "surface", "workspace", "note", "request")}
    times = {name: parse_moment(visit.query(name), name) for name in ("since", "until")}
    before = parse_number(visit.query("before"))
    wanted = {("id" if name == "note" else name): value or None for name, value in filters.items()}
    entries = visit.ask("audit.list", **wanted, **times, before=before, limit=ENTRIES + 1)
    shown = entries[-ENTRIES:]
    query = filters | {name: _minute(at) for name, at in times.items()}
    return visit.render(
        "activity.html",
        **_choices(visit),
        filters=query,
        is_filtered=any(query.values()),
        days=group_by_day(shown[::-1], datetime.now().astimezone().date()),
        before=before,
        older=link(ACTIVITY, **query, before=shown[0]["seq"]) if len(entries) > ENTRIES else "",
        newest=link(ACTIVITY, **query),
        undo=link(UNDO, **{name: query[name] for name in ("key", "workspace", "since", "until")}),
        undo_call=link(UNDO, call=query["request"]) if any(map(_can_undo, shown)) else "",
        periods=list_periods(query),
    )


def _choices(visit: Visit) -> dict[str, Any]:
    """Return what the filters offer, with the names of the address, which may be gone."""
    agents = {key["name"] for key in visit.ask("key.list")} | {visit.query("key")}
    workspaces = {workspace["name"] for workspace in visit.ask("workspace.list")} | {visit.query("workspace")}
    return {"agents": sorted(agents - {""}), "workspaces": sorted(workspaces - {""}), "surfaces": SURFACES}


def list_periods(query: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Return links to usual times: a name, the address, and whether it is shown now."""
    starts = {"All": "", "Today": _minute(_midnight(0)), "7 days": _minute(_midnight(6))}
    return [
        (
            name,
            link(ACTIVITY, **{**query, "since": start, "until": ""}),
            (query["since"], query["until"]) == (start, ""),
        )
        for name, start in starts.items()
    ]


def group_by_day(entries: Iterable[Mapping[str, Any]], today: date) -> list[tuple[str, list[dict[str, Any]]]]:
    """Group entries, the newest first, by the local day of their time; return the title of each day, and its rows."""
    rows = [describe_entry(entry) for entry in entries]
    return [(_day_title(day, today), list(group)) for day, group in groupby(rows, lambda row: row["at"].date())]


def describe_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as the list shows it: its subject is the path, or without one the workspace."""
    who = entry["name"] or entry["key"] or {"cli": "you", "daemon": "Memex"}.get(entry["surface"], "")
    remarks = [
        entry["outcome"]
        if entry["outcome"] not in ("done", "") and entry["kind"] in (*WRITES, "denied", "undone")
        else "",
        f"undoes {entry['undoes']}" if entry["undoes"] and entry["kind"] in WRITES else "",
    ]
    return {
        "seq": entry["seq"],
        "at": zoned_time(entry["at"]),
        "verb": VERBS.get(entry["kind"], entry["kind"]),
        "who": who or SURFACES.get(entry["surface"], entry["surface"]),
        "tool": entry["tool"],
        "subject": entry["path"] or entry["workspace"] or "the log",
        "is_path": bool(entry["path"]),
        "remark": ", ".join(filter(None, remarks)),  # what is unusual about it
    }


def _day_title(day: date, today: date) -> str:
    names = {today: "Today", today - timedelta(days=1): "Yesterday"}
    return names.get(day, f"{day:%A, %Y-%m-%d}")


# One entry


def show_entry(visit: Visit) -> Response:
    """Show an entry with all of its fields and what it changed."""
    seq = parse_number(visit.query("seq"))
    if seq is None:
        raise InvalidArgument("the address names no entry, as in /activity/entry?seq=12")
    entry = visit.ask("audit.show", entry=seq)
    return visit.render(
        "activity_entry.html",
        entry=entry,
        row=describe_entry(entry),
        surface=SURFACES.get(entry["surface"], entry["surface"]),
        counts=count_lines(entry["diff"] or ()),
        call=link(ACTIVITY, request=entry["request"]) if entry["request"] else "",
        undo=link(UNDO, call=entry["request"]) if _can_undo(entry) else "",
    )


def _can_undo(entry: Mapping[str, Any]) -> bool:
    """Return whether the entry is a write of a call, which an undo may take back."""
    return bool(entry["kind"] in WRITES and entry["surface"] in CALLERS and entry["workspace"] and entry["request"])


def count_lines(diff: Iterable[str]) -> tuple[int, int]:
    """Return the number of added and of removed lines of a difference."""
    lines = [line[:1] for line in list(diff)[2:]]  # without the names of the files
    return lines.count("+"), lines.count("-")


# Undo


def show_undo(visit: Visit) -> Response:
    """Show what an undo would do: of a call, or of everything that agents wrote within a time."""
    call = visit.query("call")
    values = {name: visit.query(name) for name in ("key", "workspace", "since", "until")}
    wanted: dict[str, Any] = {}
    plan: Mapping[str, Any] | None = None
    problem, status = "", 200
    try:
        if call:
            wanted = {"id": call}
        elif values["since"]:
            wanted = parse_period(values)
            values |= {name: _minute(wanted[name]) for name in ("since", "until") if values[name]}
        plan = visit.ask("undo", **wanted, dry_run=True) if wanted else None
    except (NotFound, Conflict, InvalidArgument) as error:
        problem, status = error.message, describe_failure(error).status
    return visit.render(
        "activity_undo.html",
        status=status,
        **_choices(visit),
        call=call,
        values=values,
        wanted=wanted,
        plan=plan,
        most=UNDONE,
        problem=problem,
        today=_minute(_midnight(0)),
    )


def parse_period(values: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of an undo by time; it ends now at the latest, so that later writes are left alone."""
    now = now_ms() + 1
    until = min(parse_moment(values["until"], "until") or now, now)
    since = parse_moment(values["since"], "since")
    return {"key": values["key"] or None, "workspace": values["workspace"] or None, "since": since, "until": until}


def undo(visit: Visit) -> Response:
    """Carry out an undo that a preview showed."""
    if call := visit.field("id"):
        wanted: dict[str, Any] = {"id": call}
    else:
        times = {name: parse_number(visit.field(name)) for name in ("since", "until")}
        if None in times.values():
            raise InvalidArgument("the form names no call and no time, so nothing was undone")
        wanted = {"key": visit.field("key") or None, "workspace": visit.field("workspace") or None, **times}
    result = visit.ask("undo", **wanted)
    path = link(ACTIVITY, request=result["undo"]) if result["undo"] else ACTIVITY
    return visit.redirect(path, describe_undo(result))


def describe_undo(result: Mapping[str, Any]) -> str:
    """Return what an undo did as a message, which names the first notes that were left alone, with the reasons."""
    done, skipped = len(result["done"]), result["skipped"]
    text = f"{pluralize(done, 'file')} {'was' if done == 1 else 'were'} undone." if done else "Nothing was undone."
    if skipped:
        named = "; ".join(f"`{step['path']}`: {step['reason']}" for step in skipped[:NAMED])
        more = f"; and {len(skipped) - NAMED:,} more" if len(skipped) > NAMED else ""
        text += f" {len(skipped):,} left alone: {named}{more}."
    return text


# The check of the chain


def show_check(visit: Visit) -> Response:
    """Show how the log is checked and, if the address asks for it, the result of a check now."""
    facts = visit.ask("status").get("audit") or {}
    head, result, problem, status = visit.query("head"), None, "", 200
    if visit.query("run"):
        try:
            result = visit.ask("audit.verify", head=head or None)
        except InvalidArgument as error:
            problem, status = error.message, 400
    return visit.render(
        "activity_check.html", status=status, facts=facts, head=head, result=result, problem=problem, most=PATHS
    )


# Values of an address


def parse_moment(text: str, name: str) -> int | None:
    """Return a local date or time as epoch milliseconds; None for "". Raises InvalidArgument."""
    if not text:
        return None
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise InvalidArgument(f"{name} is not a time, such as 2026-11-20T14:32: {text[:64]!r}") from None


def _minute(at: int | None) -> str:
    """Format epoch milliseconds as an input element takes a local time."""
    return "" if at is None else zoned_time(at).replace(tzinfo=None).isoformat(timespec="minutes")


def _midnight(days_ago: int) -> int:
    """Return the beginning of a day in epoch milliseconds."""
    return find_midnight(datetime.now(), days_ago)  # noqa: DTZ005 - the local day


VIEW: Final = View(
    "activity",
    "Activity",
    ACTIVITY,
    "a",
    (
        get(ACTIVITY, show_activity),
        get("/activity/entry", show_entry),
        get(UNDO, show_undo),
        post(UNDO, undo),
        get("/activity/check", show_check),
    ),
)
