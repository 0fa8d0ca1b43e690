"""A page as Markdown: needed escapes stay, needless ones go, nothing acts, nothing is fetched, nothing takes long."""

from __future__ import annotations

import html as entities
import io
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncd.files.conversion.readers import html_page
from syncd.files.conversion.readers.html_page import convert_html, read_html
from syncd.files.conversion.readers.reader_result import ReaderLimits, TooLarge
from syncd.notes.markdown_outline import parse_outline

BOUNDS = ReaderLimits(pages=10, inflated=1 << 20, text=100_000)


def told(html: str) -> str:
    return convert_html(f"<html><body>{html}</body></html>").strip()


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>1.5 - x = y + z (a) {b} c! d~e &amp; f</p>", "1.5 - x = y + z (a) {b} c! d~e & f"),
        ("<p># head</p><p>- item</p><p>12. item</p><p>&gt; quote</p><p>---</p>", "\\# head\n\n\\- item\n\n12\\. item\n\n\\> quote\n\n\\---"),
        ("<p>*a* `b` [c] [[d]] #e C# #1 &lt;f&gt;</p>", "\\*a\\* \\`b\\` \\[c\\] \\[\\[d\\]\\] \\#e C# #1 \\<f\\>"),
        ("<p>C:\\dir\\*.txt and a\\.b</p>", "C:\\\\dir\\\\\\*.txt and a\\\\.b"),
        ("<p>see <code>a\\.b #c ![d](e)</code></p>", "see `a\\.b #c ![d](e)`"),
        ("<pre>a\\.b\n# c\n</pre>", "```\na\\.b\n# c\n```"),
        ("<p><a href='https://x.example/a_b?c=1&amp;d=2'>t</a></p>", "[t](https://x.example/a_b?c=1&d=2)"),
        ("<p><a href='javascript:alert(1)'>t</a> <a href=' JavaScript:void(0)'>u</a> <a href='data:text/html,x'>v</a></p>", "t u v"),
        ("<p><a href='obsidian://open?vault=x'>t</a> <a href='file:///etc/passwd'>u</a></p>", "t u"),
        ("<p><img src='https://x.example/p.png' alt='A pier'> <img src='https://x.example/q.png'></p>", "[A pier](https://x.example/p.png)"),
        ("<p>a<script>b()</script><style>c</style><template>d</template><noscript>e</noscript></p>", "a"),
        ("<p hidden>a</p><p style='display: none'>b</p><p style='visibility:hidden'>c</p><!-- d --><p>e</p>", "e"),
        ("<iframe src='https://x.example'></iframe><object data='x'>o</object><svg><text>s</text></svg><p>e</p>", "e"),
        ("<ul><li>a<ul><li>b</li></ul></li></ul><ol start=3><li>c</li></ol>", "- a\n    - b\n\n3. c"),
        ("<table><tr><th>a|b</th></tr><tr><td>c<br>d</td></tr></table>", "| a\\|b |\n| --- |\n| c d |"),
        ("<h3>2. b#c</h3>", "### 2. b#c"),
        ("<p>a</p>b<blockquote>c<br>- d</blockquote><hr>e", "a\n\nb\n\n> c\n> \\- d\n\n---\n\ne"),
        ("<p>a <b> b</b><b>c </b>d <i>e<br>f</i> <s>g</s><b> </b></p>", "a **bc** d *e\nf* ~~g~~"),
        ("<div><b><p>a</p><p>b</p></b><font><h2>c <i>d</i></h2></font></div>", "a\n\nb\n\n## c *d*"),
        ("<p>Look!<a href='x y(z)'>a</a> <a name=b>c</a> <a href='#d'>¶</a> <code><a href='e'>f`g</a></code></p>", "Look\\![a](x%20y%28z%29) c [``f`g``](e)"),
        ("<a href='x'><div>a</div><img src='b' alt='c'></a>", "[a c](x)"),
        ("<p>__init__ a_b https://x.example/_c_/ ~~d~~ %%e%% &amp;lt;</p>", "\\_\\_init\\_\\_ a_b https://x.example/_c_/ \\~~d\\~~ \\%%e\\%% \\&lt;"),
        ("<ul><li><p>a</p><p>b</p><pre>c\n d</pre></li><ul><li>e</li></ul><li></li></ul><ol><li value=9>f<pre>g\nh</pre></ol>", "- a\n\n  b\n\n  ```\n  c\n   d\n  ```\n    - e\n\n9. f\n\n   ```\n   g\n   h\n   ```"),
        ("<table><caption>a</caption><tr><td colspan=2>b<td rowspan=2>c<tr><td>d<td>e</table>", "a\n\n| b |  | c |\n| --- | --- | --- |\n| d | e |  |"),
        ("<table><tr><td><h2>a</h2><td><ul><li>b</ul></table><table><tr><td>c</table>", "## a\n\n- b\n\nc"),
        ("<p>10<sup>6</sup> s<sup> \u22121 </sup> 1<sup>st</sup> a<sup><a href='#b'>1</a></sup> H<sub>2</sub>O</p>", "10^6 s^\u22121 1st a[1](#b) H2O"),
        ("<p>text <sup>1</sup></p><p><sup>2</sup></p><p><b>a </b><sup>3</sup><br><sup>4</sup> <i><sup>5</sup></i></p>", "text 1\n\n2\n\n**a** 3\n4 *5*"),
        ("<dl><dt>a<dd>b</dl><details><summary>c</summary>d</details><dialog>e</dialog><div role=navigation>f</div>", "a\n\nb\n\nc\n\nd"),
    ],
)  # fmt: skip
def test_html_is_markdown_that_says_the_same(html, text):
    assert told(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>#<i></i>x</p>", "\\#x"),
        ("<p>a #12<span>a</span> #12<span> a</span></p>", "a \\#12a #12 a"),
        ("<p>50 %<b></b>% of 50 %<b>a</b></p>", "50 \\%% of 50 %**a**"),
        ("<p><b>50 %</b><b>% of it</b></p>", "**50 \\%% of it**"),
        ("<p>#<a href='javascript:a()'>x</a> C:\\#<span>x</span></p>", "\\#x C:\\\\\\#x"),
        ("<p>~<s>x</s></p>", "\\~~~x~~"),
        ("<p>&amp;<i></i>lt;b R&amp;<i></i>D</p>", "\\&lt;b R&D"),
        ("<p>_<span>x</span>_ a_<span>b</span></p>", "\\_x\\_ a\\_b"),
        ("<p>%%<i></i>% <code>#</code><i></i>x</p>", "\\%\\%% `#`x"),
    ],
)  # fmt: skip
def test_text_in_several_elements_makes_no_markdown(html, text):
    assert told(html) == text


def test_the_head_of_a_page_is_no_front_matter():
    html = "<html><head><title> A\n title </title><meta name=description content=x></head><body><p>b</p></body></html>"
    assert convert_html(html) == "b\n"


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=60))
@example("#0A #1-a #§ #12")
def test_plain_text_in_a_page_makes_no_tag_and_no_link(text):
    found = parse_outline(told(f"<p>x {entities.escape(text)}</p>") + "\n")
    assert found.tags == []
    assert [link for link in found.links if link.kind != "markdown"] == []


def test_a_page_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(html_page, "LARGEST", 100)
    with pytest.raises(TooLarge):
        read_html(io.BytesIO(b"<p>" + b"x" * 200), BOUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("tag", ["div", "font", "span", "center"])
def test_elements_that_only_group_others_may_be_nested_without_end(tag):
    assert told(f"<{tag}>" * 5_000 + "<p>bottom</p>") == "bottom"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["\\" * 100_000, "[" * 100_000, "![" * 50_000, "[a](javascript:" * 7_000, "`" * 100_000, "`a" * 50_000, "- " * 50_000, "> " * 50_000,
     "(" * 100_000, "[a](data:" + "(" * 90_000, "1" * 100_000, "\n" * 100_000, "~~~\n" * 25_000, "|" * 100_000, "#" * 100_000, '![a](b "' * 10_000],
    ids=lambda text: text[:9],
)  # fmt: skip
def test_nothing_takes_long(text):
    begun = time.process_time()
    convert_html(
        f"<p>{entities.escape(text)}</p><td><ul><li><b><a href='x'>{entities.escape(text)}</a></b></ul><pre>{entities.escape(text)}"
    )
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("begin", ['<?xml version="1.0"?>\n', ""])
@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        ("<title/>", "<p>a</p>", "a"),
        ('<title>T</title><script src="x.js" />', "<p>a</p>", "a"),
        ("", "<textarea/><iframe src='x'/><nav/><object data='/y/'/><p>a<br/>b</p><hr/>c<img src='d' alt='e'/>", "a\nb\n\n---\n\nc[e](d)"),
        ("", "<p>a</p><h2 id='b'/><p>c <a href=d/e/>f</a></p>", "a\n\nc [f](d/e/)"),
    ],
)  # fmt: skip
def test_an_empty_element_of_xhtml_ends_at_once(begin, head, body, text):
    html = f'{begin}<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'
    assert read_html(io.BytesIO(html.encode()), BOUNDS).text.strip() == text


def test_an_empty_tag_of_html_opens_an_element():
    html = "<!doctype html><title>a</title><p>b <span hidden/>c</p>"
    assert read_html(io.BytesIO(html.encode()), BOUNDS).text.strip() == "b"


@pytest.mark.parametrize(
    ("stated", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "“It’s” – pages 10–20 cost €100… more™"),
        ("us-ascii", "cp1252", "It’s €100 – 10–20"),
        ("iso-8859-9", "cp1254", "“İstanbul” – €5"),
        ("iso-8859-11", "cp874", "“ราคา” – €5"),
        ("shift_jis", "cp932", "㈱山田 ①番 髙橋"),
        ("ks_c_5601-1987", "cp949", "똠방각하 펲시"),
        ("gb2312", "gb18030", "朱镕基"),
        ("big5", "big5hkscs", "深水埗 嘅"),
    ],
)
def test_an_older_encoding_that_a_page_states_is_read_as_browsers_read_it(stated, encoding, text):
    html = f'<html><head><meta charset="{stated}"></head><body><p>{text}</p></body></html>'
    read = read_html(io.BytesIO(html.encode(encoding)), BOUNDS)
    assert (read.text.strip(), read.warnings) == (text, ())


@pytest.mark.parametrize(("stated", "odd"), [("iso-8859-1", b"\x81"), ("iso-8859-1", b"\x90"), ("iso-8859-9", b"\x8d")])
def test_a_byte_that_the_encoding_of_windows_lacks_does_not_stop_the_reading(stated, odd):
    html = f'<html><head><meta charset="{stated}"></head><body><p>Größe für Bücher: très bien</p></body></html>'
    read = read_html(io.BytesIO(html.encode("latin-1").replace(b": ", b": " + odd)), BOUNDS)
    assert (read.text.strip().replace(odd.decode("latin-1"), ""), read.warnings) == ("Größe für Bücher: très bien", ())


@pytest.mark.parametrize("stated", ["utf-16", "UTF-16LE", "utf16", "utf-32"])
@pytest.mark.parametrize("end", ["", " "])
def test_a_statement_of_an_encoding_in_which_it_could_not_be_read_is_ignored(stated, end):
    html = f'<html><head><meta charset="{stated}"><title>Pläne</title></head><body><p>Grüße</p></body></html>{end}'
    read = read_html(io.BytesIO(html.encode()), BOUNDS)
    assert (read.text.strip(), read.warnings) == ("Grüße", ())
