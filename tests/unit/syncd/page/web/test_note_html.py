"""syncd/page/web/note_html.py: a note becomes HTML that runs nothing, loads nothing and leads only where it may."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.page.web.note_html import MOST, OUTSIDE, REL, heading_anchor, is_permitted, render_note
from tests.support.paths import ROOT

TAGS = frozenset(
    "a span p h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s hr br table thead tbody tr th td".split()  # noqa: SIM905
)
ATTRIBUTES = frozenset(["href", "rel", "class", "id", "title", "start", "tabindex"])
TARGETS = {
    "Heron": "Projects/Heron.md",
    "Heron.md": "Projects/Heron.md",
    "Projects/Heron": "Projects/Heron.md",
    "x<y": "x<y.md",
}


class Elements(HTMLParser):
    """Complains about every element, attribute and address that a note may not have."""

    def __init__(self, text):
        super().__init__()
        self.complaints, self.addresses, self.text = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.complaints.append(tag)
        for name, value in attrs:
            if name not in ATTRIBUTES:
                self.complaints.append(f"{tag} {name}={value}")
            if name == "href":
                self.addresses.append(value)
                if not (value.startswith(("/note?path=", "#h-")) or value.casefold().startswith(OUTSIDE)):
                    self.complaints.append(value)

    def handle_data(self, data):
        self.text += data

    def handle_decl(self, decl):
        self.complaints.append(decl)

    handle_pi = unknown_decl = handle_comment = handle_decl


def html(text, **options):
    return str(render_note(text, "Here.md", TARGETS, **options)).strip()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[[Heron]]", '<p><a href="/note?path=Projects%2FHeron.md">Heron</a></p>'),
        ("[[heron|it]]", '<p><a href="/note?path=Projects%2FHeron.md">it</a></p>'),
        ("[[Heron#Power#Cells]]", '<p><a href="/note?path=Projects%2FHeron.md#h-cells">Heron &gt; Power &gt; Cells</a></p>'),
        ("[[Heron#^o1]]", '<p><a href="/note?path=Projects%2FHeron.md">Heron &gt; ^o1</a></p>'),
        ("[[#Power]]", '<p><a href="#h-power">Power</a></p>'),
        ("![[Heron]]", '<p><a href="/note?path=Projects%2FHeron.md" class="embed">Heron</a></p>'),
        ("[[x<y]]", '<p><a href="/note?path=x%3Cy.md">x&lt;y</a></p>'),
        ("[[Nobody]]", '<p><span class="missing" title="There is no such note">Nobody</span></p>'),
        ("[[]] [[ ]]", "<p>[[]] [[ ]]</p>"),
        ("`[[Heron]]`", "<p><code>[[Heron]]</code></p>"),
        ("[it](Heron.md#Power)", '<p><a href="/note?path=Projects%2FHeron.md#h-power">it</a></p>'),
        ("[it](/search)", '<p><span class="missing" title="There is no such note">it</span></p>'),
        ("<https://e.org/a?b=1>", f'<p><a href="https://e.org/a?b=1" rel="{REL}" class="outside">https://e.org/a?b=1</a></p>'),
        ("![chart](https://e.org/x.png)", f'<p><a href="https://e.org/x.png" rel="{REL}" class="outside">chart</a></p>'),
        ("[a ![b](https://q.org/p.png)](https://e.org)", f'<p><a href="https://e.org" rel="{REL}" class="outside">a b</a></p>'),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("- [ ] a\n- [x] b", "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>"),
        ("fact ^o1", "<p>fact</p>"),
        ("- [[Heron]]: one ^o1\n  two ^a-1\n- three\n  ^o2", '<ul>\n<li><a href="/note?path=Projects%2FHeron.md">Heron</a>: one ^o1<br />\ntwo</li>\n<li>three</li>\n</ul>'),
        ("> quote\n\n^id", "<blockquote>\n<p>quote</p>\n</blockquote>\n<p></p>"),
        ("**e** `x` ^id", "<p><strong>e</strong> <code>x</code></p>"),
        ("*e* ^2", "<p><em>e</em></p>"),  # as in Obsidian: digits alone are an id too, at the end of a block
        ("*e* ^2 and\nx ^3\ny", "<p><em>e</em> ^2 and<br />\nx ^3<br />\ny</p>"),
        ("**e**^2", "<p><strong>e</strong>^2</p>"),
        ("`x`^2", "<p><code>x</code>^2</p>"),
        ("\\^2", "<p>^2</p>"),
        ("2^8 x^2 `a ^b` ^_^", "<p>2^8 x^2 <code>a ^b</code> ^_^</p>"),
        ("# A\n\n## A", '<h2 id="h-a">A</h2>\n<h3>A</h3>'),
        ("|a|\n|-:|\n|1|", '<table tabindex="0">\n<thead>\n<tr>\n<th class="align-right">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td class="align-right">1</td>\n</tr>\n</tbody>\n</table>'),
    ],
)  # fmt: skip
def test_a_note_is_rendered(text, shown):
    assert html(text) == shown
    assert Elements(shown).complaints == []


def test_a_first_heading_that_repeats_the_title_is_left_out():
    assert html("# Heron\n\ntext", title="Heron") == "<p>text</p>"
    assert html("# Other\n\ntext", title="Heron").startswith('<h2 id="h-other">')


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", "java%0ascript:alert(1)", "%6aavascript:alert(1)",
        "vbscript:x", "data:text/html,<script>1</script>", "data:image/png;base64,x", "file:///etc/passwd", "obsidian://open?vault=x",
        "//evil.example", "\\\\evil\\share", " javascript:alert(1)", "blob:x", "view-source:http://x", "ftp://x",
    ],
)  # fmt: skip
def test_other_schemes_are_no_links(address):
    assert not is_permitted(address)
    for text in (
        f"[x]({address})",
        f"[x](<{address}>)",
        f"<{address}>",
        f"![x]({address})",
        f"[x][r]\n\n[r]: {address}",
    ):
        shown = Elements(html(text))
        assert shown.complaints == []
        assert shown.addresses == []


@given(
    st.lists(
        st.sampled_from(["[", "]", "(", ")", "!", "[[", "]]", "#", "|", "<", ">", "`", "*", "\n", "\n\n", "- [ ] ", "> ", "a", "Heron", "javascript:", "http://e", "&#x6a;", "\\", "\u202e", "<img src=x onerror=alert(1)>", "    ", "~~~", "|-|"]),
        max_size=40,
    )
)  # fmt: skip
def test_no_text_makes_another_element(parts):
    assert Elements(html("".join(parts))).complaints == []


@pytest.mark.parametrize("vault", ["demo"])
def test_no_note_of_a_sample_vault_makes_another_element(vault):
    for file in sorted((ROOT / "vault_fixtures" / vault).rglob("*.md")):
        assert Elements(html(file.read_text("utf-8", "replace"))).complaints == [], file


def test_a_very_long_note_is_cut():
    assert len(html("a " * MOST)) < MOST + 100


@pytest.mark.parametrize(
    ("text", "anchor"),
    [("What keeps it cool?", "h-what-keeps-it-cool"), ("会議", "h-会議"), ("***", "h-"), ('"><b>', "h-b")],
)
def test_an_anchor_has_only_words(text, anchor):
    assert heading_anchor(text) == anchor


@pytest.mark.slow
def test_every_one_of_many_links_is_checked():
    count = MOST // len("[a](b) ")
    shown = html("[a](b) " * count)
    assert shown.count("<span") == shown.count("</span>") == count
    assert "<a" not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("> [!warning] Transport\n> By road.", "<strong>Warning: Transport</strong><br />\nBy road."),
        ("> [!note]-\n> Text.", "<strong>Note</strong><br />\nText."),
        ("> [!tip|wide] *Both* `parts`", "<strong>Tip: <em>Both</em> <code>parts</code></strong>"),
        ("> [plain] quote", "[plain] quote"),
        ("[!note] no quote", "[!note] no quote"),
    ],
)
def test_a_callout_begins_with_its_kind_and_title(text, shown):
    assert f"<p>{shown}</p>" in html(text)


def test_each_line_of_a_paragraph_is_a_line_as_in_obsidian():
    assert html("one\ntwo") == "<p>one<br />\ntwo</p>"
