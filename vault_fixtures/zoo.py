"""List frontmatter that has broken other programs (the zoo), each with the result that Memex must give.

Law for every reader: whatever is between the fences, the reader finds the body, keeps the file's bytes, and does not take
long."""

from __future__ import annotations

from dataclasses import dataclass

BAD, OPEN, LARGE = "bad-frontmatter", "unclosed-frontmatter", "frontmatter-too-large"
LIMIT = 64 * 1024  # bytes of frontmatter that are still read


@dataclass(frozen=True, slots=True)
class Beast:
    """A note's frontmatter. `defect`: the name it must be listed under, "" = none, None = the reader's own choice."""

    name: str
    front: bytes  # with both fences, as far as there are any
    defect: str | None = ""


def _fenced_beast(name: str, block: str | bytes, defect: str | None = "") -> Beast:
    raw = block if isinstance(block, bytes) else block.encode()
    return Beast(name, b"---\n" + raw + b"\n---\n", defect)


def _nested_lines(pattern: str, count: int) -> str:
    return "\n".join(pattern.format(n=n, m=n - 1) for n in range(1, count))


BOMBS = (
    _fenced_beast("alias bomb", "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + _nested_lines("a{n}: &a{n} [" + ", ".join(["*a{m}"] * 9) + "]", 10), BAD),
    _fenced_beast("merge key bomb", "m0: &m0 {{k: v}}\n".replace("{{", "{").replace("}}", "}") + _nested_lines("m{n}: &m{n} {{<<: [" + ", ".join(["*m{m}"] * 9) + "]}}", 8), BAD),
    _fenced_beast("50,000 brackets", "x: " + "[" * 50_000, BAD),
    _fenced_beast("20,000 brackets below the limit", "x: " + "[" * 20_000, BAD),
    _fenced_beast("20,000 closed brackets", "x: " + "[" * 20_000 + "]" * 20_000, BAD),
    _fenced_beast("1,000 braces", "x: " + "{a: " * 1_000 + "1" + "}" * 1_000, BAD),
    _fenced_beast("1,000 levels of list", "x: " + "- " * 1_000 + "y", BAD),
    _fenced_beast("100,000 keys", "\n".join(f"k{n}: {n}" for n in range(100_000)), LARGE),
    _fenced_beast("6,000 short values", "x: [" + "1," * 6_000 + "1]", LARGE),
    _fenced_beast("a 4 MB scalar", "x: " + "y" * 4_000_000, LARGE),
    _fenced_beast("a little over the limit", "x: " + "y" * LIMIT, LARGE),
)  # fmt: skip

INVALID = (
    _fenced_beast("template", "created: {{date}} {{time}}", BAD),
    _fenced_beast("second colon", "title: Re: x", BAD),
    _fenced_beast("tab indent", "a:\n\tb: 1", BAD),
    _fenced_beast("at sign", "by: @bob", BAD),
    _fenced_beast("backquote", "code: `x`", BAD),
    _fenced_beast("percent", "done: %50", BAD),
    _fenced_beast("link and more", "up: [[X]] and more", BAD),
    _fenced_beast("open quote", 'title: "never closed', BAD),
    _fenced_beast("open list", "tags: [a, b", BAD),
    _fenced_beast("a list", "- a\n- b", BAD),
    _fenced_beast("a scalar", "just words", BAD),
    _fenced_beast("unknown alias", "a: *nothing", BAD),
    _fenced_beast("merge conflict", "<<<<<<< HEAD\ntitle: mine\n=======\ntitle: theirs\n>>>>>>> other", None),
    _fenced_beast("NUL", b"title: a\0b", BAD),
    _fenced_beast("control character", b"title: a\x08b", BAD),
    _fenced_beast("Latin-1", b"title: caf\xe9", None),
    _fenced_beast("local tag", "password: !secret x", None),
    _fenced_beast("python tag", 'x: !!python/object/apply:os.system ["true"]', BAD),
    _fenced_beast("harmless alias", "a: &x 1\nb: *x", BAD),
    _fenced_beast("duplicate keys", "title: one\ntitle: two", None),
    _fenced_beast("complex key", "? [a, b]\n: c", None),
    _fenced_beast("lone surrogate", r'title: "\ud800"', None),
    Beast("never closed", b"---\ntitle: x\n", OPEN),
    Beast("only a fence", b"---\n", None),
)

ODD = (
    _fenced_beast("impossible date", "x: 2026-13-45", None),
    _fenced_beast("5,000 digits", "x: " + "9" * 5_000, None),
    _fenced_beast("number keys", "1: a\n2.5: b", None),
    _fenced_beast("date key", "2026-01-01: a"),
    _fenced_beast("null and bool keys", "null: a\ntrue: b\n~: c", None),
    _fenced_beast("keys of a reader's own", "content: a\nhandler: b\nself: c\nmetadata: d"),
    _fenced_beast("hash tag", "tags: #foo", None),
    _fenced_beast("words that look like more", "a: no\nb: on\nc: 012\nd: 12:30:45\ne: 1.10\nf: 1e3\ng: 0x1F\nh: ~"),
    _fenced_beast("ids as written", "id: 007\naliases: [yes, 1.0]"),
    _fenced_beast("unquoted link", "up: [[X]]"),
    _fenced_beast("not finite", "a: .nan\nb: .inf\nc: -.inf"),
    _fenced_beast("empty values", "a:\nb: ''\nc: []\nd: {}\ntags:\n  -\n"),
    _fenced_beast("nested", "a:\n  b:\n    - c: 1\n      d: [1, {e: 2}]"),
    _fenced_beast("comments and quoting", "# why\ntitle:   'It''s'   # kept\n\n\"key\":  \"a\\tb\""),
    _fenced_beast("block text", "x: |\n  one\n  two\ny: >-\n  three\n  four"),
    _fenced_beast("list at column 0", "tags:\n- a\n- b"),
    _fenced_beast("old tag string", "tags: a, b c", None),
    _fenced_beast("emoji and scripts", "題名: 🌱 日本語\n'🗝': 值"),
    _fenced_beast("keys by case", "Tags: [a]\nTAGS: [b]", None),
    _fenced_beast("a long line", "x: " + "y " * 5_000),
    _fenced_beast("JSON", '{"title": "x", "tags": ["a"]}'),
    Beast("empty", b"---\n---\n"),
    Beast("blank line inside", b"---\n\n---\n"),
    Beast("blank line before", b"\n---\ntitle: x\n---\n"),
    Beast("blank before the fence", b" ---\ntitle: x\n---\n"),
    Beast("blanks after the fences", b"---  \ntitle: x\n---  \n", None),
    Beast("four dashes", b"----\ntitle: x\n----\n"),
    Beast("dots at the end", b"---\ntitle: x\n...\n", None),
    Beast("CRLF", b"---\r\ntitle: x\r\ntags:\r\n  - a\r\n---\r\n"),
    Beast("CR only", b"---\rtitle: x\r---\r", None),
    Beast("BOM", b"\xef\xbb\xbf---\ntitle: x\n---\n", None),
    Beast("two BOMs", b"\xef\xbb\xbf\xef\xbb\xbf---\ntitle: x\n---\n", None),
    Beast("body in braces", b'{"not": "frontmatter"}\n'),
    Beast("body in pluses", b'+++\ntitle = "x"\n+++\n'),
)

ZOO = (*BOMBS, *INVALID, *ODD)
