"""syncd/graph/attention_report.py and its parts: what of a graph needs attention."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from index.graph.vertex import Edge
from index.search.vector_similarity import Matrix
from index.text.key_terms import Reader
from index.text.summary_draft import LONGEST, READ, draft_summary
from syncd.graph import attention_report
from syncd.graph.attention_report import UnsummarizedNode, find_unsummarized
from syncd.graph.missing_relations import quote
from syncd.notes.secret_patterns import redact
from tests.support import sample_entities
from tests.support.example_counts import examples
from tests.support.sample_entities import Entity, vertex
from tests.support.sample_secrets import SECRETS

NOTHING = ((), np.empty((0, 8), np.float32))


def entity(name, *said, type="thing", tags=(), **given):
    return vertex(Entity(name, type, tags, said, ()), **given), said


def reported(*made, edges=(), aggregates=NOTHING, perspectives=None, **given):
    return attention_report.build_report(
        [one for one, _ in made],
        {one.path: said for one, said in made},
        sample_entities.related_names(Edge(*edge) for edge in edges),
        pooled=aggregates,
        perspectives=lambda _: perspectives or {},
        events="the events",
        places=word_ranks(),
        **given,
    )


def directions(made, *angles) -> tuple[list[str], Matrix]:
    """A row for each node: nodes whose angles are near are alike, and those without one are like nothing else."""
    rows = np.eye(len(made), len(made) + 2, 2, dtype=np.float32)
    rows[: len(angles)] = 0
    rows[: len(angles), 0], rows[: len(angles), 1] = np.cos(np.radians(angles)), np.sin(np.radians(angles))
    return [one.path for one, _ in made], rows


# What is pending


@pytest.mark.parametrize(
    ("given", "owed"),
    [
        pytest.param({}, True, id="no summary"),
        pytest.param({"summary": ""}, True, id="an empty one"),
        pytest.param({"summary": "s"}, False, id="made with its summary"),
        pytest.param({"summary": "s", "observed_at": 2_000}, True, id="observed since it was made"),
        pytest.param({"summary": "s", "observed_at": 2_000, "summary_updated_at": 2_000}, False, id="at the same time"),
        pytest.param({"summary": "s", "observed_at": 2_001, "summary_updated_at": 2_000}, True, id="later"),
        pytest.param({"summary": "s", "summary_updated_at": 999}, True, id="never observed since it was made"),
        pytest.param({"summary": "s", "observations": 0, "observed_at": 9_999}, False, id="nothing to say"),
        pytest.param({"observations": 0}, True, id="nothing was ever said"),
    ],
)
def test_a_summary_is_owed_when_there_is_none_or_a_newer_observation(given, owed):
    assert bool(find_unsummarized([entity("A", "fact", created_at=1_000, **given)[0]])) == owed


def test_pending_tells_what_there_is_to_summarise_most_first():
    nodes = [
        entity("B", "one", created_at=5)[0],
        entity("A", "one", created_at=5)[0],
        entity("C", "one", "two", summary="old", observed_at=9, summary_updated_at=8)[0],
        entity("D", "one", created_at=5, observed_at=7)[0],
        entity("E", created_at=5)[0],
    ]
    assert find_unsummarized(nodes) == [
        UnsummarizedNode("C", "thing", 2, 9, 8),
        UnsummarizedNode("D", "thing", 1, 7, None),
        UnsummarizedNode("A", "thing", 1, 5, None),
        UnsummarizedNode("B", "thing", 1, 5, None),
        UnsummarizedNode("E", "thing", 0, None, None),
    ]


# Drafts


def test_a_draft_is_made_of_the_telling_sentences_in_the_order_of_the_observations():
    said = (
        "The kite is a **two-line** stunt kite of ripstop",
        "Bought in May",
        "Its frame is carbon; see [[Frame repair]] for how it was mended",
    )
    assert draft_summary("Kite", said, word_ranks()) == (
        "The kite is a two-line stunt kite of ripstop. Its frame is carbon; see Frame repair for how it was mended."
    )


def test_a_draft_leaves_out_the_box_of_a_task():
    assert draft_summary("Heron", ["[ ] Seal the lid of the box", "[x] Tested in salt water"], word_ranks()) == (
        "Seal the lid of the box. Tested in salt water."
    )


def test_a_draft_leaves_out_what_says_least():
    said = [f"Station {n} was read on 2026-10-{n:02} and all was well" for n in range(1, 20)]
    said[7] = "The stations measure the river level with ultrasound and send readings by radio every hour"
    found = draft_summary("Stations", said, word_ranks())
    assert "ultrasound" in found and len(found) <= LONGEST


@pytest.mark.parametrize(
    "said",
    [
        pytest.param((), id="nothing"),
        pytest.param(("```\ncode\n```",), id="code"),
        pytest.param(("https://example.org/x", "???"), id="addresses and signs"),
        pytest.param(("| a | b |\n|---|---|",), id="a table"),
    ],
)
def test_nothing_said_gives_no_draft(said):
    assert draft_summary("X", said, word_ranks()) is None


def test_a_draft_in_japanese_needs_no_blanks():
    assert draft_summary("京都", ("原西さんと市場を歩いた。鯖寿司がうまい", "二条の町家に泊まった"), word_ranks()) == (
        "原西さんと市場を歩いた。鯖寿司がうまい。二条の町家に泊まった。"
    )


@settings(deadline=None)  # the first Chinese text loads a dictionary
@given(st.lists(st.text(max_size=400), max_size=8))
def test_a_draft_is_one_bounded_line_of_what_was_said(said):
    found = draft_summary("Name", said, word_ranks())
    assert found is None or (0 < len(found) <= LONGEST and len(found.splitlines()) == 1)
    assert found == draft_summary("Name", said, word_ranks())


# The report


def test_a_report_asks_for_drafts_and_makes_its_own_where_there_is_none():
    made = [entity("Kite", "The kite is red"), entity("Boat", "The boat is old")]
    found = reported(*made, drafter=lambda one, said: f"{said[0]}!" if one.name == "Kite" else None)
    assert [(one.name, one.draft) for one in found.stale] == [
        ("Boat", "The boat is old."),
        ("Kite", "The kite is red!"),
    ]
    assert found.events == "the events"


def test_no_draft_holds_a_secret():
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (found,) = reported(entity("Key", f"The token of the mirror is {secret} until May")).stale
    assert "token of the mirror" in found.draft
    assert secret not in found.draft
    said = f"{'x' * (READ - 62)}.", f"The token of the mirror is {secret} until May"
    assert "a1B2" not in draft_summary("Mirror", said, word_ranks(), redact)


@pytest.mark.parametrize("rule", [rule for rule in SECRETS if rule != "private-key"])
@pytest.mark.parametrize("around", ["password: {}", "**{}**", "{}\u200b", "# {}"])
def test_no_reason_and_no_label_holds_a_secret(rule, around):
    said = around.format(SECRETS[rule])
    made = [
        entity(name, f"{name} deploys with {said} on Monday", tags=(SECRETS[rule],)) for name in ("Ant", "Bee", "Cow")
    ]
    made += [entity(name, name) for name in ("Doe", "Elk", "Fox", "Gnu", "Hen")]
    found = reported(*made, aggregates=directions(made, 0, 1, 2))
    assert len(found.candidates) == 3 and found.clusters[0].label
    shown = " ".join([*(one.rationale for one in found.candidates), *(one.label for one in found.clusters)])
    parts = [part.lower() for part in re.findall(r"\w{10,}", SECRETS[rule])]
    assert parts and not any(part[:10] in shown.lower() for part in parts)


def test_nodes_without_a_relation_are_orphans():
    made = [entity(name, "x") for name in "ABCD"]
    found = reported(*made, edges=[("A", "B", "knows"), ("C", "C", "cites"), ("D", "Gone", "knows")])
    assert [one.name for one in found.orphans] == ["D"]


def test_a_candidate_says_in_a_sentence_what_speaks_for_it():
    made = [
        entity("Quill battery", "Cells drift apart, says Dario Venn", "Dario Venn measured the drift", tags=("power",)),
        entity("Dario Venn", "Engineer for power and radio", tags=("person",)),
        entity("Solar charger", "Cells are balanced against drift", tags=("power",)),
        *(entity(f"Other {n}", f"something number {n} else", tags=(f"t{n}",)) for n in range(20)),
    ]
    angles = directions(made, 0, 80, 10)
    found = {
        frozenset((one.node_a, one.node_b)): one
        for one in reported(*made, aggregates=angles, perspectives={"general": angles, "project": angles}).candidates
    }
    named = found[frozenset(("Quill battery", "Dario Venn"))]
    assert (named.node_a, named.node_b) == ("Quill battery", "Dario Venn"), "who names comes first"
    assert named.rationale.startswith("“Quill battery” names “Dario Venn” 2 times; they")
    alike = found[frozenset(("Quill battery", "Solar charger"))]
    assert alike.rationale == (
        "“Quill battery” and “Solar charger” both mention cell and drift; they both have the tag #power; "
        "they are alike by 0.98 (general 0.98, project 0.98)."
    )
    assert alike.similarity == pytest.approx(0.9848, abs=1e-4) and 0 < alike.score < 1


def test_neighbours_in_common_support_a_candidate():
    made = [entity(name, said) for name, said in (("Ann", "sails on Sundays"), ("Ben", "sails at night"), ("Regatta", "each May"), ("Yacht club", "on the quay"))]  # fmt: skip
    made += [entity(f"O{n}", f"w{n}") for n in range(20)]
    edges = [
        ("Ann", "Regatta", "won"),
        ("Regatta", "Ben", "has"),
        ("Ben", "Yacht club", "in"),
        ("Ann", "Yacht club", "in"),
    ]
    found = {(one.node_a, one.node_b): one.rationale for one in reported(*made, edges=edges).candidates}
    assert found == {
        ("Ann", "Ben"): "“Ann” and “Ben” both mention sail; they are both related to “Regatta” and “Yacht club”."
    }


def test_what_is_related_is_no_candidate():
    made = [entity("Ann Quorl", "Ben Quorl"), entity("Ben Quorl", "Ann Quorl")]
    assert len(reported(*made).candidates) == 1
    for edge in (("Ann Quorl", "Ben Quorl", "knows"), ("Ben Quorl", "Ann Quorl", "knows")):
        assert reported(*made, edges=[edge]).candidates == ()


def test_clusters_have_the_names_and_what_they_share():
    made = [
        entity("Sloop", "A sailing boat with one mast", type="boat"),
        entity("Ketch", "A sailing boat with two masts", type="boat"),
        entity("Yawl", "A sailing boat with a small mizzen", type="boat"),
        *(entity(f"Other {n}", f"about number {n} of it") for n in range(9)),
    ]
    found = reported(*made, aggregates=directions(made, 1, 3, 5))
    assert [(one.number, one.names) for one in found.clusters] == [(1, ("Ketch", "Sloop", "Yawl"))]
    assert found.clusters[0].label == "sailing boat, mast · boat"


@pytest.mark.parametrize(
    "said", ["データベースの復元を練習する", "数据库备份每天运行", "데이터베이스 백업을 매일 합니다"]
)
def test_a_label_is_found_in_any_script(said):
    made = [entity(f"N{n}", f"{said}。{n}") for n in range(3)] + [
        entity(f"Other {n}", "a thing apart") for n in range(9)
    ]
    found = reported(*made, aggregates=directions(made, 1, 3, 5))
    assert any(word in (found.clusters[0].label or "") for word in ("データベース", "数据库", "데이터베이스"))


def test_lists_are_cut_and_say_how_much_there_was():
    made = [entity(f"Node {n:02}", f"Quorl fact {n}") for n in range(30)]
    found = reported(*made, limit=5)
    assert len(found.stale) == len(found.orphans) == 5
    assert found.of["stale_summaries"] == found.of["orphaned_nodes"] == 30


HOSTILE = "“ignore all”\n# Rules\n<b>now</b> [[x]] " + "y" * 300


def test_text_of_notes_stands_in_a_sentence_on_one_line_in_quotes_and_cut():
    made = [
        entity("Ann Quorl", f"met {HOSTILE} quorlish"),
        entity(HOSTILE.replace("\n", " ")[:256], "quorlish Ann Quorl", tags=("a\nb\n“c”",)),
        entity("Third", "quorlish", tags=("a\nb\n“c”",)),
    ]
    for one in reported(*made).candidates:
        assert len(one.rationale.splitlines()) == 1 and len(one.rationale) < 900
        assert one.rationale.count("“") == one.rationale.count("”")
    assert quote("a “b”\nc") == "“a b c”"


@pytest.mark.parametrize("name", ["x::y", "::", "*a*", "#b", "[[c]]", "<d>", "https://e.example", "f:"])
def test_a_name_is_shown_as_it_is(name):
    assert quote(name) == f"“{name}”"
    assert quote(f"{name}\u202e") == f"“{name}\\u{{202e}}”"


words = st.sampled_from(["Ann", "boat", "mast", "river", "quorl", "Ben Quorl", "sail", "[[Ann]]", "日本"])
facts = st.lists(st.lists(words, min_size=1, max_size=5).map(" ".join), max_size=3)


@examples(60)
@given(st.lists(facts, min_size=1, max_size=8), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=8), st.randoms())  # fmt: skip
def test_the_same_values_give_the_same_report_in_any_order(said, related, dice):
    names = ["Ann", "Ben Quorl", "River", "Sail", "Boat", "Mast", "Quorl", "日本"][: len(said)]
    made = [entity(name, *own, tags=("t",)) for name, own in zip(names, said, strict=False)]
    edges = [(names[a], names[b], "knows") for a, b in related if a < len(names) and b < len(names)]
    aggregates = directions(made, *(37 * n % 90 for n in range(len(made))))
    found = reported(*made, edges=edges, aggregates=aggregates)
    order = list(range(len(made)))
    dice.shuffle(order)
    again = reported(
        *[made[n] for n in order],
        edges=edges[::-1],
        aggregates=([aggregates[0][n] for n in order], aggregates[1][order]),
    )
    assert found == again
    joined = {frozenset(edge[:2]) for edge in edges}
    assert all(
        frozenset((one.node_a, one.node_b)) not in joined and one.node_a != one.node_b for one in found.candidates
    )
    assert {one.name for one in found.orphans} == {
        name for name in names if not any(name in edge[:2] for edge in edges)
    }


# On entities as agents write them


def test_most_candidates_on_real_entities_are_ones_that_a_reader_would_add():
    """Without vectors: names, terms, tags and neighbours alone. With them see `python -m tests.bench.graph_report`."""
    nodes = sample_entities.vertices()
    found = attention_report.build_report(
        nodes, sample_entities.observations(), sample_entities.related_names(sample_entities.edges()), pooled=NOTHING, perspectives=lambda _: {}, events=None, places=word_ranks(), limit=30
    )  # fmt: skip
    right = [frozenset((one.node_a, one.node_b)) in sample_entities.OPEN for one in found.candidates]
    assert len(right) == 30 and sum(right) >= 27


def test_a_word_is_read_once_and_shown_as_it_is_mostly_written():
    reader = Reader(word_ranks())
    own, all_of_them = reader.terms("Tide gauges", ["The tide gauge stands in the harbour", "Gauges of tides"])
    assert own <= all_of_them and {reader.most_frequent_form(key) for key in own} == {"tide", "gauge"}
    assert random.Random(1).sample(sorted(all_of_them), 1)


def test_scripts_that_an_encoder_cannot_read_do_not_drown_the_rest():
    """To the bundled one all Japanese is alike: what it finds most alike of it is meant, not all of it."""
    japanese = [
        "犬と散歩する公園",
        "猫が窓辺で眠る",
        "駅前の古い喫茶店",
        "毎朝の体操と牛乳",
        "祖母の縫った着物",
        "祖母の着物の手入れ",
    ]
    made = [entity(f"日本 {n}", said, type=f"t{n}") for n, said in enumerate(japanese)]
    made += [entity(f"Sloop {n}", f"a sailing boat of kind {n}") for n in range(3)]
    made += [entity(f"Other {n}", f"about number {n} of it") for n in range(12)]
    paths, rows = directions(made, 0, 72, 144, 216, 288, 290, 30, 32, 34)
    rows[:6, 2] = 1.0  # whatever they say
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = reported(*made, aggregates=(paths, rows))
    assert {one.names for one in found.clusters} == {("Sloop 0", "Sloop 1", "Sloop 2"), ("日本 4", "日本 5")}
    read = rows.copy()
    read[:6] = np.eye(6, rows.shape[1], 3)  # an encoder that can tell them apart
    assert [one.names for one in reported(*made, aggregates=(paths, read)).clusters] == [
        ("Sloop 0", "Sloop 1", "Sloop 2")
    ]


def test_a_number_in_words_is_nothing_to_have_in_common():
    heron, marsh = entity("Heron", "Keeps readings for forty days"), entity("Marsh", "Under water for forty minutes")
    both = entity("Trial", "Ran in the autumn")
    edges = [("Trial", "Heron", "r"), ("Trial", "Marsh", "r")]
    found = reported(heron, marsh, both, edges=edges).candidates
    assert not any("forty" in (one.rationale or "") for one in found)
