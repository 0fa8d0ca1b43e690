"""Show the reports view: the proposals of consolidation with the texts of their notes, ticks, what was done, and undo.

Law, tested: a tick is written into the report before anything is done, so the report stays the record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from index.errors import Conflict, NotFound
from index.names import pluralize
from syncd.page.web.failures import describe_failure
from syncd.page.web.templates import link
from syncd.page.web.text_comparison import compare_texts, patch_lines
from syncd.page.web.view import View, Visit, get, parse_number, post

PATH: Final = "/reports"
SHOWN: Final = 20  # proposals on a page, which keeps it small
ROWS: Final = 24  # most rows of a comparison
DONE: Final = 10  # proposals that were carried out
NAMES: Final[Mapping[str, str]] = {
    "merge-duplicates": "duplicate",
    "tag-merge": "tags",
    "relate": "relation",
    "summary": "summary",
    "archive": "unused",
}
SIDES: Final[Mapping[str, tuple[str, str]]] = {
    "merge-duplicates": ("Stays", "Goes to the archive"),
}


def show_reports(visit: Visit, *, status: int = 200, mistake: str = "", ticked: Collection[str] = ()) -> Response:
    """Show the view; `ticked`: the proposals of a refused form, whose ticks are kept."""
    listing = visit.ask("consolidate.list", carried=DONE, patch=True)
    done = set(visit.queries("done"))
    carried = [_show_changes(row) for row in listing["carried"]]
    proposals = listing["proposals"]
    first = (min(max(_page(visit), 1), max(1, -(-len(proposals) // SHOWN))) - 1) * SHOWN
    standing = next((row["key"] for row in listing["carried"] if not row["undone"]), "")
    return visit.render(
        "reports.html",
        status=status,
        mistake=mistake,
        ticked=ticked,
        proposals=[row | _texts(row) for row in proposals[first : first + SHOWN]],
        names=NAMES,
        total=len(proposals),
        first=first,
        page=first // SHOWN + 1,
        is_last=first + SHOWN >= len(proposals),
        unplaced=max(0, listing["waiting"] + listing["accepted"] - len(proposals)),
        scanned_at=listing["at"],
        report=listing["report"],
        problem=listing["problem"],
        fresh=[row for row in carried if row["key"] in done and not row["undone"]],
        carried=[row for row in carried if row["key"] not in done or row["undone"]],
        standing=standing,
    )


def _page(visit: Visit) -> int:
    """Return the number of the page that the address or a form of it names."""
    return parse_number(visit.query("page") or visit.field("page")) or 1


def _address(visit: Visit, **more: Any) -> str:
    """Return the address of the page from which a form was sent."""
    page = _page(visit)
    return link(PATH, page=page if page > 1 else "", **more)


def _show_changes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a proposal that was carried out, with the differences of its files as lines."""
    return {**row, "files": [file | {"lines": patch_lines(file.get("diff"))} for file in row["files"]]}


def _texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a proposal's notes: two of them compared, with the name of each side."""
    notes = row["notes"]
    sides = SIDES.get(row["kind"], ("First", "Second"))
    pair, is_cut = len(notes) == 2, any(note["more"] for note in notes)
    return {
        "comparison": compare_texts(notes[0]["text"], notes[1]["text"], is_cut=is_cut, most=ROWS) if pair else None,
        "sides": [f"{side}: {note['title']}" for side, note in zip(sides, notes, strict=False)],
        "changed": [note["title"] for note in notes if note["changed"]],
    }


def carry_out(visit: Visit) -> Response:
    """Carry out the ticked proposals."""
    return _answer(visit, visit.fields("tick"), "accepted")


def dismiss(visit: Visit) -> Response:
    """Dismiss one proposal, or the ticked ones."""
    return _answer(visit, visit.fields("key") or visit.fields("tick"), "dismissed")


def _answer(visit: Visit, keys: Sequence[str], answer: str) -> Response:
    if not keys:
        return visit.redirect(_address(visit), "Nothing was ticked: tick proposals, then decide.")
    try:
        result = visit.ask("consolidate.answer", answers=dict.fromkeys(keys, answer))
    except (Conflict, NotFound) as error:
        failure = describe_failure(error)
        return show_reports(visit, status=failure.status, mistake=f"{failure.sentence}. {failure.advice}", ticked=keys)
    visit.session.messages += describe_answers(result)
    done = [outcome["key"] for outcome in result["carried"] if outcome["done"]][:DONE]
    return visit.redirect(_address(visit, done=done))


def describe_answers(result: Mapping[str, Any]) -> list[str]:
    """Describe in messages what became of answered proposals."""
    messages = describe_outcomes(result["carried"])
    if result["dismissed"]:
        messages.append(f"Dismissed {pluralize(result['dismissed'], 'proposal')}; Memex does not ask again.")
    if result["problem"]:
        messages.append(f"Not done yet: {result['problem']}. Memex tries again by itself.")
    return messages or ["Nothing was carried out."]


def describe_outcomes(carried: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe in messages what was done."""
    return [f"{'Done' if outcome['done'] else 'Not done'}: {outcome['said']}." for outcome in carried]


def undo(visit: Visit) -> Response:
    """Undo a proposal that was carried out."""
    try:
        result = visit.ask("consolidate.undo", key=visit.field("key"))
    except (Conflict, NotFound) as error:
        failure = describe_failure(error)
        return show_reports(visit, status=failure.status, mistake=f"Not undone: {failure.sentence}.")
    return visit.redirect(_address(visit), f"Undone: {pluralize(len(result['changed']), 'file')} as before.")


def scan(visit: Visit) -> Response:
    """Scan the inbox now."""
    result = visit.ask("consolidate")
    visit.session.messages += describe_outcomes(result["carried"])
    news = pluralize(result["new"], "new proposal") if result["new"] else "nothing new"
    return visit.redirect(PATH, f"Scanned all workspaces: {news}.")


VIEW: Final = View(
    "reports",
    "Reports",
    PATH,
    "e",
    (
        get(PATH, show_reports),
        post(f"{PATH}/carry-out", carry_out),
        post(f"{PATH}/dismiss", dismiss),
        post(f"{PATH}/undo", undo),
        post(f"{PATH}/scan", scan),
    ),
)
