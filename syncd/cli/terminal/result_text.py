"""Format the text of a result for a terminal.

Law, tested: text of a note cannot control the terminal that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, Final, Literal

from index.names import pluralize
from index.text.hidden_characters import escape_hidden, format_escape
from syncd.cli.terminal.text_width import hang_indent, pad, width
from syncd.notes.timestamps import zoned_time

BOLD, DIM, CYAN, RESET = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"
GREEN, YELLOW, RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
# Fields that scripts may rely on.
HEALTH = ("ready", "pending", "generation", "captures", "vault", "defects", "degraded")
# What happened to a note, in words, by the kind of the event.
EVENT_VERBS: Final[Mapping[str, str]] = {
    "create": "created",
    "update": "changed",
    "delete": "deleted",
    "moved": "moved",
    "edit": "changed outside Memex",
    "removed": "deleted outside Memex after this time",
    "commit": "committed",
    "promote": "promoted",
    "unpromote": "moved back to the inbox",
    "merge": "appended",
    "dismiss": "dismissed",
    "expire": "expired",
    "unarchive": "unarchived",
    "apply": "applied",
    "unapply": "taken back",
}
UNRECORDED: Final = frozenset({"edit", "removed"})  # neither Memex nor Git recorded these events
NEVER_KEPT: Final = "Memex keeps no version of a note from before its own additions"
SNIPPET = 280  # characters of a passage, about three lines
_PAGE_OR_LINE_START = re.compile("[\f\r]")
_BLOCK_MARKS = re.compile(r"[ \t]*(?:>[ \t]?)*(#{1,6}[ \t]+|[-*+][ \t]+(?:\[.\][ \t]+)?)?")
# Code, which keeps its marks, or a pair of marks around text: a == b, f(**kwargs) and __init__ have none.
_EMPHASIS = re.compile(
    r"(?<!`)(`+)(?!`).{1,1000}?(?<!`)\1(?!`)"
    r"|(?<![A-Za-z0-9=*!<>])(\*\*|==)(?=[^\s=])((?:(?!\2).){1,300})(?<=[^\s=])\2(?![A-Za-z0-9=])"
)
_FENCES = ("```", "~~~")
_RULE = "|-=:*_ "  # characters of a line between parts or rows
_STYLE = re.compile("(\x1b\\[[0-9]{1,2}m)")
_OUR_STYLES = frozenset({BOLD, DIM, CYAN, RESET, GREEN, YELLOW, RED})


def sanitize(text: str) -> str:
    """Replace each character that controls a terminal, or hides text, by an escape."""
    return _PAGE_OR_LINE_START.sub(lambda match: format_escape(match[0]), escape_hidden(text.replace("\r\n", "\n")))


def sanitize_styled(text: str) -> str:
    """Sanitize a text, but keep the styles of `colorize`."""
    return "".join(part if part in _OUR_STYLES else sanitize(part) for part in _STYLE.split(text))


def line(text: str, longest: int = SNIPPET) -> str:
    """Return `text` on one line, cut at `longest` characters."""
    flat = " ".join(sanitize(text).split())
    return flat if len(flat) <= longest else flat[: longest - 1].rstrip() + "…"


def flatten_passage(text: str, heading: str) -> str:
    """Return a passage of Markdown on one line, without most of its marks and without the last part of `heading` if it begins with that.

    A dot stands between headings, list items and what follows them."""
    parts: list[str] = []
    mark, apart, fence = "", False, ""
    for raw in text.splitlines():
        marks = None if fence else _BLOCK_MARKS.match(raw)
        bare = raw[marks.end() :].strip() if marks else raw.lstrip("> \t").rstrip()
        if bare.startswith(fence or _FENCES):
            apart, fence = True, "" if fence else bare[:3]
            continue
        if not bare.strip("" if fence else _RULE):
            apart = True
            continue
        bare = bare if fence else _EMPHASIS.sub(lambda match: match[3] or match[0], bare)
        before, mark = mark, (marks[1] or "" if marks else "")
        if mark.startswith("#") and not parts and bare.rstrip("# ") == heading.rpartition(" > ")[2]:
            mark = ""
            continue
        dotted = mark or (before and (apart or before.startswith("#")))
        parts.append(f"· {bare}" if parts and dotted else bare)
        apart = False
    return " ".join(parts)


def format_move(entry: Mapping[str, Any]) -> list[str]:
    """Format the path of a capture and where it went, or the note to which its change was applied, then the details."""
    way = "applied to" if entry.get("applied") else "→"
    return [f"{line(entry['source'], 200)} {way} {line(entry['target'], 200)}", *format_move_details(entry)]


def format_move_details(entry: Mapping[str, Any]) -> list[str]:
    """Format what a move did to links, and what a person must do, as indented lines; none if there is nothing to say."""
    lines = []
    if relinked := entry.get("relinked"):
        lines.append(f"  links kept in {len(relinked):,} other file{'s' if len(relinked) > 1 else ''}")
    for name, words in (("lost", "broken link in {0}: {1}"), ("mentions", "change this manually in {0}: {1}")):
        lines += [f"  {words.format(*(line(part, 200) for part in pair))}" for pair in entry.get(name, ())[:10]]
    for name, words in (
        ("left_out", "not committed, because it has edits of yours: {}"),
        ("unread", "could not be read, so its links are unchanged: {}"),
    ):
        lines += [f"  {words.format(line(path, 200))}" for path in entry.get(name, ())[:10]]
    return lines


def format_links(note: Mapping[str, Any]) -> str:
    """Format the links of a note, then the notes that link to it."""
    shown = [
        f"→ {line(link['path'], 200)}" if link["path"] else f"→ {line(link['target'], 200)}  (no such note)"
        for link in note["links"]
    ]
    shown += [f"← {line(source['path'], 200)}" for source in note["backlinks"]]
    return "\n".join(dict.fromkeys(shown)) or "no links"


def colorize(text: str, style: str, color: bool) -> str:
    """Return `text` in a style, if `color` is true."""
    return f"{style}{text}{RESET}" if color and text else text


def format_hits(results: Sequence[Mapping[str, Any]], *, color: bool = False, cells: int | None = None) -> str:
    """Format search hits: score, path and heading, then the passage, wrapped to `cells` cells or on one line."""
    blocks = []
    for hit in results:
        trail = line(hit["heading"], 100)
        head = colorize(line(hit["path"], 200), BOLD, color) + (
            f"  {colorize('# ' + trail, CYAN, color)}" if trail else ""
        )
        score = colorize(f"{hit['score']:.2f}", DIM, color)
        passage = line(flatten_passage(hit["chunk"], hit["heading"]))
        if hit.get("stale"):
            newer = f"superseded by {line(hit['successor'], 200)}" if hit.get("successor") else "superseded"
            head += f"  {colorize(newer, YELLOW, color)}"
        if hit.get("weak"):
            head += f"  {colorize('weak match', DIM, color)}"
        lines = hang_indent(" " * 6, passage, cells) if cells else [" " * 6 + passage]
        blocks.append("\n".join([f"{score}  {head}", *(lines if passage else ())]))
    return "\n".join(blocks) if blocks else "nothing found"


def format_diff(diff: Sequence[str] | None, *, color: bool, never_kept: bool = False) -> list[str]:
    """Format the lines of a difference; None = unknown. `never_kept`: it is an addition of Memex, which kept no text before it."""
    if diff is None:
        return [f"({NEVER_KEPT if never_kept else 'the old text is no longer kept, or is too long to compare'})"]
    styles = {"+": GREEN, "-": RED, "@": CYAN}
    return [colorize(sanitize(line), styles.get(line[:1], ""), color and line[:1] in styles) for line in diff]


def describe_additions(tools: Sequence[str]) -> str:
    """Return a sentence about what changed lines include besides a write."""
    return f"The lines include what Memex added after this write: {', '.join(tools)}."


def format_time(
    epoch_ms: int, zone: tzinfo | None = UTC, *, timespec: Literal["minutes", "seconds"] = "minutes"
) -> str:
    """Format a time for people."""
    # Not strftime: its %Y writes the year 1 with one digit.
    return zoned_time(epoch_ms, zone).replace(tzinfo=None).isoformat(" ", timespec)


def format_size(size: int) -> str:
    """Format a number of bytes: "900 bytes", "4.8 KiB", "1,200.0 MiB"."""
    if size < 1 << 10:
        return pluralize(size, "byte")
    return f"{size / (1 << 10):,.1f} KiB" if size < 1 << 20 else f"{size / (1 << 20):,.1f} MiB"


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = (), *, color: bool = False, longest: int = 100) -> str:
    """Format rows in columns of the needed width, each cell cut at `longest` characters; the last column is not padded."""
    texts = [[line(str(cell), longest) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*([list(head)] if head else []), *texts, strict=True)]
    lines = [_row(cells, widths) for cells in texts]
    return "\n".join([colorize(_row(head, widths), DIM, color), *lines] if head else lines)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(pad(cell, cells) for cell, cells in zip(cells, widths, strict=True)).rstrip()


def captures_table(records: Sequence[Mapping[str, Any]], zone: tzinfo | None = UTC, *, color: bool = False) -> str:
    """Format captures as a table, the latest change first."""
    rows = [
        (format_time(record.get("updated_at") or record["created_at"], zone), record["id"], record["path"])
        for record in records
    ]
    return table(rows, ("changed", "id", "path"), color=color) if rows else "no captures yet"


def format_key_state(key: Mapping[str, Any], now_ms: int) -> str:
    """Format the state of a key: revoked, expired or active, with the ends of the key and of its old secret."""
    ends, old = key.get("expires_at"), key.get("old_until")
    if key.get("revoked_at"):
        return "revoked"
    if ends and ends <= now_ms:
        return f"expired {format_time(ends, None)}"
    state = f"until {format_time(ends, None)}" if ends else "active"
    return state + (f", old secret until {format_time(old, None)}" if old and old > now_ms else "")


def format_index_report(report: Mapping[str, Any]) -> str:
    """Format the report of an index run: `+2 ~1 -0 !1`, then counts and seconds."""
    counts = f"+{report['added']} ~{report['modified']} -{report['removed']} !{report['failed']}"
    moved = f" >{report['moved']}" if report["moved"] else ""
    chunks = f"{pluralize(report['chunks'], 'chunk')}, {report['embedded']} embedded, {report['reused']} reused"
    return f"{counts}{moved}  ({report['unchanged']} unchanged; {chunks}; {report['seconds']:.1f} s)"


def format_check_report(report: Mapping[str, Any]) -> str:
    """Format the report of a deep check: `1,200 notes checked, 2 repaired`."""
    failed = f", {report['failed']} could not be read; to list them: memex status" if report["failed"] else ""
    return f"{pluralize(report['checked'], 'note')} checked, {report['mended']:,} repaired{failed}"


def progress_bar(stage: str, done: int, total: int, width: int) -> str:
    """Format a progress bar that fits `width`."""
    label = f"{stage} " if stage else ""
    counts = f" {done:,}/{total:,}" if total else f" {done:,}" if done else ""
    room = min(40, width - len(label) - len(counts) - 3)
    if not total or room < 4:
        return (label + counts.strip()).rstrip()[:width]
    full = room * min(done, total) // total
    return f"{label}[{'█' * full}{'·' * (room - full)}]{counts}"
