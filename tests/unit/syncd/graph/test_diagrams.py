"""Drawings of the graph: well formed, complete and the same each time, whatever names hold."""

from __future__ import annotations

import html
import json
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.graph.vertex import Edge
from syncd.graph.diagrams import (
    HEIGHT,
    MERMAID_EDGES,
    MERMAID_TEXT,
    WIDTH,
    Card,
    Picture,
    draw_canvas,
    draw_graphml,
    draw_mermaid,
    lay_out,
)
from tests.support.mermaid import HOSTILE, NODE, valid
from tests.support.paths import CLIENTS

names = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=256),
)


def picture(names, arrows=(), *, folder="Captures/default/Entities"):
    cards = tuple(Card(name, "thing", f"{folder}/n{number}.md") for number, name in enumerate(names))
    return Picture("Around it", cards, tuple(Edge(names[a], names[b], kind) for a, b, kind in arrows))


@st.composite
def pictures(draw):
    own = draw(st.lists(names, min_size=1, max_size=30, unique=True))
    ends = st.integers(0, len(own) - 1)
    return picture(own, draw(st.lists(st.tuples(ends, ends, names), max_size=60, unique=True)))


# Mermaid


def test_a_mermaid_block_reads_as_what_it_draws():
    one = Picture(
        "Around Ada",
        (
            Card("Ada", "person", "Captures/default/Entities/Ada.md"),
            Card("A: b", "idea", "Captures/default/Entities/A b.md"),
        ),
        (Edge("Ada", "A: b", "had"), Edge("A: b", "Somebody else", "knew")),
    )
    assert draw_mermaid(one) == (
        '```mermaid\nflowchart LR\n    n0["Ada"]\n    n1["A#58; b"]\n    class n0 internal-link;\n'
        '    n0 -->|"had"| n1\n```\n'
    )


@given(pictures())
def test_no_name_gets_out_of_its_quotation_marks(one):
    lines = draw_mermaid(one).split("\n")
    assert (lines[0], lines[1], lines[-2:]) == ("```mermaid", "flowchart LR", ["```", ""])
    for line in lines[2:-2]:
        assert re.fullmatch(
            r'    (n\d+\["[^"\n`\[\]<>|{}\\]*"\]|n\d+ -->\|"[^"\n`\[\]<>|{}\\]*"\| n\d+|class [n\d,]+ internal-link;|%% \d+ more relations are not shown)',
            line,
        ), line


def test_a_type_with_an_underscore_is_readable_in_the_drawing_s_own_text():
    cards = (Card("Ada", "person", "Ada.md"), Card("_B_ c__d", "person", "B.md"))
    text = draw_mermaid(Picture("", cards, (Edge("Ada", "_B_ c__d", "works_on"),)))
    assert '|"works_on"|' in text
    assert '"#95;B#95; c#95;#95;d"' in text  # there it is markup


def test_what_mermaid_would_refuse_for_its_size_is_left_out_and_said():
    own = ['"' * 255 + str(number) for number in range(10)]
    many = draw_mermaid(picture(own, [(a, b, f"t{t}") for a in range(10) for b in range(10) for t in range(6)]))
    assert many.count("-->") == MERMAID_EDGES
    assert "%% 100 more relations are not shown" in many
    wordy = draw_mermaid(
        picture(own, [(a, b, f"{t}" + '"' * 99) for a in range(10) for b in range(10) for t in range(5)])
    )
    assert len(wordy) <= MERMAID_TEXT
    assert "more relations are not shown" in wordy


def test_of_more_entities_than_mermaid_draws_the_first_are_shown_with_their_relations():
    names = [f"{n:04} {'x' * 70}" for n in range(1_000)]
    cards = tuple(Card(name, "thing", f"{name}.md") for name in names)
    drawn = draw_mermaid(Picture("", cards, tuple(Edge(names[0], name, "has") for name in names)))
    shown = drawn.count('["')
    assert len(drawn) <= MERMAID_TEXT
    assert 200 < shown < 1_000
    assert drawn.count("-->") == shown
    assert (
        f"%% {1_000 - shown} more entities are not shown\n    %% {1_000 - shown} more relations are not shown" in drawn
    )


@pytest.mark.slow
@pytest.mark.skipif(not (CLIENTS / "node_modules/mermaid").exists(), reason="not installed: make clients (needs npm)")
def test_mermaid_itself_reads_the_nodes_and_relations_that_were_drawn():
    """Mermaid keeps entities as marks until it shows them: `ﬂ°°35¶ß` is `&#35;`."""
    arrows = [(n, (n * 7 + 3) % len(HOSTILE), HOSTILE[(n + 1) % len(HOSTILE)]) for n in range(len(HOSTILE))]
    one = picture(HOSTILE, arrows)
    done = subprocess.run(
        [NODE if NODE.exists() else "node", "mermaid.mjs"],
        cwd=CLIENTS,
        input=re.fullmatch(r"```mermaid\n(.*)```\n", draw_mermaid(one), re.DOTALL)[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)

    def shown(text):
        return html.unescape(re.sub(r"ﬂ°°(\d+)¶ß", r"&#\1;", re.sub(r"ﬂ°(\w+)¶ß", r"&\1;", text)))

    def cut(text):
        return text if len(text) <= 80 else text[:79].rstrip() + "…"

    assert read["type"] == "flowchart-v2"
    assert [shown(text) for text in read["nodes"]] == [cut(name) for name in HOSTILE]
    assert [(a, b, shown(kind)) for a, b, kind in read["edges"]] == [
        (f"n{a}", f"n{b}", cut(kind)) for a, b, kind in arrows
    ]


# Canvas


@settings(deadline=None)
@given(pictures())
def test_a_canvas_is_one_whatever_it_draws(one):
    board = valid(draw_canvas(one), {card.path for card in one.cards})
    assert [node["file"] for node in board["nodes"] if node["type"] == "file"] == [card.path for card in one.cards]
    assert len(board["edges"]) == len(one.arrows)
    assert draw_canvas(one) == draw_canvas(one)


def test_a_canvas_is_written_as_obsidian_writes_it():
    lines = draw_canvas(picture(["Ada", "Bab"], [(0, 1, "knew")])).splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("{", '\t"nodes":[', "}")
    assert all(line.startswith('\t\t{"id":"') for line in lines if line.startswith("\t\t"))
    assert draw_canvas(Picture("Nothing", (), ())) == '{\n\t"nodes":[],\n\t"edges":[]\n}\n'
    assert '\t"edges":[]\n}' in draw_canvas(picture(["Ada"]))


def test_what_was_asked_for_stands_in_the_middle_and_hops_go_outwards():
    own = ["centre", "a", "b", "c", "d", "beyond a"]
    places = lay_out(picture(own, [*((0, n, "knows") for n in range(1, 5)), (5, 1, "knows")]))
    assert places["centre"][0] == 0
    assert sorted({x // (WIDTH + 1) for name, (x, _) in places.items() if name in "abcd"}) == [-2, 1]
    assert abs(places["beyond a"][0]) > abs(places["a"][0])
    assert places["beyond a"][0] * places["a"][0] > 0
    assert places["a"][1] != places["c"][1]


def test_a_star_of_many_is_no_tower():
    own = [f"n{n}" for n in range(100)]
    places = lay_out(picture(own, [(0, n, "has") for n in range(1, 100)]))
    tall = max(y for _, y in places.values()) + HEIGHT - min(y for _, y in places.values())
    wide = max(x for x, _ in places.values()) + WIDTH - min(x for x, _ in places.values())
    assert 1 / 6 < tall / wide < 6
    alone = lay_out(picture(own))
    assert max(y for _, y in alone.values()) < 12 * (HEIGHT + 100)


# GraphML


@given(pictures())
def test_graphml_says_every_node_and_relation(one):
    root = ET.fromstring(draw_graphml(one))
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    ids = [node.get("id") for node in root.iterfind(".//g:node", space)]
    said = [node.findtext("g:data[@key='name']", "", space) for node in root.iterfind(".//g:node", space)]
    assert [fit(name) for name in said] == [fit(card.name) for card in one.cards]
    by_name = dict(zip((card.name for card in one.cards), ids, strict=True))
    edges = [
        (edge.get("source"), edge.get("target"), fit(edge.findtext("g:data", "", space)))
        for edge in root.iterfind(".//g:edge", space)
    ]
    assert edges == [(by_name[a.source], by_name[a.target], fit(a.type)) for a in one.arrows]
    declared = {key.get("id") for key in root.iterfind("g:key", space)}
    assert {data.get("key") for data in root.iterfind(".//g:data", space)} <= declared


def fit(text):
    """`text` without what XML can't hold."""
    return re.sub("[\ufffe\uffff]", "\ufffd", text)
