"""Targets of links in converted text: what a link may lead to, judged by another reader of Markdown and HTML."""

from __future__ import annotations

import contextlib
import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from index.text.link_schemes import LONGEST, is_allowed
from syncd.files.conversion.readers.link_targets import drop_targets

CASES = {
    "a [t](javascript:alert(1)) b": "a [t](#) b",
    "[t](JaVaScRiPt:x) [u](vbscript:x) [v](shell:x) [w](unheard-of+1.2:x)": "[t](#) [u](#) [v](#) [w](#)",
    "[t](<javascript:a b>)": "[t](<#>)",
    '[t](javascript:x "title")': '[t](# "title")',
    "[t](&#1;javascript:x) [u](java&Tab;script&colon;x) [v](javascript\\:x)": "[t](#) [u](#) [v](#)",
    "[t](\u200bjavascript:x) [u](\u00a0java\u00adscript:x)": "[t](#) [u](#)",
    "[t](//e.example/x) [u](\\\\\\\\host\\share) [v](&#47;/e.example)": "[t](#) [u](#) [v](#)",
    "> [t](\n> javascript:x)": "> [t](\n> #)",
    "![i](data:image/png;base64,xxxx)": "![i](#)",
    "[[t](javascript:x)](javascript:y)": "[[t](#)](#)",
    "[t][r]\n\n[r]: javascript:x 'title'": "[t][r]\n\n[r]: # 'title'",
    "[r]:\n  <obsidian://open?vault=x>\n": "[r]:\n  <#>\n",
    "> - [r]: file:///etc/passwd": "> - [r]: #",
    "<javascript:alert(1)> <Shell:x>": "&lt;javascript:alert(1)> &lt;Shell:x>",
    '<a href="java\nscript:x">t</a>': '&lt;a href="java\nscript:x">t</a>',
    "<p title='<'><a href=&#106;avascript:x>t</a>": "&lt;p title='<'>&lt;a href=&#106;avascript:x>t</a>",
    f"[t](javascript:{'x' * 5_000})": f"[t](#{'x' * (5_000 - LONGEST - 1 + len('javascript:'))})",
    "```\n[a](b:c)\n```\n\n[t](b:c)\n\n    [a](b:c)": "```\n[a](b:c)\n```\n\n[t](#)\n\n    [a](b:c)",
    "a <b> c, src=tcp:1": "a &lt;b> c, src=tcp:1",
    "$$\n```\n$$\n[t](b:c)\n$$\n```\n$$": "$$\n```\n$$\n[t](#)\n$$\n```\n$$",
}
ALLOWED = [
    "[t](https://e.example/a:b) [u](HTTP://x) [v](mailto:a@b.example) [w](a/b.md) [x](#h) [y](../c.md#a:b) [z]()",
    "<https://e.example/> <a@b.example> [r]: https://e.example/",
    "[t](./a:b.md) [u](a%3Ab.md) [v](2026:x) [w](\\_x.md) [[a:b]] ![[c:d]]",
    "[INFO]: error: the disk is full\n\n[^1]: note: see there\n\ncall f[i](x: int) and [&](auto x) for std::move(x)",
    "x < y: z, a <b> c, data=key:value, 3 <4:5>",
    '<a href="https://e.example/">t</a> <img src="a.png">',
    "```cpp\nrun[i](std::move(x));\n```\n",
    "",
]  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_a_link_keeps_its_text_and_loses_a_target_that_is_not_allowed(text):
    assert drop_targets(text) == CASES[text]
    assert drop_targets(CASES[text]) == CASES[text]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_is_allowed_or_no_link_stays_byte_for_byte(text):
    assert drop_targets(text) == text


def test_html_that_became_text_hides_no_link_in_what_was_code():
    text = '<div href="b:x">\n```\n\n[t](b:y)\n\n```\n[u](b:z)\n```\n'
    safe = drop_targets(text)
    assert not unsafe(safe)
    assert safe.startswith("&lt;div")


def test_a_target_whose_scheme_is_too_long_to_be_seen_is_not_allowed():
    assert not is_allowed("&#1;" * LONGEST + "javascript:x")
    assert not is_allowed("x" * 2 * LONGEST)
    assert is_allowed("x/" + "y" * 2 * LONGEST)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["](" * 20_000, "](&" * 100_000, "[a](b:" * 20_000, "<a " * 40_000, "[a]:" * 30_000, "&#1;" * 40_000, "<a href=" * 20_000, "> " * 50_000, "[" * 99_999]
)  # fmt: skip
def test_no_text_takes_long(text):
    begun = time.process_time()
    drop_targets(text)
    drop_targets(f"[x](b:c)\n\n{text}")
    assert time.process_time() - begun < 10


PIECES = [
    *(
        "[",
        "]",
        "(",
        ")",
        "](",
        "<",
        ">",
        "](<",
        "!",
        "\\",
        "x",
        " ",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "    ",
        "|",
        "|-|\n",
        ":",
    ),
    *(
        "javascript:",
        "java",
        "script:",
        "JaVaScRiPt:",
        "&colon;",
        "&#1;",
        "&#x09;",
        "&Tab;",
        "&quot;",
        "\u00a0",
        "\u200b",
        "alert(1)",
    ),
    *("```", "~~~", "`", "``", "[a]:", "[a]: ", "[a]", "'t'", '"t"', "$$", "%%", "#", "*", "&lt;", "&amp;", "//"),
    *('<a href="', "<a href='", "<a href=", '<img src="', "<div>", "</div>", "<pre>", "<!--", "-->", 'title="'),
    *("https://e.x/", "mailto:a@b", "obsidian://o", "data:x", "file:/x"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_link_of_the_result_has_another_scheme(text):
    safe = drop_targets(text)
    assert not unsafe(safe)
    assert drop_targets(safe) == safe


class _Targets(HTMLParser):
    """The targets in a page."""

    def __init__(self):
        super().__init__()
        self.targets = []

    def handle_starttag(self, _tag, attrs):
        self.targets += [value for name, value in attrs if name in ("href", "src") and value]


def unsafe(text):
    """The targets that a browser would follow out of the web, of the page that CommonMark makes of `text`."""
    found = []
    for grammar in (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table")):
        grammar.validateLink = lambda _: True
        grammar.normalizeLink = lambda url: url
        page = _Targets()
        with contextlib.suppress(AssertionError):  # of the parser, for a declaration that is none
            page.feed(grammar.render(text))
            page.close()
        for target in page.targets:
            plain = re.sub(r"[\t\n\r]", "", target).strip("".join(map(chr, range(33))))
            scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", plain)
            if scheme and scheme[1].lower() not in ("http", "https", "mailto"):
                found.append(target)
    return found
