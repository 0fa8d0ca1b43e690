"""syncd/page/views/graph.py: rows and marks of an answer, shapes of types, addresses that show more."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from syncd.page.views.graph import DRAWN, FIRST, MOST, OTHER, SHAPES, Place, _fetch_reports, choose_shapes, make_picture

PLACE = Place("default", "", "", "1", "", "", "", "")
HERON = replace(PLACE, name="Heron")


def node(name, kind="person"):
    return {"name": name, "entity_type": kind, "path": f"{name}.md", "summary": None, "observation_count": 1}


def relation(source, target, kind="knows"):
    return {"from": source, "to": target, "relation_type": kind}


def test_relations_lead_to_places_in_the_list_and_are_counted_for_both_ends():
    answer = {
        "nodes": [node("A"), node("B"), node("C", "place")],
        "relations": [relation("B", "A"), relation("C", "C")],
    }
    picture = make_picture(answer)
    assert [(each["source"], each["target"]) for each in picture.relations] == [(1, 0), (2, 2)]
    assert [each["relations"] for each in picture.nodes] == [1, 1, 1]
    assert [(kind, count) for kind, _, count in picture.types] == [("person", 2), ("place", 1)]
    assert not picture.is_cut


def test_a_relation_to_an_entity_that_is_not_listed_is_left_out():
    picture = make_picture({"nodes": [node("A")], "relations": [relation("A", "B")], "truncated": True})
    assert (picture.relations, picture.is_cut) == ([], True)


def test_an_empty_graph_is_an_empty_picture():
    assert make_picture({"nodes": [], "relations": []}).nodes == []


def test_each_frequent_type_has_a_shape_of_its_own_and_the_rest_share_one():
    types = [f"type {number}" for number in range(9) for _ in range(9 - number)]
    shapes = choose_shapes(types)
    first = [shapes[f"type {number}"] for number in range(len(SHAPES))]
    assert sorted(first) == sorted(SHAPES)
    assert {shapes[f"type {number}"] for number in range(len(SHAPES), 9)} == {OTHER}


def test_a_type_keeps_its_shape_beside_rarer_ones_and_in_other_letter_case():
    alone = choose_shapes(["person"])["person"]
    assert choose_shapes(["person", "person", "place", "idea"])["person"] == alone
    assert choose_shapes(["Person", "PERSON"]) == {"person": alone}


def test_types_that_differ_in_letter_case_are_one_in_the_legend():
    nodes = [node("Ada", "person"), node("Bob", "Person"), node("Cy", "Person"), node("Here", "place")]
    picture = make_picture({"nodes": nodes, "relations": []})
    shapes = {node["name"]: node["shape"] for node in picture.nodes}
    assert shapes["Ada"] == shapes["Bob"] == shapes["Cy"] != shapes["Here"]
    assert picture.types == [("Person", shapes["Ada"], 3), ("place", shapes["Here"], 1)]


@pytest.mark.parametrize(
    ("place", "limit", "more"),
    [
        (PLACE, FIRST, "/graph?workspace=default&depth=1&most=200"),
        (HERON, DRAWN, "/graph?workspace=default&name=Heron&depth=1&most=400"),
        (replace(HERON, most="400"), 400, "/graph?workspace=default&name=Heron&depth=1&most=600"),
        (replace(HERON, most="1000000"), DRAWN, "/graph?workspace=default&name=Heron&depth=1&most=400"),
        (replace(PLACE, most="99999"), MOST, ""),
        (replace(PLACE, most="-1"), FIRST, "/graph?workspace=default&depth=1&most=200"),
    ],
)
def test_more_is_shown_in_steps_up_to_a_limit(place, limit, more):
    assert (place.limit, place.more()) == (limit, more)


@pytest.mark.parametrize(
    ("entities", "report", "rows", "count", "is_cut"),
    [
        (5, "", 5, "5", False),
        (30, "", 20, "30", True),
        (30, "gaps", 30, "30", False),
        (5000, "", 20, "more than 1,000", True),
        (5000, "gaps", 1000, "more than 1,000", False),
    ],
)
def test_a_report_counts_to_its_limit_and_says_when_there_are_more(entities, report, rows, count, is_cut):
    def ask(_operation, *, workspace, limit):
        return [{"node": str(number)} for number in range(min(entities, limit))]

    place = replace(PLACE, report=report)
    shown = _fetch_reports(SimpleNamespace(ask=ask), place)[1]
    assert (len(shown["rows"]), shown["count"], shown["is_cut"]) == (rows, count, is_cut)
