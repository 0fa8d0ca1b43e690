"""Decide by rules which paths are notes, ignored or forbidden, and form names that files can have.

Names are compared by how they look (`index.names.fold`), but a file is always opened by its exact bytes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence

from index.names import fold
from syncd.vault.instruction_files import is_instruction_stem

# Folders of other programs, and the note that obsidian-git writes into the root during a merge conflict.
_FOREIGN = frozenset({"node_modules", "conflict-files-obsidian-git.md"})
# Files that editors and sync programs leave beside a note while they save it.
_SAVING = re.compile(r"~syncthing~|.*(?:~|\.swp|\.tmp)\Z|4913\Z", re.DOTALL)
_PLACEHOLDER = re.compile(r"\.(.+)\.icloud\Z", re.DOTALL)
_TEMPORARY = re.compile(r"\.memex-[0-9a-f]{16}\.tmp\Z")

# Code points that HFS+ drops from names: `.g<U+200C>it` is `.git` there (git's own list).
_DROPPED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
# Control characters, line and paragraph separators, bidi controls, and the separator of another system.
_UNFIT = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\\\\]")
DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|\Z)", re.IGNORECASE)
NAME_BYTES, PATH_BYTES = 255, 1000
# Names that sync programs give to conflict copies.
CONFLICT_COPY = re.compile(
    r"""\.sync-conflict-\d{8}-\d{6}-[A-Z0-9]{7}(?=\.[^.]+$|$)               # Syncthing
    |\ \((?:[^()]*\ )?conflicted\ copy(?:\ [^()]*)?\)(?=\.[^.]+$|$)         # Obsidian Sync, Dropbox, Nextcloud
    |_conflict-\d{8}-\d{6}(?=\.[^.]+$|$)                                 # ownCloud
    |\ \(SFConflict\ [^()]+\)(?=\.[^.]+$|$)                               # Seafile
    |\ \[conflicted\](?=\.[^.]+$|$)                                      # pCloud""",
    re.IGNORECASE | re.VERBOSE,
)
HOLE = re.compile(r"\{([^{}]*)\}")
HOLES = ("title", "date", "source", "id")  # placeholders in a template for the name of a capture's note
TITLE_BYTES = 200  # out of 255: leaves room for a suffix and ".md"
TITLE_LENGTH = 80
SUFFIX = " note"  # added to a name that has a special meaning for a system or a program
_TIME = re.compile(r"(?<=\d):(?=\d\d)")  # 14:30 becomes 14.30
_UNSAFE = re.compile(
    r'[\\/:*?"<>|#^\[\]%\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff'
    "\U000e0000-\U000e007f]|[\ud800-\udfff]"
)
_BLANK = re.compile(r"\s+")


def is_utf8(text: str) -> bool:
    """Return whether `text` can be encoded as UTF-8; the name or the content of a file may contain other bytes."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def nearest_utf8_path(path: str) -> str:
    """Return `path`, or the nearest folder above it whose name is valid UTF-8; "" is the root."""
    while not is_utf8(path):
        path = path.rpartition("/")[0]
    return path


def to_printable(path: str) -> str:
    r"""Return `path` for people and JSON: bytes that are not UTF-8 become `\xe9`."""
    if is_utf8(path):
        return path
    raw = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", path).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")


def join(folder: str, name: str) -> str:
    """Return the path of `name` in `folder`; "" is the root."""
    return f"{folder}/{name}" if folder else name


def parent_folders(path: str) -> list[str]:
    """Return the folders above a path; "" is the vault."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:n]) for n in range(len(parts) + 1)]


def is_note(name: str) -> bool:
    """Return whether a file with this name is a Markdown note."""
    return name[-3:].lower() == ".md"


def is_ignored(path: str, *, folder: bool = False) -> bool:
    """Return whether a path is noise: hidden, of another program, or a temporary file.

    A `folder` is never temporary: a person's `Old~` or `x.tmp` may contain notes."""
    return (
        path.startswith(".")
        or "/." in path
        or (not folder and _SAVING.match(path[path.rfind("/") + 1 :]) is not None)
        or not _FOREIGN.isdisjoint(path.split("/"))
    )


def temporary_name(token: str) -> str:
    """Return the name of a file that Memex is writing; `token` is 16 hex digits."""
    return f".memex-{token}.tmp"


def is_temporary(name: str) -> bool:
    """Return whether a name comes from `temporary_name`: the cleanup removes no other files."""
    return _TEMPORARY.match(name) is not None


def name_behind_placeholder(name: str) -> str | None:
    """Return the real name of a note that iCloud replaced by a placeholder."""
    match = _PLACEHOLDER.match(name)
    return match[1] if match and is_note(match[1]) else None


def path_behind_placeholder(path: str) -> str:
    """Return the file that a placeholder at `path` stands for; `path` itself if it is not a placeholder."""
    folder, _, name = path.rpartition("/")
    match = _PLACEHOLDER.match(name)
    return join(folder, match[1]) if match else path


def placeholder_path(path: str) -> str:
    """Return the path of the placeholder for the note at `path`."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.icloud"


def find_collisions(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """Return groups of paths that differ only in letter case or Unicode form: other systems can't store both."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(fold(path), []).append(path)
    return sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)


def objection(path: str, *, reading: bool = False, new: bool = False) -> str:  # noqa: PLR0911 - a list of reasons
    """Return why Memex does not touch `path` ("" = it does): text that follows "the path … " in a message.

    Reading requires a path below the root and outside Git's folder; writing also forbids hidden and ignored paths;
    creating also requires a name that works on every system and in every tool."""
    if not path:
        return "is empty"
    if "\0" in path:
        return "contains a NUL"
    if not is_utf8(path):
        return "is not Unicode"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "must be relative to the vault, with one name between slashes"
        reason = (
            _git_objection(part)
            or ("" if reading else _hidden_objection(part))
            or (_name_objection(part) if new else "")
        )
        if reason:
            return reason
    if not reading and is_ignored(path):
        return "is ignored, so searches would not find a note there"
    if new and len(path.encode()) > PATH_BYTES:
        return f"is longer than {PATH_BYTES} bytes"
    return ""


def _git_objection(part: str) -> str:
    bare = part.translate(_DROPPED).casefold().rstrip(". ")
    return "leads into Git's own folder" if bare == ".git" or re.fullmatch(r"git~\d+", bare) else ""


def _hidden_objection(part: str) -> str:
    return "contains a hidden name" if part.translate(_DROPPED).startswith(".") else ""


def _name_objection(part: str) -> str:
    """Return why a new name is refused: it can't exist on some system, or has a special meaning."""
    if _UNFIT.search(part):
        return "contains a control character or a backslash"
    if part[0] in "- " or part[-1] in ". ":
        return "contains a name that starts with a dash or blank, or ends in a dot or blank"
    if DEVICE.match(part):
        return "contains the name of a Windows device"
    if len(part.encode()) > NAME_BYTES:
        return f"contains a name that is longer than {NAME_BYTES} bytes"
    return ""


def template_objection(template: str) -> str:
    """Return why this template can't make names ("" = it can): text that follows it in a message."""
    unknown = next((hole for hole in HOLE.findall(template) if hole not in HOLES), None)
    if unknown is not None:
        return f"contains the unknown placeholder {{{unknown}}}; use {', '.join(f'{{{hole}}}' for hole in HOLES)}"
    if "/" in template:
        return "must be a name without a folder"
    return "" if template.strip() else "must not be empty"


def compile_ignore_patterns(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for paths that a person wants to ignore.

    `Templates` or `*.excalidraw.md` means this name at any depth; with a slash inside or in front (`Notes/Old`,
    `/Templates`) the pattern starts at the root. Everything below an ignored folder is ignored. `*` and `?` match
    characters of one name; `**` as a name means any number of folders, at the end everything below, as in `.gitignore`.
    Brackets are literal, because names of notes contain them."""
    anywhere: list[str] = []
    rooted: list[str] = []
    for pattern in patterns:
        text = unicodedata.normalize("NFC", pattern.strip().rstrip("/"))
        if "/" in text:
            rooted.append(_path_regex(text.lstrip("/")))
        elif text:
            anywhere.append(_name_regex(text))
    if not anywhere and not rooted:
        return lambda _: False
    by_name = re.compile("|".join(anywhere) or r"(?!)", re.DOTALL)
    by_path = re.compile(f"(?:{'|'.join(rooted) or r'(?!)'})(?:/.*)?", re.DOTALL)

    def ignores(path: str) -> bool:
        path = unicodedata.normalize("NFC", path)
        return by_path.fullmatch(path) is not None or any(by_name.fullmatch(part) for part in path.split("/"))

    return ignores


def patterns_objection(patterns: Sequence[str]) -> str:
    """Return why one of these patterns can't match any path; "" = each can. A pattern that matches nothing protects nothing."""
    for pattern in patterns:
        if not pattern.strip():  # of an unset variable, for example: it is left out
            continue
        if not {"", ".", ".."}.isdisjoint(pattern.strip().rstrip("/").lstrip("/").split("/")):
            return (
                f"contains {pattern[:64]!r}, which matches no note: name a folder or note, or its path in the vault, such as "
                "`Private` or `Diary/**`"
            )
    return ""


def _path_regex(pattern: str) -> str:
    """Return the pattern of a path as a regular expression."""
    *folders, last = pattern.split("/")
    leading = "".join("(?:[^/]+/)*" if name == "**" else f"{_name_regex(name)}/" for name in folders)
    return leading + _name_regex(last)


def _name_regex(pattern: str) -> str:
    """Return a pattern as a regular expression whose wildcards stay within one name."""
    return "".join(_WILD.get(piece[:1]) or re.escape(piece) for piece in re.split(r"(\*+|\?)", pattern))


_WILD = {"*": "[^/]*", "?": "[^/]"}


def is_below(path: str, folders: Collection[str]) -> bool:
    """Return whether `path` is one of `folders` or below one; "" is the root. Pass a set when there are many."""
    if "" in folders or path in folders:
        return True
    cut = path.rfind("/")
    while cut > 0:
        if path[:cut] in folders:
            return True
        cut = path.rfind("/", 0, cut)
    return False


def folder_name(title: str) -> str:
    """Return `title` as a folder name for every file system and every kind of link; may be empty."""
    name = _UNSAFE.sub(" ", _TIME.sub(".", unicodedata.normalize("NFC", title)))
    name = _cut_name(_BLANK.sub(" ", name).strip(" .-~"))
    head, dot, ending = name.partition(".")
    return f"{head}{SUFFIX}{dot}{ending}" if DEVICE.match(name) else name


def file_name(title: str) -> str:
    """Return `title` as the base name of a note, without ".md"; may be empty.

    Every file system and every kind of link can express it, no coding agent takes the file for instructions, and
    nobody takes it for a conflict copy."""
    name = folder_name(title)
    while name != (plain := folder_name(CONFLICT_COPY.sub("", name))):
        name = plain
    return f"{_cut_name(name, len(SUFFIX))}{SUFFIX}" if is_instruction_stem(name) else name


def _cut_name(name: str, room: int = 0) -> str:
    """Return the beginning of `name` that fits into a file name, with `room` for this many ASCII characters after it.

    It ends with a whole word, unless that would cost half of it, as in scripts without blanks."""
    cut = name[: TITLE_LENGTH - room].encode()[: TITLE_BYTES - room].decode(errors="ignore")
    if cut[-1:].isalnum() and name[len(cut) : len(cut) + 1].isalnum():
        words = cut.rpartition(" ")[0]
        cut = words if len(words) > len(cut) // 2 else cut
    return cut.strip(" .-~")
