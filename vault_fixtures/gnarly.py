"""Build the gnarly vault: every shape that a file can have, in code because Git cannot hold many of them.

`SHAPES` states for each path what must become of it, so that the tests of the listing, the parser and the daemon
share one list. Law for every reader of the vault: it never blocks, follows no link, and leaves nothing out without a
reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from vault_fixtures.zoo import ZOO

Outcome: TypeAlias = Literal["indexed", "unreadable", "skipped", "ignored"]
Make: TypeAlias = Literal["file", "fifo", "socket", "link", "hard link", "sparse", "locked"]
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Shape:
    """One path, and the expected result of reading it."""

    path: str  # names that are not UTF-8 as Python has them: lone surrogates
    why: str
    data: bytes = b""
    outcome: Outcome = "indexed"  # unreadable: listed, but reading is refused to anyone but root
    reason: str = ""  # words that the reason of a skipped path has
    defect: str | None = ""  # the name that its defect must have; "" = none, None = the parser's own choice
    word: str = ""  # a word of its body that a search must find
    make: Make = "file"
    to: str = ""  # where a link leads


def _slug(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isascii() and letter.isalnum())


def _note_shape(path: str, why: str, body: str | bytes | None = None, defect: str | None = "") -> Shape:
    """Return a note that must be found by a word of its own."""
    word = f"w{_slug(why)[:40]}"
    raw = body if isinstance(body, bytes) else (body or "").encode()
    return Shape(path, why, raw + f"\n\n{word}\n".encode(), defect=defect, word=word)


def _skipped_shape(path: str, why: str, reason: str, make: Make = "file", to: str = "") -> Shape:
    return Shape(path, why, b"never to be read\n", "skipped", reason, make=make, to=to)


def _ignored_shape(path: str, why: str) -> Shape:
    return Shape(path, why, b"never to be seen\n", "ignored")


FRONTMATTER = tuple(
    Shape(f"Frontmatter/{beast.name}.md", f"frontmatter: {beast.name}", beast.front + f"\nBody of wzoo{_slug(beast.name)} here.\n".encode(), defect=beast.defect, word=f"wzoo{_slug(beast.name)}")
    for beast in ZOO
)  # fmt: skip

NAMES = (
    _note_shape("Names/caf\u00e9.md", "composed letters"),
    _note_shape("Names/cafe\u0301.md", "decomposed letters, a twin"),
    _note_shape("Names/Note.md", "a capital"),
    _note_shape("Names/note.md", "small letters, a twin"),
    _note_shape("Names/UPPER.MD", "an ending in capitals"),
    _note_shape("Names/" + "x" * 252 + ".md", "255 bytes"),
    _note_shape("Names/" + "名" * 84 + ".md", "255 bytes in three-byte letters"),
    _note_shape("Names/🌱 garden 👩‍👩‍👧.md", "emoji with joiners"),
    _note_shape("Names/日本語のノート？：.md", "full-width punctuation"),
    _note_shape("Names/a\nb.md", "a newline in the name"),
    _note_shape("Names/a\tb\x1b[31m.md", "control characters in the name"),
    _note_shape("Names/\u202egnp.md", "a bidi control in the name"),
    _note_shape("Names/#^[x]|y.md", "signs that break links"),
    _note_shape("Names/ leading and trailing .md", "blanks at the edges"),
    _note_shape("Names/-rf.md", "a dash in front"),
    _note_shape("Names/back\\slash.md", "a backslash"),
    _note_shape("Names/%2e%2e%2fetc.md", "percent signs"),
    _note_shape("Names/CON.md", "a device of another system"),
    _note_shape("Names/v1.2.md", "a dot in the name"),
    _note_shape('Names/it\'s "quoted" $HOME `x`.md', "quotes and shell signs"),
    _note_shape("Names/nb\u00a0sp.md", "a no-break space"),
    _note_shape("Names/note.md.md", "two endings"),
    _note_shape("Names/folder.md/inner.md", "a folder that looks like a note"),
    _note_shape("Names/Old~/kept.md", "a folder that ends like a backup"),
    _note_shape("Deep/" + "d/" * 100 + "deep.md", "a hundred folders deep"),
    Shape(os.fsdecode(b"Names/caf\xe9.md"), "a Latin-1 name", b"x\n", "skipped", "not UTF-8"),
    Shape(os.fsdecode(b"Names/\xff\xfe/inner.md"), "a folder whose name is no text", b"x\n", "ignored"),
    Shape("Names/no ending", "not a note", b"x\n", "ignored"),
)

ENCODINGS = (
    Shape("Encodings/empty.md", "an empty note"),
    Shape("Encodings/blank.md", "white space only", b" \n\t\n\n"),
    Shape("Encodings/no final newline.md", "no final newline", b"# Title\n\nwnofinalnewline", word="wnofinalnewline"),
    _note_shape("Encodings/crlf.md", "CRLF", b"# Title\r\n\r\nText\r\n"),
    _note_shape("Encodings/cr.md", "CR only", b"# Title\r\rText\r", None),
    _note_shape("Encodings/mixed.md", "mixed line ends", b"# Title\r\nText\nMore\r", None),
    _note_shape("Encodings/bom.md", "BOM", b"\xef\xbb\xbf# Title\n", None),
    Shape("Encodings/utf16.md", "UTF-16", "# Title\n\nutf16\n".encode("utf-16"), defect=None),
    _note_shape("Encodings/latin1.md", "Latin-1 bytes", b"# Caf\xe9\n", None),
    _note_shape("Encodings/surrogate.md", "a lone surrogate in the bytes", b"x \xed\xa0\x80 y\n", None),
    _note_shape("Encodings/nul.md", "NUL bytes", b"a\0b\n", None),
    _note_shape("Encodings/controls.md", "control characters", bytes(range(1, 32)) + b"\n", None),
    _note_shape("Encodings/separators.md", "Unicode line separators", "a\u2028b\u2029c\u0085d\n"),
    _note_shape("Encodings/private.md", "private use and noncharacters", "\ue000 \uffff \U0010ffff\n"),
    _note_shape("Encodings/hidden.md", "tags, bidi and zero-width letters", "a\u202eb\u200bc\U000e0041\n"),
    _note_shape("Encodings/zalgo.md", "a thousand accents on one letter", "e" + "\u0301" * 1000 + "\n"),
    Shape("Encodings/random.md", "bytes that are no text", bytes(range(256)) * 8, defect=None),
)

BODIES = (
    _note_shape("Bodies/huge line.md", "a line of a megabyte", "word " * 200_000),
    _note_shape("Bodies/many links.md", "40 KB of opening brackets", "[[" * 20_000),
    _note_shape("Bodies/word run.md", "a run that trips backtracking", "[[" + "a " * 20_000),
    _note_shape("Bodies/blanks.md", "100 KB of blanks", " " * 100_000 + "x"),
    _note_shape("Bodies/quotes.md", "a thousand nested quotes", ">" * 1_000 + " x", None),
    _note_shape("Bodies/lists.md", "hundreds of nested lists", "\n".join("  " * n + "- x" for n in range(300)), None),
    _note_shape("Bodies/emphasis.md", "50,000 stars", "*a " * 50_000),
    Shape(
        "Bodies/open fence.md",
        "an unclosed fence",
        b"# T\n\n```python\nwopenfence = 1\n# no end\n",
        defect=None,
        word="wopenfence",
    ),
    Shape(
        "Bodies/open comment.md",
        "an unclosed comment",
        b"wopencomment\n\n%% never closed\nhidden\n",
        defect=None,
        word="wopencomment",
    ),
    _note_shape("Bodies/open html.md", "an unclosed HTML comment", "text\n\n<!-- never closed", None),
    _note_shape("Bodies/html.md", "raw HTML", "<div>\n\n<script>alert(1)</script>\n\n</div>\n"),
    _note_shape("Bodies/table.md", "a table with piped links", "| a | b |\n| --- | --- |\n| [[X\\|y]] | `|` |\n"),
    _note_shape("Bodies/math.md", "math with hash signs", "$$\n#notatag [[no]]\n$$\n"),
    _note_shape(
        "Bodies/merge conflict.md",
        "conflict markers",
        "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n",
        "merge-conflict",
    ),
    _note_shape("Bodies/at the limit.md", "just below the size limit", b"x" * (4 * MEGABYTE)),
    _note_shape("Captures/default/Same id.md", "an id", "---\nid: 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11\n---\none"),
    _note_shape(
        "Captures/default/Same id copy.md",
        "the same id again",
        "---\nid: 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11\n---\ntwo",
        None,
    ),
    _note_shape("Captures/default/Bad id.md", "an id that is a path", "---\nid: ../../etc/passwd\n---\nx", "bad-id"),
    _note_shape("Captures/beside.md", "a note beside the workspaces"),
    _note_shape("Captures/Reports/2026-11-20.md", "a report"),
)

SYNC = (
    _note_shape(
        "Sync/Plan.sync-conflict-20261120-143205-ABCDEF7.md", "Syncthing's conflict copy", defect="conflict-copy"
    ),
    _note_shape(
        "Sync/Plan (Conflicted copy laptop 202611201432).md", "Obsidian Sync's conflict copy", defect="conflict-copy"
    ),
    _note_shape("Sync/Plan (Ada's conflicted copy 2026-11-20).md", "Dropbox's conflict copy", defect="conflict-copy"),
    _note_shape("Sync/Plan (1).md", "a name that a person may have chosen"),
    Shape("Sync/Away.md", "a note that iCloud has taken off this machine", b"", "skipped", "not downloaded"),
    _ignored_shape("Sync/.Away.md.icloud", "iCloud's placeholder"),
    _ignored_shape("Sync/.photo.png.icloud", "a placeholder of something else"),
    _ignored_shape("Sync/.syncthing.Plan.md.tmp", "Syncthing's temporary file"),
    _ignored_shape("Sync/~syncthing~Plan.md.tmp", "the same on Windows"),
    _ignored_shape("Sync/.#Plan.md", "an editor's lock"),
    _ignored_shape("Sync/Plan.md~", "an editor's backup"),
    _ignored_shape("Sync/.Plan.md.swp", "an editor's swap file"),
    _ignored_shape("Sync/4913", "vim's probe"),
    _ignored_shape("Sync/.hidden.md", "a hidden note"),
    _ignored_shape("conflict-files-obsidian-git.md", "obsidian-git's list of conflicts"),
    _ignored_shape(".obsidian/app.json", "settings"),
    _ignored_shape(".obsidian/plugins/x/README.md", "a plug-in's page"),
    _ignored_shape(".trash/Deleted.md", "the vault's bin"),
    _ignored_shape(".stversions/Plan.md", "an old version"),
    _ignored_shape("site/node_modules/x/README.md", "a package's page"),
)

KINDS = (
    _skipped_shape("Kinds/fifo.md", "a FIFO", "FIFO", "fifo"),
    _skipped_shape("Kinds/socket.md", "a socket", "socket", "socket"),
    _skipped_shape("Kinds/inner.md", "a link to a note", "link", "link", "../Names/v1.2.md"),
    _skipped_shape("Kinds/passwd.md", "a link out of the vault", "link", "link", "/etc/passwd"),
    _skipped_shape("Kinds/zero.md", "a link to an endless device", "link", "link", "/dev/zero"),
    _skipped_shape("Kinds/dangling.md", "a link to nothing", "link", "link", "nowhere.md"),
    _skipped_shape("Kinds/loop.md", "a link to itself", "link", "link", "loop.md"),
    _skipped_shape("Kinds/around", "a link to the folder above", "link", "link", ".."),
    _skipped_shape("Kinds/system", "a link to a folder outside", "link", "link", "/etc"),
    _skipped_shape("Kinds/sparse.md", "10 GiB with nothing in it", "too large", "sparse"),
    Shape(
        "Kinds/10 MB scalar.md",
        "frontmatter of 10 MB",
        b"---\nx: " + b"y" * (10 * MEGABYTE) + b"\n---\n",
        "skipped",
        "too large",
    ),
    Shape("Kinds/locked.md", "a file that nobody may read", b"# Locked\n", "unreadable", make="locked"),
    Shape("Kinds/second name.md", "a second name of a note", make="hard link", to="Names/v1.2.md"),
)

SHAPES: tuple[Shape, ...] = (*FRONTMATTER, *NAMES, *ENCODINGS, *BODIES, *SYNC, *KINDS)
TWINS = (("Names/Note.md", "Names/note.md"), ("Names/cafe\u0301.md", "Names/caf\u00e9.md"))


def build(root: Path, shapes: Sequence[Shape] = SHAPES) -> None:
    """Write the vault into `root`, and create `root` if it is missing. Skip shapes that this disk can't store."""
    root.mkdir(parents=True, exist_ok=True)
    for shape in shapes:
        with suppress(OSError):
            _make_file(root / shape.path, root, shape)


def existing_shapes(root: Path, shapes: Sequence[Shape] = SHAPES) -> list[Shape]:
    """Return the shapes that this disk could hold."""
    return [shape for shape in shapes if os.path.lexists(root / shape.path) or shape.path == "Sync/Away.md"]


def _make_file(path: Path, root: Path, shape: Shape) -> None:
    if shape.path == "Sync/Away.md":
        return  # only its placeholder is there
    path.parent.mkdir(parents=True, exist_ok=True)
    match shape.make:
        case "file":
            path.write_bytes(shape.data)
        case "locked":
            path.write_bytes(shape.data)
            path.chmod(0)
        case "fifo":
            os.mkfifo(path)
        case "socket":
            os.mknod(path, stat.S_IFSOCK | 0o600)
        case "link":
            path.symlink_to(shape.to)
        case "hard link":
            path.hardlink_to(root / shape.to)
        case "sparse":
            path.touch()
            os.truncate(path, 10 << 30)
