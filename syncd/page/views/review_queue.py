"""Show the review view: a card for a waiting capture with its suggestions, the queue, decisions in batches, and undo.

Laws, tested: a decision on a capture that changed after it was shown is refused, and both versions are shown; a text
that could not be saved is shown again; a step is undone once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from index.errors import Conflict, InvalidArgument, MemexError, NotFound
from index.names import pluralize
from syncd.changes.unified_diff import LineMatcher
from syncd.links.obsidian_url import obsidian_url
from syncd.page.web.failures import describe_failure
from syncd.page.web.sessions import UndoStep
from syncd.page.web.templates import excerpt, link, unpack_path
from syncd.page.web.text_comparison import Comparison, compare_texts
from syncd.page.web.view import View, Visit, get, parse_number, post

PATH: Final = "/review"
LIMIT: Final = 50  # captures in the queue
MORE: Final = 1_000  # with all of them; the most that the operation lists
STEPS: Final = 100  # most steps that can be undone
NAMED: Final = 5  # most failures in one message
CHANGED: Final = "The note changed while you edited it."
PROPERTIES_CHANGED: Final = "Only its properties changed while you edited it: save again."
ROOT: Final = "/"  # stands for the root of the vault
FREE_KEYS: Final = "abchimnqrstvwyz"  # each takes one suggestion; the other letters do something else
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")  # with its end
_LINE_END: Final = re.compile(r"\r\n|[\r\n]")


@dataclass(frozen=True, slots=True)
class DecisionKind:
    """Describes a decision on captures, by the operation that carries it out and the one that undoes it."""

    operation: str
    result: str  # the key of the answer that lists what was done
    word: str
    undo: str


PROMOTE: Final = DecisionKind("promote", "promoted", "Promoted", "unpromote")
DISMISS: Final = DecisionKind("review.dismiss", "archived", "Dismissed", "unarchive")


def show_review(visit: Visit) -> Response:
    """Show the card of the named capture; without a name, lead to the first one that waits."""
    listing = _list_waiting(visit)
    if not (path := visit.query_path("capture")) and listing["waiting"]:
        return visit.redirect(link(PATH, capture=listing["waiting"][0]["path"], **_queue(visit)))
    return _render(visit, listing, path)


def _queue(visit: Visit) -> dict[str, str]:
    """Return which part of the queue is shown, as values of an address: of one workspace, and whether all of it."""
    return {name: visit.query(name) or visit.field(name) for name in ("workspace", "all")}


def _list_waiting(visit: Visit) -> dict[str, Any]:
    queue = _queue(visit)
    return dict(visit.ask("review.list", limit=MORE if queue["all"] else LIMIT, workspace=queue["workspace"] or None))


def _render(visit: Visit, listing: Mapping[str, Any], path: str, *, status: int = 200, **failure: Any) -> Response:
    """Render the view with the card at `path`. `failure`: what a refused decision entered and saw, and why it was refused."""
    waiting = listing["waiting"]
    card = _read_card(visit, path) if path else None
    compared = visit.query_path("compare")
    values = {"mistake": (), "to": None, "seen": None, "taken": ()} | failure
    return visit.render(
        "review.html",
        status=status,
        listing=listing,
        card=card,
        path=path,
        next=find_next([capture["path"] for capture in waiting], path),
        compared=compared,
        comparison=_compare(visit, card, compared) if card and compared else None,
        changes=_compare_versions(card, *values["seen"]) if card and values["seen"] else None,
        folders=[] if visit.is_refresh else _list_folders(visit),
        step=_steps(visit)[-1] if _steps(visit) else None,
        queue=_queue(visit),
        workspaces=[] if visit.is_refresh else [row["name"] for row in visit.ask("workspace.list")],
        suggestions=list_suggestions(card) if card else [],
        root=ROOT,
        **values,
    )


def _read_card(visit: Visit, path: str) -> dict[str, Any] | None:
    """Return a waiting capture with its suggestions; None if it no longer waits."""
    try:
        card = dict(visit.ask("review.show", id=path))
    except NotFound:
        return None
    vault = visit.settings.vault
    card["agent"] = _find_author(visit, card["id"])
    return card | {"url": obsidian_url(vault.name or vault.path.name, card["path"])}


def _find_author(visit: Visit, id: str) -> str:
    """Return who captured a note, as the log knows it; "" if the log does not reach back that far."""
    entries = visit.ask("audit.list", id=id, after=0, limit=1)
    if not entries or entries[0]["kind"] != "create":
        return ""
    return str(
        entries[0]["name"] or entries[0]["key"] or {"cli": "you", "daemon": "Memex"}.get(entries[0]["surface"], "")
    )


def list_suggestions(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the suggested tags and links of a capture, each with the key that takes it; "" = there is no key left."""
    lists = [values for kind in ("tags", "links") if isinstance(values := card[f"suggested_{kind}"], list)]
    names = [name for values in lists for name in values if isinstance(name, str)]
    keys = [*FREE_KEYS, *[""] * len(names)]
    return list(zip(keys, dict.fromkeys(names), strict=False))


def _compare(visit: Visit, card: Mapping[str, Any], path: str) -> Comparison | None:
    """Compare the capture with another note, both as far as the capture is shown; None if the note is gone."""
    try:
        other = visit.ask("get", id=path, passages=False)["content"]
    except NotFound:
        return None
    if not card["more"]:
        return compare_texts(card["content"], other)
    return compare_texts(card["content"], other[: len(card["content"])], is_cut=True)


def _compare_versions(card: Mapping[str, Any], digest: str, was: str) -> Comparison | None:
    """Compare the capture as it was shown with the capture as it is now; None if nothing of it changed."""
    return None if digest == card["digest"] else compare_texts(was, card["content"], is_cut=bool(card["more"]))


def _list_folders(visit: Visit) -> list[str]:
    """Return the folders of the vault outside the inbox."""
    inbox = visit.settings.vault.inbox
    return [folder for folder in visit.ask("folders") if folder != inbox and not folder.startswith(f"{inbox}/")]


def find_next(paths: Sequence[str], path: str) -> str:
    """Return the path after this one in the queue, the first one after the last; "" if no other waits."""
    others = [other for other in paths if other != path]
    if path not in paths or not others:
        return others[0] if others else ""
    return paths[(paths.index(path) + 1) % len(paths)]


# Decisions


def promote(visit: Visit) -> Response:
    """Promote the picked captures; a card's capture with the suggestions that were taken."""
    return _decide(visit, PROMOTE, to=read_folder(visit), take=visit.fields("take") or None)


def dismiss(visit: Visit) -> Response:
    """Archive the picked captures."""
    return _decide(visit, DISMISS)


def read_folder(visit: Visit) -> str | None:
    """Return the folder that was chosen; None if the card's folder, or each capture's own, was left unchanged."""
    if pressed := visit.field("folder"):
        return unpack_path(pressed).removeprefix(ROOT)
    entered = visit.field("to").strip()
    if entered in ("", visit.field("goal")):
        return None
    return "" if entered == ROOT else entered


def _decide(visit: Visit, kind: DecisionKind, **arguments: Any) -> Response:
    # Each field names a picked capture as it was shown: by a digest and a packed path.
    parts = [value.partition(" ") for value in visit.fields("pick")]
    shown = {unpack_path(path): digest for digest, _, path in parts if path}
    here = unpack_path(visit.field("here"))
    if not shown:
        return visit.redirect(
            link(PATH, capture=here, **_queue(visit)), "Nothing was ticked: tick captures in the list, then decide."
        )
    result = visit.ask(kind.operation, ids=list(shown), shown=shown, **arguments)
    done, failed = result[kind.result], result["failed"]
    if done:
        sentence = describe_done(kind, done)
        _record_step(visit, UndoStep(sentence, kind.undo, {"ids": [entry["target"] for entry in done]}))
        visit.session.messages.append(sentence)
    if failed:
        return _show_failed(visit, failed, arguments.get("to"), shown)
    gone = {entry["source"] for entry in done}
    ways = [path for path in (here, unpack_path(visit.field("next"))) if path and path not in gone]
    return visit.redirect(link(PATH, capture=ways[0] if ways else "", **_queue(visit)))


def describe_done(kind: DecisionKind, done: Sequence[Mapping[str, Any]]) -> str:
    """Describe in a message what was done, and which links did not follow."""
    applied = [entry for entry in done if entry.get("applied")]
    moved = [entry for entry in done if not entry.get("applied")]
    parts = [
        f"{word}: `{entries[0]['target']}`" if len(entries) == 1 else f"{word} {len(entries):,} {things}"
        for word, entries, things in ((kind.word, moved, "captures"), ("Applied", applied, "changes"))
        if entries
    ]
    for name, what in (
        ("relinked", "link updated in|links updated in"),
        ("left_out", "not committed, because you edited it:|not committed, because you edited them:"),
        ("unread", "links could not be updated in|links could not be updated in"),
    ):
        if paths := [path for entry in done for path in entry[name]]:
            words = what.split("|")[len(paths) > 1]
            parts.append(f"{words} {pluralize(len(paths), 'note')}" if name == "relinked" else _name(words, paths))
    if lost := [pair for entry in done for pair in entry["lost"]]:
        parts.append(_name("broken links in", [path for path, _ in lost]))
    return "; ".join(parts) + "."


def _name(words: str, paths: Sequence[str]) -> str:
    more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
    return f"{words} {', '.join(f'`{path}`' for path in paths[:NAMED])}{more}"


def _show_failed(
    visit: Visit, failed: Sequence[Mapping[str, Any]], to: str | None, shown: Mapping[str, str]
) -> Response:
    """Show why decisions were refused, with the card of the first such capture: as it was `shown`, and as it is now."""
    path = str(failed[0]["id"])
    reasons = [describe_refusal(entry) for entry in failed[:NAMED]]
    if len(failed) > NAMED:
        reasons.append(f"and {pluralize(len(failed) - NAMED, 'more capture')}")
    is_card = visit.fields("shown") and path == unpack_path(visit.field("here"))
    seen = (shown[path], visit.field("shown")) if is_card else None
    failure: dict[str, Any] = {"mistake": reasons, "to": to, "seen": seen, "taken": visit.fields("take")}
    return _render(visit, _list_waiting(visit), path, status=409, **failure)


def describe_refusal(failure: Mapping[str, Any]) -> str:
    """Describe why a capture could not be promoted or dismissed, and what to do."""
    error = failure["error"]
    if target := (error.get("details") or {}).get("target"):
        return f"`{target}` already exists, and Memex does not overwrite it: choose another folder."
    return f"`{failure['id']}`: {excerpt(error['message'], 300).rstrip('.')}."


# Undo


def _steps(visit: Visit) -> list[UndoStep]:
    return visit.session.steps.setdefault("review", [])


def _record_step(visit: Visit, step: UndoStep) -> None:
    steps = _steps(visit)
    steps.append(step)
    del steps[:-STEPS]


def undo(visit: Visit) -> Response:
    """Undo the last step of this browser, unless it was undone already or another one came after it."""
    steps = _steps(visit)
    with visit.session.lock:  # a second press, or another tab, must not take the step too
        if not steps or steps[-1].id != visit.field("step"):
            return visit.redirect(
                link(PATH, **_queue(visit)),
                "Nothing was undone: that step is undone already, or another one came after it.",
            )
        step = steps.pop()
    try:
        result = visit.ask(step.operation, **step.arguments)
    except (Conflict, NotFound) as error:
        return visit.redirect(link(PATH, **_queue(visit)), f"Nothing was undone: {error.message}.")
    except MemexError:  # the daemon may be gone: the step can be undone later
        steps.append(step)
        raise
    if step.operation == "undo":
        reasons = [f"`{entry['path']}`: {entry['reason']}" for entry in result["skipped"]]
        back = [entry["path"] for entry in result["done"]]
    else:
        reasons = [describe_refusal(entry) for entry in result["failed"]]
        back = [entry["target"] for entry in result["returned"]]
        if again := [entry["id"] for entry in result["failed"] if entry["error"]["retryable"]]:
            steps.append(UndoStep(step.sentence, step.operation, {"ids": again}))
    sentence = f"{_name('Undone:', back)}." if back else "Nothing was undone."
    return visit.redirect(
        link(PATH, capture=back[0] if back else "", **_queue(visit)), " ".join([sentence, *reasons[:NAMED]])
    )


# Editing


def show_editor(visit: Visit) -> Response:
    """Show the text of a capture in a form."""
    path = visit.query_path("capture")
    note = visit.ask("get", id=path, passages=False)
    return _render_editor(visit, path, note["content"], version=note["version"], shown=note["content"])


def _render_editor(visit: Visit, path: str, text: str, **values: Any) -> Response:
    defaults = {"mistake": "", "comparison": None, "status": 200}
    return visit.render("review_edit.html", path=path, text=text, queue=_queue(visit), **(defaults | values))


def save(visit: Visit) -> Response:
    """Save the text of a capture, if nobody changed it since it was shown; else show both texts."""
    path, shown = unpack_path(visit.field("here")), visit.field("shown")
    text = visit.field("text")
    if _with_lf(text) == _with_lf(shown):
        return visit.redirect(link(PATH, capture=path, **_queue(visit)), "The text is unchanged.")
    try:
        version = parse_version(visit.field("version"))
        text = keep_line_ends(text, visit.ask("get", id=path, passages=False)["content"])
        saved = visit.ask("updatenote", id=path, text=text, version=version)
    except MemexError as error:
        return _show_unsaved(visit, path, text, error)
    sentence = f"Saved `{saved['path']}`."
    if saved["undo"]:
        _record_step(visit, UndoStep(sentence, "undo", {"id": saved["undo"]}))
    return visit.redirect(link(PATH, capture=saved["path"], **_queue(visit)), sentence)


def parse_version(text: str) -> int:
    """Return the version of the note that was edited. Raises InvalidArgument: without it, a change would be overwritten."""
    if (version := parse_number(text)) is None:
        raise InvalidArgument("the form does not name the version that was edited, so nothing was saved")
    return version


def keep_line_ends(text: str, before: str) -> str:
    """Return the text of a form, whose line ends browsers send as CRLF, with the line ends of its note, `before`.

    An unchanged line keeps its end, and another one gets the end that most lines have, as do lines whose comparison would
    take too long."""
    ends = _LINE_END.findall(before)
    usual = max(("\n", "\r\n", "\r"), key=ends.count)
    if ends.count(usual) == len(ends):
        return _with_lf(text).replace("\n", usual)
    kept, lines = _LINE.findall(before), _LINE.findall(_with_lf(text))
    ended = [line.replace("\n", usual) for line in lines]
    for start, other, count in _match_lines(lines, [_with_lf(line) for line in kept]):
        ended[start : start + count] = kept[other : other + count]
    return "".join(ended)


def _match_lines(lines: Sequence[str], others: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield runs of equal lines: where each begins in `lines` and in `others`, and its length.

    The equal lines at the beginning and at the end need no comparison of each line with each other one."""
    shorter = min(len(lines), len(others))
    head = next((n for n in range(shorter) if lines[n] != others[n]), shorter)
    tail = next((n for n in range(shorter - head) if lines[-1 - n] != others[-1 - n]), shorter - head)
    yield 0, 0, head
    matcher = LineMatcher(lines[head : len(lines) - tail], others[head : len(others) - tail])
    yield from ((head + start, head + other, count) for start, other, count in matcher.get_matching_blocks())
    yield len(lines) - tail, len(others) - tail, tail


def _with_lf(text: str) -> str:
    return _LINE_END.sub("\n", text)


def _show_unsaved(visit: Visit, path: str, text: str, error: MemexError) -> Response:
    """Show a text that could not be saved, with the note's text if that differs from what was edited."""
    failure = describe_failure(error)
    mistake, comparison = f"{failure.sentence.rstrip('.')}. {failure.advice}", None
    shown, version = visit.field("shown"), visit.field("version")
    try:
        now = visit.ask("get", id=path, passages=False)
    except MemexError:
        pass  # the form keeps the text; the daemon may be gone, or the capture
    else:
        if _with_lf(now["content"]) != _with_lf(shown):
            mistake, comparison = CHANGED, compare_texts(now["content"], text)
        elif isinstance(error, Conflict):
            is_new = parse_number(version) != now["version"]
            mistake = PROPERTIES_CHANGED if is_new else f"{failure.sentence.rstrip('.')}."
        shown, version = now["content"], now["version"]
    values = {"mistake": mistake, "comparison": comparison, "version": version, "shown": shown}
    return _render_editor(visit, path, text, status=failure.status, **values)


VIEW: Final = View(
    "review",
    "Review",
    PATH,
    "r",
    (
        get(PATH, show_review),
        get(f"{PATH}/edit", show_editor),
        post(f"{PATH}/promote", promote),
        post(f"{PATH}/dismiss", dismiss),
        post(f"{PATH}/edit", save),
        post(f"{PATH}/undo", undo),
    ),
)
