"""The graph in memory: names, twins, relations resolved when they are read, and walks, against a plain reckoning."""

from __future__ import annotations

import gc
import itertools
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.document_ids import choose_owner
from index.graph.graph import FEW, WORDS, Graph, Graphs
from index.graph.vertex import Edge, Vertex, matches_path, name_key, vertex_of
from index.model import Statement
from tests.support.example_counts import examples
from tests.support.parsed_notes import parse


def node(name, *relations, path=None, aliases=(), folder="Captures/w/Entities"):
    return Vertex(
        path=path or f"{folder}/{name}.md",
        id=name,
        name=name,
        entity_type="thing",
        summary=None,
        tags=(),
        aliases=tuple(aliases),
        created_at=1,
        updated_at=None,
        version=1,
        observations=0,
        last_ordinal=0,
        unsettled=False,
        summary_updated_at=None,
        observed_at=None,
        relations=tuple(Statement(kind, target) for kind, target in relations),
    )


@pytest.mark.parametrize("path", ["Captures/w/Entities/Bob.MD", "Captures/w/Entities/Bob.md"])
@pytest.mark.parametrize("within", ["Entities/Bob", "entities/bob.md", "/Captures/w/Entities/BOB.MD"])
def test_a_path_in_a_link_matches_whatever_the_letter_case_of_the_ending(path, within):
    assert matches_path(path, within)
    assert not matches_path(path, "other/Bob")


def graph(*nodes):
    made = Graph()
    for one in nodes:
        made.put(one)
    return made


def names(vertices):
    return [one.name for one in vertices]


def test_a_node_is_found_by_its_name_its_file_or_its_alias():
    made = graph(
        node("Ada Lovelace", aliases=["Countess"]), node("TCP/IP", path="Captures/w/Entities/TCP IP.md"), node("Éclair")
    )
    for asked, found in (
        ("ada  LOVELACE ", "Ada Lovelace"),
        ("countess", "Ada Lovelace"),
        ("tcp/ip", "TCP/IP"),
        ("TCP IP", "TCP/IP"),
        ("E\u0301CLAIR", "Éclair"),
    ):
        assert made.get(asked).name == found
    assert made.get("Ada") is None


@pytest.mark.parametrize(
    ("name", "file", "reached", "unknown"),
    [
        pytest.param("Issue #42", "Issue 42", "issue 42", "Issue", id="a number of the name"),
        pytest.param("Moon landing", "Apollo 11", "Apollo 11", "Apollo", id="a number of an earlier name"),
        pytest.param("Ada", "Ada 2", "Ada", "Ada 2", id="an added number"),
        pytest.param("Sprint/12", "Sprint 12 2", "Sprint 12", "Sprint", id="both"),
    ],
)
def test_a_number_is_left_out_of_a_file_name_only_if_memex_added_it(name, file, reached, unknown):
    made = graph(node(name, path=f"Captures/w/Entities/{file}.md"))
    assert made.get(reached).name == name
    assert made.get(unknown) is None


def test_of_two_notes_with_one_name_the_shorter_path_is_the_node_and_the_other_takes_its_place():
    short, long = node("Ada", ("knows", "Bob")), node("ADA", ("likes", "Bob"), path="Captures/w/alpha/Entities/ADA.md")
    made = graph(long, node("Bob"), short)
    assert made.edges() == [Edge("Ada", "Bob", "knows")]
    assert made.notes_sharing_names() == [[short.path, long.path]]
    assert len(made) == 2
    made.drop(short.path)
    assert made.edges() == [Edge("ADA", "Bob", "likes")]
    assert made.notes_sharing_names() == []


def test_a_relation_comes_alive_with_its_target_and_goes_with_it():
    made = graph(node("Ada", ("knows", "Bob")))
    assert (made.edges(), made.orphans(), made.dangling_statements()) == (
        [],
        [made.get("Ada")],
        [("Captures/w/Entities/Ada.md", Statement("knows", "Bob"))],
    )
    made.put(node("Bob"))
    assert made.edges(["Bob"]) == [Edge("Ada", "Bob", "knows")]
    assert made.incoming_statements("bob") == [("Captures/w/Entities/Ada.md", Statement("knows", "Bob"))]
    made.drop("Captures/w/Entities/Bob.md")
    assert made.edges() == []


def test_a_link_that_names_folders_means_a_note_in_these():
    made = graph(
        node("A", ("r", "Captures/w/Entities/B"), ("r", "People/C"), ("s", "Entities/C.md")), node("B"), node("C")
    )
    assert made.edges() == [Edge("A", "B", "r"), Edge("A", "C", "s")]


def test_a_neighbourhood_is_bounded_and_says_so():
    made = graph(node("hub", *(("has", f"n{n:03}") for n in range(50))), *(node(f"n{n:03}") for n in range(50)))
    near = made.neighbourhood("n007", 2, 10)
    assert names(near.vertices)[:3] == ["n007", "hub", "n000"]
    assert (len(near.vertices), near.truncated) == (10, True)
    assert {edge.source for edge in near.edges} == {"hub"}
    whole = made.neighbourhood("hub", 1)
    assert (len(whole.vertices), whole.truncated, len(whole.edges)) == (51, False, 50)
    assert made.neighbourhood("nobody", 1) is None


def test_a_self_relation_is_one_relation_and_no_orphan():
    made = graph(node("Ouroboros", ("eats", "Ouroboros")))
    assert made.relation_count == 1
    assert made.orphans() == []
    assert made.edges_between("Ouroboros", "Ouroboros") == [Edge("Ouroboros", "Ouroboros", "eats")]
    assert made.shortest_path("Ouroboros", "Ouroboros") == []


def test_relations_of_many_notes_share_their_words():
    made = graph(*(node(name, (f"part of {name}"[:-2], f"the hub {name}"[:-2])) for name in ("A", "B")))
    (a,), (b,) = (made.get(name).relations for name in ("A", "B"))
    assert a.type is b.type
    assert a.target is b.target


@pytest.mark.slow
def test_a_relation_takes_few_bytes():
    def parsed(number):
        lines = "".join(f"- part_of:: [[Node {(number * 7 + step) % 300}]]\n" for step in range(10))
        raw = f"---\nid: node-{number}\ntype: entity\n---\n## Relations\n{lines}".encode()
        return vertex_of(parse(raw, f"Captures/w/Entities/Node {number}.md", mtime_ms=0))

    parsed(0)
    tracemalloc.start()
    try:
        made = graph(*(parsed(number) for number in range(300)))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(made) == 300
    assert taken < 700_000  # 1.0 million with a string for each type and target, and a set for each name


def test_words_that_no_relation_has_any_more_are_freed():
    made = graph(node("Hub"))
    for number in range(5 * WORDS):
        made.put(node("A", ("part_of", f"target {number}")))
    assert len(made._words) <= WORDS + 2


@pytest.mark.parametrize("count", [FEW - 1, FEW, FEW + 1, 3 * FEW])
def test_however_many_lead_to_a_node_each_is_known_until_it_goes(count):
    sources = [node(f"N{number:02}", ("part_of", "Hub")) for number in range(count)]
    made = graph(*sources, node("Hub"))
    assert [path for path, _ in made.incoming_statements("Hub")] == [source.path for source in sources]
    for source in sources[:-1]:
        made.drop(source.path)
    assert [path for path, _ in made.incoming_statements("Hub")] == [sources[-1].path]
    made.drop(sources[-1].path)
    assert made.incoming_statements("Hub") == []
    made.put(sources[0])
    assert [path for path, _ in made.incoming_statements("Hub")] == [sources[0].path]


def test_workspaces_have_graphs_of_their_own():
    graphs = Graphs()
    graphs.put("a", node("X", ("r", "Y")), "Captures/w/Entities/X.md")
    graphs.put("b", node("Y", path="Captures/b/Entities/Y.md"), "Captures/b/Entities/Y.md")
    assert graphs.of("a").edges() == []
    assert (len(graphs.of("a")), len(graphs.of("b"))) == (1, 1)
    graphs.put("a", None, "Captures/w/Entities/X.md")
    assert (len(graphs.of("a")), len(graphs.of("b"))) == (0, 1)


NAMES = ["a", "B", "b", "C", "c c", "d", "e/f", "E F"]
PATHS = [
    f"{folder}/{stem}.md" for folder in ("w/Entities", "w/x/Entities") for stem in ("a", "b", "C", "c c", "e f", "g")
]
TARGETS = ["a", "A", "b", "C", "c  c", "e f", "g", "d", "Entities/b", "x/Entities/a", "nobody", "alias"]
NODES = st.builds(
    lambda path, name, aliases, relations: node(name, *relations, path=path, aliases=aliases),
    st.sampled_from(PATHS),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(["alias", "g", "A"]), max_size=1),
    st.lists(st.tuples(st.sampled_from(["r", "s"]), st.sampled_from(TARGETS)), max_size=4, unique=True),
)
STEPS = st.lists(st.one_of(NODES, st.sampled_from(PATHS)), max_size=15)


def said(made):
    everyone = names(made.vertices())
    return {
        "nodes": made.vertices(),
        "edges": made.edges(),
        "related": made.related_names(),
        "orphans": made.orphans(),
        "relations": made.relation_count,
        "dangling": made.dangling_statements(),
        "twins": made.notes_sharing_names(),
        "near": [made.neighbourhood(name, 2) for name in everyone],
        "ways": [made.shortest_path(a, b) for a, b in itertools.product(everyone, everyone)],
        "sources": [made.incoming_statements(name) for name in everyone],
        "degrees": [made.degree(name) for name in everyone],
    }


@examples(120)
@given(STEPS, st.randoms())
def test_what_it_answers_depends_on_the_notes_and_not_on_the_way_there(steps, dice):
    made, notes = Graph(), {}
    for step in steps:
        if isinstance(step, str):
            made.drop(step)
            notes.pop(step, None)
        else:
            made.put(step)
            notes[step.path] = step
        if dice.random() < 0.5:
            said(made)  # fills what is remembered, which the next step must undo
    anew = list(notes.values())
    dice.shuffle(anew)
    assert said(made) == said(graph(*anew))
    related = {(name, other) for name, others in made.related_names().items() for other in others}
    assert related == {edge[:2] for edge in made.edges()}


@pytest.mark.slow
@examples(150)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from("rs")), max_size=30), st.integers(1, 4)
)
def test_walks_agree_with_a_plain_reckoning(relations, depth):
    nodes = [f"n{n}" for n in range(12)]
    made = graph(*(node(one, *((kind, nodes[b]) for a, b, kind in relations if nodes[a] == one)) for one in nodes))
    near = {one: {one} for one in nodes}
    for a, b, _ in relations:
        near[nodes[a]].add(nodes[b])
        near[nodes[b]].add(nodes[a])
    assert set(made.edges()) == {Edge(nodes[a], nodes[b], kind) for a, b, kind in relations}
    hops = {(a, a): 0 for a in nodes}
    for a in nodes:
        wave = {a}
        for hop in range(1, 12):
            wave = {far for one in wave for far in near[one]} - {far for far in nodes if (a, far) in hops}
            hops.update({(a, far): hop for far in wave})
    for a, b in itertools.product(nodes, nodes):
        way = made.shortest_path(a, b)
        assert (None if way is None else len(way)) == hops.get((a, b))
        at = a
        for edge in way or ():
            assert edge in made.edges()
            assert at in (edge.source, edge.target)
            at = edge.target if edge.source == at else edge.source
        assert way is None or at == b
    for one in nodes:
        found = made.neighbourhood(one, depth)
        assert set(names(found.vertices)) == {far for far in nodes if hops.get((one, far), 99) <= depth}


@examples(100)
@given(st.lists(NODES, max_size=12))
def test_links_lead_where_the_rule_says(nodes):
    notes = {one.path: one for one in nodes}
    made = graph(*notes.values())
    real = [
        one
        for one in notes.values()
        if one.path == choose_owner(p for p, o in notes.items() if name_key(o.name) == name_key(one.name))
    ]
    assert {one.path for one in made.vertices()} == {one.path for one in real}
    for target in TARGETS:
        key = name_key(target.rpartition("/")[2])
        filed = [
            o.path
            for o in real
            if name_key(o.path.rpartition("/")[2][:-3]) == key
            and f"/{o.path}".lower().endswith(f"/{target}.md".lower().replace("  ", " "))
        ]
        named = [o.path for o in real if name_key(o.name) == key]
        nicked = [o.path for o in real if key in map(name_key, o.aliases)]
        expected = (
            choose_owner(filed)
            if filed
            else None
            if "/" in target
            else choose_owner(named)
            if named
            else nicked[0]
            if len(nicked) == 1
            else None
        )
        found = made.resolve(target)
        assert (found and found.path) == expected


@pytest.mark.slow
def test_a_large_graph_is_walked_without_looking_at_all_of_it():
    count, each = 5_000, 10
    made = graph(
        *(node(f"n{n}", *(("r", f"n{(n * 7 + k * k * 31 + 1) % count}") for k in range(each))) for n in range(count))
    )
    began = time.process_time()
    for n in range(20):
        assert made.shortest_path(f"n{n}", f"n{count - n - 1}")
        assert len(made.neighbourhood(f"n{n}", 2).vertices) > each
    assert time.process_time() - began < 10  # walked whole it is a minute
