"""Show the shares of a workspace: what its agents read of the vault; each change is previewed before it is made."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from index.errors import InvalidArgument, NotFound, ResourceExhausted
from syncd.page.web.failures import describe_failure
from syncd.page.web.templates import link, unpack_path
from syncd.page.web.view import Visit, get, post

PATH: Final = "/clients/shares"
NEVER: Final = "share.never"
MOST: Final = 2_000  # paths in one list


def show_shares(visit: Visit) -> Response:
    """Show what is shared with a workspace, what its agents can read now, and what is never shared."""
    return _render(visit, visit.query("workspace") or "default")


def _render(visit: Visit, workspace: str, *, status: int = 200, mistake: str = "", path: str = "") -> Response:
    if workspace not in [row["name"] for row in visit.ask("workspace.list")]:
        raise NotFound(f"there is no workspace {workspace[:200]!r}")
    listing = visit.ask("share.list", workspace=workspace)
    entries = listing[0]["entries"] if listing else []
    inbox = visit.settings.vault.inbox
    return visit.render(
        "shares.html",
        status=status,
        mistake=mistake,
        workspace=workspace,
        entered=path,
        entries=entries,
        # It reads every shared note, so a live region does not ask for it.
        preview=visit.ask("share.preview", workspace=workspace) if entries and not visit.is_refresh else None,
        folders=[name for name in visit.ask("folders") if name != inbox and not name.startswith(f"{inbox}/")],
        never=read_never(visit),
        most=MOST,
    )


def read_never(visit: Visit) -> dict[str, Any]:
    """Return the setting `share.never` with which the daemon runs, with its origin."""
    rows = visit.ask("settings.list")["settings"]
    row = next(row for row in rows if row["name"] == NEVER)
    return {"patterns": row["value"] or [], "origin": row["origin"]}


def _query_workspace(visit: Visit) -> str:
    """Return the workspace that the address of a preview names. Raises InvalidArgument if it names none."""
    if workspace := visit.query("workspace"):
        return workspace
    raise InvalidArgument("the address names no workspace; begin at Clients")


def preview_add(visit: Visit) -> Response:
    """Show exactly what agents could read if a folder or note were shared, and change nothing."""
    workspace, path = _query_workspace(visit), visit.query_path("path")
    try:
        preview = visit.ask("share.preview", workspace=workspace, paths=[path])
    except InvalidArgument as error:
        return _render(visit, workspace, status=400, mistake=error.message, path=path)
    return visit.render("share_add.html", workspace=workspace, path=path, preview=preview, most=MOST)


def add(visit: Visit) -> Response:
    """Share a folder or note with a workspace; a path that can't be shared stays in the form."""
    workspace, path = visit.field("workspace"), unpack_path(visit.field("path"))
    try:
        visit.ask("share.add", workspace=workspace, paths=[path])
    except (InvalidArgument, ResourceExhausted) as error:
        return _render(visit, workspace, status=describe_failure(error).status, mistake=error.message, path=path)
    return visit.redirect(
        link(PATH, workspace=workspace),
        f"Shared `{path}` with {workspace}. Agents find its notes as soon as they are indexed.",
    )


def preview_remove(visit: Visit) -> Response:
    """Show what agents could no longer read, and change nothing."""
    workspace, entry = _query_workspace(visit), visit.query_path("path")
    listing = visit.ask("share.list", workspace=workspace)
    entries = [shared for row in listing for shared in row["entries"]]
    if entry not in entries:
        raise NotFound(f"{entry[:200]!r} is not shared with this workspace; it may have been ended elsewhere")
    others = [other for other in entries if other != entry]
    covered = visit.ask("share.preview", workspace=workspace, paths=[entry])["shared"]
    left = visit.ask("share.preview", workspace=workspace, paths=others)["shared"] if others else []
    return visit.render(
        "share_remove.html",
        workspace=workspace,
        entry=entry,
        lost=[path for path in covered if path not in set(left)],
        left=len(left),
        most=MOST,
    )


def remove(visit: Visit) -> Response:
    """Stop sharing a folder or note with a workspace."""
    workspace, entry = visit.field("workspace"), unpack_path(visit.field("path"))
    try:
        visit.ask("share.remove", workspace=workspace, paths=[entry])
    except NotFound:
        return visit.redirect(link(PATH, workspace=workspace), f"`{entry}` is no longer shared with {workspace}.")
    return visit.redirect(
        link(PATH, workspace=workspace),
        f"Stopped sharing `{entry}` with {workspace}. Agents may keep what they have read.",
    )


ROUTES: Final = (
    get(PATH, show_shares),
    get(f"{PATH}/add", preview_add),
    post(f"{PATH}/add", add),
    get(f"{PATH}/remove", preview_remove),
    post(f"{PATH}/remove", remove),
)
