"""The report as a note: well formed and the same each time, and no text of a note is anything but text in it."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from syncd.consolidation.report_note import ADDED, DRAWN, ReportEntry, WorkspaceReport, compose_report, draw_clusters
from syncd.notes.checkboxes import find_checkboxes, read_answers
from syncd.notes.inline_syntax import scan
from syncd.notes.markdown_outline import parse_outline
from syncd.notes.quoted_text import link_to, quote_block, quote_inline
from tests.support.example_counts import examples
from tests.support.mermaid import HOSTILE as NAMES
from tests.support.mermaid import NODE, valid
from tests.support.paths import CLIENTS, GOLDEN
from tests.support.sample_secrets import SECRETS

ID = "0123456789abcdef"
HOSTILE = (
    *NAMES,
    f"- [x] accept ^p-{ID}",
    f"\n- [x] accept ^p-{ID}\n",
    f"> \n\n- [x] accept ^p-{ID}",
    f"text\r- [X] accept ^P-{ID.upper()}\r\n",
    "```\n````\n`````\n~~~~~~\n",
    "`````mermaid\nflowchart LR\n",
    "]] [[Secret note]] ![[Secret.png]] [a](javascript:alert(1)) ![x](https://evil.example/a.png)",
    "<img src=https://evil.example/a.png> <script>alert(1)</script> <!-- %% open",
    "%% comment %%",
    "$= dv.pages() $ and `= this.file` and `$= 1`",
    "<% tp.file.delete() %> <%* x %> {{date}} {% x %}",
    "key:: value (key:: value) [key:: value]",
    "# heading\n===\n---\n",
    "1. one",
    "12) two",
    "+ plus",
    "* star",
    "#tag #a/b https://evil.example www.evil.example me@evil.example obsidian://open?x",
    "> [!danger]+ Callout",
    "| a | b |\n| - | - |\n",
    "^block [^1]: note\n\n[^1]",
    "x ^p-" + ID,
    "📅 2026-01-01 🔁 every day ✅ 2026-01-01 ⏫",
    "==mark== ~~gone~~ **bold** __x__ \\* \\[",
    "\u202e\u200b\u2066hidden\u2069\ufeff",
    "&lt;b&gt; &#91;&#91;x&#93;&#93;",
    "[[a|b]]#^x",
    "[ref]: https://evil.example",
    "a\x00b\x1bc",
)
texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(max_size=60), st.lists(st.sampled_from(HOSTILE), max_size=3).map(" ".join)
)
GRAMMAR = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def entries(draw):
    kinds = ("merge-duplicates", "tag-merge", "relate", "summary", "archive", "other")
    found = []
    for number in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(kinds))
        paths = [
            f"Captures/default/{draw(texts)}.md".replace("\x00", "")
            for _ in range({"tag-merge": 0, "summary": 1, "archive": 1}.get(kind, 2))
        ]
        would = {"tag-merge": 2, "relate": 1, "summary": 1}.get(kind, 0)
        found.append(
            ReportEntry(
                f"{number:016x}",
                kind,
                draw(texts) or "w",
                tuple(paths),
                tuple(draw(texts) for _ in range(would)),
                draw(texts),
                tuple((path, draw(texts)) for path in paths),
                draw(texts) if kind == "merge-duplicates" else "",
            )
        )
    return tuple(found)


@st.composite
def sheets(draw):
    paths = st.lists(texts.map(lambda text: f"Captures/default/{text}.md"), min_size=1, max_size=3, unique=True)
    return [
        WorkspaceReport(
            draw(texts),
            entries(draw),
            tuple((draw(texts), tuple(draw(paths))) for _ in range(draw(st.integers(0, 2)))),
            tuple(draw(st.lists(texts, max_size=2))),
            {"archive": 3},
            (draw(texts),),
        )
        for _ in range(draw(st.integers(1, 2)))
    ]


def test_a_golden_report_reads_as_it_should():
    found = [
        ReportEntry(ID, "merge-duplicates", "default", ("Captures/default/A.md", "Captures/default/B.md"), (), "The same.", (("Captures/default/B.md", "It *is* so."),), "More."),
        ReportEntry("f" * 16, "tag-merge", "default", (), ("kubernetes", "k8s"), "One is short for the other."),
    ]  # fmt: skip
    text = compose_report(
        "2026-11-21",
        [WorkspaceReport("default", tuple(found), (("search", ("Captures/default/A.md",)),))],
        canvas="Captures/Reports/2026-11-21 Clusters.canvas",
    )
    golden = GOLDEN / "report.md"
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()


@examples(80)
@given(sheets())
def test_whatever_notes_say_the_boxes_are_ours_and_none_is_ticked(found):
    text = compose_report("2026-11-21", found)
    wanted = sorted(entry.key for sheet in found for entry in sheet.entries)
    assert sorted(box.key for box in find_checkboxes(text)) == wanted
    assert read_answers([text]) == {}
    assert len(parse_outline(text).task_lines) == len(wanted)
    assert re.findall(r"^\s*[-+*] \[[^ ]\]", "\n".join(_prose(text)), re.MULTILINE) == []


@examples(80)
@given(sheets())
def test_whatever_notes_say_the_report_keeps_its_shape(found):
    """Links lead to the notes alone; no tag, picture, comment, HTML or fence comes of a text."""
    text = compose_report("2026-11-21", found)
    seen = parse_outline(text)
    known = {path for sheet in found for entry in sheet.entries for path in entry.paths}
    known |= {path for sheet in found for _, paths in sheet.clusters for path in paths} | {
        path for sheet in found for path in sheet.orphans
    }
    targets = {link.target for link in seen.links}
    assert targets <= {path.removesuffix(".md").strip() for path in known} | known
    assert all(link.kind == "wikilink" and not link.subpath for link in seen.links)
    assert seen.tags == []
    assert seen.defects == []
    assert {heading.level for heading in seen.headings} <= {1, 2}
    assert not {block.kind for block in seen.blocks} & {"html", "math", "table", "rule"}
    tokens = GRAMMAR.parse(text)
    inner = [child for token in tokens for child in token.children or []]
    assert {token.type for token in inner} <= {"text", "softbreak", "code_inline", "text_special"}
    assert sum(token.type == "heading_open" for token in tokens) == len(seen.headings)
    fences = [token for token in tokens if token.type in ("fence", "code_block")]
    assert all(token.info in ("mermaid", "text") for token in fences)
    for line in _prose(text):
        assert "::" not in line
        assert "<%" not in line
        assert "%%" not in line
        assert "://" not in line
        assert "{{" not in line
        assert not re.search("[\u200b-\u200f\u202a-\u202e\u2066-\u2069📅🔁]", line)
        assert not scan(line).hidden


def _prose(text):
    """The lines of a report outside of fences."""
    inside = {line for token in GRAMMAR.parse(text) if token.type == "fence" for line in range(*token.map)}
    return [line for number, line in enumerate(text.split("\n")) if number not in inside]


@given(texts)
@example("1.")
@example("-")
@example("www.x")
def test_a_text_is_shown_as_it_is_and_is_nothing_else(text):
    markdown = quote_inline(text, 1_000)
    assert "\n" not in markdown
    tokens = GRAMMAR.parse(markdown)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    if tokens:
        read = "".join(child.content for child in tokens[1].children)
        assert read == " ".join(read.split())
        assert "".join(filter(str.isalnum, read)) == "".join(
            filter(str.isalnum, "".join(filter(str.isprintable, read)))
        )
    assert scan(markdown).links == []
    assert scan(markdown).tags == []


@given(texts)
def test_a_text_in_a_fence_stays_there(text):
    lines = quote_block(text)
    tokens = GRAMMAR.parse("\n".join([*lines, "", "after"]))
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert (tokens[0].info, tokens[2].content) == ("text", "after")
    assert "<%" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("Captures/default/A b (2).md", "[[Captures/default/A b (2)|A b (2)]]"),
        ("Captures/default/works_on 12.5 %.md", "[[Captures/default/works_on 12.5 %|works_on 12.5 %]]"),
        ("Captures/Reports/2026-11-21 Clusters.canvas", "[[Captures/Reports/2026-11-21 Clusters.canvas|2026-11-21 Clusters.canvas]]"),
        ("Captures/default/a]] [[b.md", "“a&#93;&#93; &#91;&#91;b”"),
        ("Captures/default/a#b.md", "“a&#35;b”"),
        ("雪の測候所.md", "[[雪の測候所|雪の測候所]]"),
    ],
)  # fmt: skip
def test_a_link_is_made_where_it_can_hold_the_path(path, told):
    assert link_to(path) == told


def test_no_text_of_the_report_and_its_canvas_holds_a_secret():
    secret = SECRETS["github-token"]
    escaped = secret.replace("_", "\\_")
    reports = [
        WorkspaceReport(
            "default",
            (
                ReportEntry(ID, "merge-duplicates", "default", ("A.md", "B.md"), (), f"only {secret}", (("B.md", escaped),), f"It\n{escaped}"),
                ReportEntry(ID, "tag-merge", "default", (), (secret, "tokens"), "They are alike."),
            ),
            clusters=((f"keys, {secret}", ("A.md",)),),
            degraded=(f"no {secret}",),
        )
    ]  # fmt: skip
    for text in (compose_report("2026-01-01", reports), draw_clusters(reports)):
        assert "github-token" in text
        assert secret[4:] not in text


def test_a_long_text_that_would_be_added_is_cut():
    added = "The pilot paid the captain.\n" * 1_000
    entry = ReportEntry(ID, "merge-duplicates", "default", ("A.md", "B.md"), (), "Alike.", (), added)
    text = compose_report("2026-01-01", [WorkspaceReport("default", (entry,))])
    assert len(text) < ADDED + 2_000
    assert f"\t- … and {len(added) - ADDED:,} more characters\n" in text


@settings(deadline=None)
@given(sheets())
def test_the_canvas_of_clusters_is_one_whatever_it_draws(found):
    drawn = draw_clusters(found)
    groups = [cluster for sheet in found for cluster in sheet.clusters]
    assert (drawn is None) == (not groups)
    if drawn:
        files = {node["file"] for node in json.loads(drawn)["nodes"] if node["type"] == "file"}
        nodes = [node for node in json.loads(drawn)["nodes"] if node["type"] == "file"]
        assert len(nodes) == sum(len(paths) for _, paths in groups)
        _valid(drawn, files)
        assert draw_clusters(found) == drawn


def _valid(drawn, files):
    """As of any canvas; and each card lies in one group, no two of which touch."""
    told = json.loads(drawn)
    groups = [node for node in told["nodes"] if node["type"] == "group"]
    for number, a in enumerate(groups):
        for b in groups[:number]:
            assert a["y"] >= b["y"] + b["height"] or b["y"] >= a["y"] + a["height"]
    for group in groups:
        cards = [
            node
            for node in told["nodes"]
            if node["type"] == "file" and group["y"] < node["y"] < group["y"] + group["height"]
        ]
        assert cards
        valid(json.dumps({"nodes": [group, *cards], "edges": []}), files)


def test_the_overview_is_bounded_and_names_notes_apart_that_are_called_the_same():
    many = [
        ReportEntry(f"{n:016x}", "relate", "w", (f"Captures/w/{n}a.md", f"Captures/w/{n}b.md"), (), "r")
        for n in range(500)
    ]
    text = compose_report("2026-11-21", [WorkspaceReport("w", tuple(many))])
    assert len(re.findall(r"^    n\d+\[", text, re.MULTILINE)) == 80
    twins = ReportEntry(ID, "relate", "w", ("Captures/w/A.md", "Captures/v/A.md"), (), "r")
    text = compose_report("2026-11-21", [WorkspaceReport("w", (twins,))])
    assert 'n0["Captures/w/A.md"]' in text
    assert 'n1["Captures/v/A.md"]' in text


@pytest.mark.slow
@pytest.mark.skipif(not (CLIENTS / "node_modules/mermaid").exists(), reason="not installed: make clients (needs npm)")
def test_mermaid_itself_reads_the_overview():
    names = [re.sub(r"[/\x00]", " ", name) for name in HOSTILE]
    pairs = [
        ReportEntry(f"{n:016x}", "relate", "w", (f"Captures/w/{n} {name}.md", f"Captures/w/{n} older.md"), (), "r")
        for n, name in enumerate(names)
    ]
    drawn = re.search(
        r"```mermaid\n(.*?)```\n", compose_report("2026-11-21", [WorkspaceReport("w", tuple(pairs))]), re.DOTALL
    )[1]
    done = subprocess.run(
        [NODE if NODE.exists() else "node", "mermaid.mjs"],
        cwd=CLIENTS,
        input=drawn,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert (len(read["nodes"]), len(read["edges"])) == (2 * DRAWN, DRAWN)
    assert len(read["nodes"]) < 100


def test_the_same_values_give_the_same_bytes():
    one = WorkspaceReport(
        "w", (ReportEntry(ID, "archive", "w", ("Captures/w/A.md",), (), "r"),), more={"archive": 2, "relate": 1}
    )
    assert compose_report("2026-11-21", [one]) == compose_report("2026-11-21", [one])
    assert "… and 2 more" in compose_report("2026-11-21", [one])
