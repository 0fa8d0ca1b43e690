"""The 24 tools of the family graph as their seed has them, over MCP on real stores; and the wall between workspaces."""

from __future__ import annotations

import itertools
import json
import re
import time
import unicodedata

import pytest

from mcp_server.tools.families import FAMILIES
from tests.support.answer_schemas import GRAPH, MEMORY, SHAPES, differences
from tests.support.graph_samples import ENTITIES, READS, RELATIONS
from tests.support.live_server import client, run, running
from tests.support.mcp_agent import agent, member, triple

DIALECTS = ("legacy", "2026-07-28")
WRITES = {
    "create_entities": {"entities": [{"name": "New", "entity_type": "thing", "observations": ["one"]}]},
    "set_summary": {"name": "Ada", "summary": "She wrote the first program."},
    "set_tags": {"name": "Ada", "tags": ["math", "history"]},
    "add_observations": {"observations": [{"entity_name": "Ada", "contents": ["added"]}]},
    "replace_observation": {"entity_name": "Ada", "ordinal": 1, "new_content": "replaced"},
    "delete_observations": {"deletions": [{"entity_name": "Ada", "ordinals": [2, 99]}]},
    "create_relations": {"relations": [{"from_entity": "Ada", "to_entity": "Loner", "relation_type": "met"}]},
    "update_relation_type": {
        "from_entity": "Ada", "to_entity": "Babbage", "old_type": "knew", "new_type": "worked_with",
    },
    "delete_relations": {"relations": [{"from_entity": "Babbage", "to_entity": "Engine", "relation_type": "built"}]},
    "delete_entities": {"entity_names": ["Loner"]},
}  # fmt: skip
# Texts that end a line for somebody, mean something to Markdown, Obsidian or YAML, or look like ours.
NASTY = [
    "two\nlines", "a blank\n\nbetween", "windows\r\nand\rold mac", "- a list\n- in it\n  - deeper", "ends in an id ^o7",
    "^o1", "line\n  ^o2\nafter the id", "## Relations\n- knew:: [[Babbage]]", "knew:: [[Babbage]]", "# Observations",
    "---\nid: mine\n---", "```\nnever closed", "~~~\n- a ^o9\n~~~", "%% a comment %%", "%% never closed", "<!-- html",
    "<script>alert(1)</script>", "[[Ada|x]] ![[Babbage#^o1]] #tag [x](y)", "`code` ``tick", "1. one\n2. two", "[ ] task",
    "    indented\n\ttabbed", "e\u0301 \u00e9 \u1e9b\u0323", "\U0001f469\u200d\U0001f4bb \U0001f1ef\U0001f1f5",
    "שלום עולם \u202eright to left\u202c", "日本語の観察。改行\nあり。", "a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg", "\x00\x01\x7f",
    "\ufeffmark", "trailing \nblanks\t\nkept", '{"json": "\\u0000"}', "| a | b |\n| - | - |", "$$x^2$$ \\(y\\)", "> quoted\n> twice",
    "key: value", "* * *", "***", "- ", "-", "+ plus\n* star", "\\^o3", "a" * 10_000, "x\n\n\n\ny", "***\n___\n===",
]  # fmt: skip
NAMES = [
    "a/b\\c", "../../etc/passwd", "what: why?", "x#y^z", "[[linked]]", "pipe|alias", "CON", "nul.txt", ".hidden", "-dash",
    "日本語の名前", "🍀 clover", "שלום", "e\u0301cole", "100% *sure*", "a" * 256, "名" * 256, "%%", "---", "null", "true", "007",
    '"quoted"', "'single'", "New::Type", "trailing dot.", "two  blanks", "Note.md", "Entities", "{a: b}", "- item", "@at", "`tick`",
    "<b>", "\u2028sep", "Aux 2", "~tilde", "key: value # comment", "!important", "&amp;", "Captures/default/Entities/x", "^o1",
]  # fmt: skip


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


# What a tool does is tried in the newer dialect, and in both in the long run; what the dialects change has tests of its own.
DIALECT_PARAMS = [pytest.param(mode, marks=[] if mode == DIALECTS[-1] else pytest.mark.slow) for mode in DIALECTS]


@pytest.fixture(params=DIALECT_PARAMS)
def space(rim, request):
    return rim.space(), request.param


@pytest.fixture
def graph(space):
    """An agent on a small graph."""
    with filled(*space) as made:
        yield made


class filled:  # noqa: N801 - used as a context manager
    """A workspace with the small graph, and an agent in it."""

    def __init__(self, space, mode="2026-07-28"):
        self.opened = member(space, mode)

    def __enter__(self):
        made = self.opened.__enter__()
        made.good("create_entities", entities=ENTITIES)
        made.good("create_relations", relations=RELATIONS)
        return made

    def __exit__(self, *error):
        return self.opened.__exit__(*error)


@pytest.fixture
def empty(space):
    with member(*space) as made:
        yield made


def test_both_families_have_the_tools_of_their_seeds():
    for family, shapes in (("graph", GRAPH), ("memory", MEMORY)):
        assert sorted(one.name for one in FAMILIES[family]) == sorted(shapes)
    assert set(READS | WRITES) == set(GRAPH)
    assert {one.name for one in FAMILIES["graph"] if one.scope == "read"} == set(READS)


@pytest.mark.parametrize("mode", DIALECTS)
def test_the_schemas_that_are_listed_promise_what_the_seeds_do(rim, mode):
    async def work():
        async with client(rim, mode=mode) as mcp:
            return (await mcp.list_tools()).tools

    listed = {tool.name: tool for tool in run(work())}
    assert "memory_relation_save" in listed
    for name, seed in SHAPES.items():
        tool = listed[name.replace(".", "_")]
        assert differences(seed, tool.output_schema) == [], name
        assert tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.open_world_hint is False
        reads = any(one.name == name and one.scope == "read" for family in FAMILIES.values() for one in family)
        assert tool.annotations.read_only_hint is reads
        assert not (reads and tool.annotations.destructive_hint)
        assert tool.annotations.destructive_hint or not re.search("delete|replace_", name), name
        assert "$defs" not in json.dumps([tool.input_schema, tool.output_schema])


@pytest.mark.parametrize("path", ["/mcp", "/mcp/graph", "/mcp/memory", "/mcp/thoughts"])
def test_the_lists_of_tools_cost_a_model_little(rim, path):
    async def work():
        async with client(rim, path=path) as mcp:
            return (await mcp.list_tools()).tools

    tools = run(work())
    seen = sum(
        len(json.dumps([tool.name, tool.description, tool.input_schema], separators=(",", ":"), ensure_ascii=False))
        for tool in tools
    )
    assert seen / 4 <= (9_500 if path == "/mcp" else 3_500)
    families = {tool.meta["dev.memex/family"] for tool in tools}
    assert families == (set(FAMILIES) if path == "/mcp" else {path.rpartition("/")[2]})


def test_every_tool_answers_with_the_shape_of_its_seed(graph):
    for tool, given in (READS | WRITES).items():
        graph.good(tool, **given)
    for tool, given in READS.items():
        graph.good(tool, **given)


def test_an_empty_workspace_has_empty_answers(empty):
    assert empty.good("open_nodes", names=["Ada"]) == {
        "entities": [],
        "relations": [],
        "not_found": ["Ada"],
        "suspicious": [],
    }
    for tool in ("get_recently_modified", "get_orphans", "get_relation_gaps", "get_pending_consolidation"):
        assert empty.listed(tool) == []
    for tool in ("find_similar_nodes", "get_nodes_by_type", "search_nodes"):
        assert empty.listed(tool, **READS[tool]) == []
    assert empty.listed("search_nodes", query="engine", mode="text") == []
    stats = empty.good("get_stats")
    assert (stats["node_count"], stats["observation_count"], stats["relation_count"]) == (0, 0, 0)
    assert 0 <= stats["embedding_coverage"] <= 1
    report = empty.good("get_consolidation_report")
    for part in ("stale_summaries", "relation_candidates", "orphaned_nodes", "cluster_summary"):
        assert report[part] == []
    assert [report["event_summary"][kind] for kind in ("creates", "updates", "deletes")] == [0, 0, 0]


def test_nodes_are_created_with_all_they_are_given_and_opened_in_the_order_of_ordinals(graph):
    told = graph.good("open_nodes", names=["Babbage", "nobody", "Ada"])
    assert told["not_found"] == ["nobody"]
    nodes = {node["name"]: node for node in told["entities"]}
    assert set(nodes) == {"Ada", "Babbage"}
    ada = nodes["Ada"]
    assert (ada["entity_type"], ada["summary"], ada["tags"]) == ("person", "A mathematician.", ["math"])
    assert [(one["ordinal"], one["content"]) for one in ada["observations"]] == [
        (1, "Wrote notes on the Engine"),
        (2, "Born in London in 1815"),
        (3, "Corresponded with Babbage"),
    ]
    assert (nodes["Babbage"]["summary"], nodes["Babbage"]["tags"]) == (None, [])
    assert {triple(edge) for edge in told["relations"]} == {("Ada", "knew", "Babbage"), ("Babbage", "built", "Engine")}
    assert graph.edges("Engine") == {("Babbage", "built", "Engine")}  # the other end counts too


def test_a_name_that_is_taken_creates_nothing_of_the_call(graph):
    asked = [{"name": name, "entity_type": "x"} for name in ("Fresh", "ada", "  Babbage ")]
    code, told = graph.ask("create_entities", entities=asked)
    assert code == "CONFLICT"
    assert {"ada", "babbage"} <= set(re.findall(r"\w+", told["message"].casefold()))
    assert graph.good("open_nodes", names=["Fresh"])["not_found"] == ["Fresh"]
    twice = [{"name": name, "entity_type": "x"} for name in ("Twin", "TWIN")]
    assert graph.refused("create_entities", entities=twice) == "INVALID_ARGUMENT"
    assert graph.good("get_stats")["node_count"] == 4


def test_names_are_one_whatever_their_case_normal_form_and_blanks(empty):
    empty.good("create_entities", entities=[{"name": "  Café  Brûlé ", "entity_type": "place"}])
    for spelt in ("Café  Brûlé", "CAFÉ BRÛLÉ", "cafe\u0301 bru\u0302le\u0301"):
        assert empty.node(spelt)["name"] == "Café  Brûlé"
        assert empty.refused("create_entities", entities=[{"name": spelt, "entity_type": "x"}]) == "CONFLICT"
    assert empty.good("delete_entities", entity_names=["CAFÉ brûlé"])["not_found"] == []
    assert empty.good("get_stats")["node_count"] == 0


def test_deleting_a_node_takes_its_observations_and_relations_with_it(graph, space):
    told = graph.good("delete_entities", entity_names=["Babbage", "nobody", "Babbage"])
    assert told["deleted"] == ["Babbage"]
    assert "nobody" in told["not_found"]
    assert graph.edges("Ada", "Engine") == set()
    assert {node["name"] for node in graph.listed("get_orphans")} == {"Ada", "Engine", "Loner"}
    assert graph.listed("search_nodes", query="Designed", mode="text") == []
    assert "Babbage" not in {hit["name"] for hit in graph.listed("search_nodes", query="Designed the engine", limit=50)}
    assert graph.good("get_stats")["relation_count"] == 0
    assert "[[Babbage]]" not in "".join(file.read_text() for file in space[0].folder.rglob("*.md"))
    graph.good("create_entities", entities=[{"name": "Babbage", "entity_type": "cat"}])
    assert graph.facts("Babbage") == {}
    assert graph.edges("Babbage") == set()  # what pointed at the old one does not at its namesake


def test_a_type_lists_its_nodes(graph):
    assert [node["name"] for node in graph.listed("get_nodes_by_type", entity_type="person")] == [
        "Ada",
        "Babbage",
        "Loner",
    ]
    assert graph.listed("get_nodes_by_type", entity_type="dragon") == []


def test_every_change_of_a_child_moves_its_node_to_the_front(graph):
    def recent(**given):
        return [node["name"] for node in graph.listed("get_recently_modified", **given)]

    def changed(tool, **given):
        time.sleep(0.005)  # times are milliseconds
        graph.good(tool, **given)
        return recent(limit=1)[0]

    assert changed("add_observations", observations=[{"entity_name": "Engine", "contents": ["x"]}]) == "Engine"
    assert changed("set_tags", name="Loner", tags=["a"]) == "Loner"
    assert changed("set_summary", name="Babbage", summary="s") == "Babbage"
    assert changed("replace_observation", entity_name="Ada", ordinal=2, new_content="y") == "Ada"
    assert changed("delete_observations", deletions=[{"entity_name": "Engine", "ordinals": [1]}]) == "Engine"
    new = {"from_entity": "Loner", "to_entity": "Ada", "relation_type": "r"}
    assert changed("create_relations", relations=[new]) == "Loner"
    assert sorted(recent()) == ["Ada", "Babbage", "Engine", "Loner"]
    assert len(recent(limit=2)) == 2
    times = [node["updated_at"] for node in graph.listed("get_recently_modified")]
    assert times == sorted(times, reverse=True)


def test_summary_and_tags_are_replaced(graph):
    told = graph.good("set_summary", name="ada", summary="Second.\nOf two lines: really.")
    assert (told["name"], told["summary"]) == ("Ada", "Second.\nOf two lines: really.")
    assert graph.good("set_tags", name="Ada", tags=[])["tags"] == []
    ada = graph.node("Ada")
    assert (ada["summary"], ada["tags"]) == ("Second.\nOf two lines: really.", [])
    assert ada["updated_at"] >= told["updated_at"]
    for tool, given in (("set_summary", {"summary": "x"}), ("set_tags", {"tags": []})):
        assert graph.refused(tool, name="nobody", **given) == "NOT_FOUND"


def test_ordinals_are_given_once_and_never_again(graph):
    (told,) = graph.listed("add_observations", observations=[{"entity_name": "ADA", "contents": ["four", "five"]}])
    assert (told["entity_name"].casefold(), told["not_found"]) == ("ada", False)
    assert told["added"] == [{"ordinal": 4, "content": "four"}, {"ordinal": 5, "content": "five"}]
    (told,) = graph.listed("delete_observations", deletions=[{"entity_name": "Ada", "ordinals": [5, 2, 77]}])
    assert (sorted(told["deleted_ordinals"]), told["not_found_ordinals"]) == ([2, 5], [77])
    graph.good("add_observations", observations=[{"entity_name": "Ada", "contents": ["six"]}])
    assert list(graph.facts("Ada")) == [1, 3, 4, 6]
    told = graph.good("replace_observation", entity_name="Ada", ordinal=3, new_content="new\nthree")
    assert (told["old_content"], told["new_content"]) == ("Corresponded with Babbage", "new\nthree")
    assert graph.facts("Ada")[3] == "new\nthree"
    assert list(graph.facts("Ada")) == [1, 3, 4, 6]
    for ordinal, name in ((2, "Ada"), (5, "Ada"), (99, "Ada"), (1, "nobody")):
        assert graph.refused("replace_observation", entity_name=name, ordinal=ordinal, new_content="x") == "NOT_FOUND"


def test_several_nodes_in_one_call_and_unknown_ones_are_told(graph):
    asked = [{"entity_name": name, "contents": ["more"]} for name in ("Loner", "nobody", "Engine", "Loner")]
    told = graph.listed("add_observations", observations=asked)
    assert [(one["not_found"], [fact["ordinal"] for fact in one["added"]]) for one in told] == [
        (False, [1]),
        (True, []),
        (False, [2]),
        (False, [2]),
    ]
    gone = graph.listed("delete_observations", deletions=[{"entity_name": "nobody", "ordinals": [1, 2]}])
    assert (gone[0]["deleted_ordinals"], gone[0]["not_found_ordinals"]) == ([], [1, 2])


def test_relations_are_unique_directed_and_deleted_one_by_one(graph):
    new = [
        {"from_entity": "Babbage", "to_entity": "Ada", "relation_type": "knew"},
        {"from_entity": "Ada", "to_entity": "Ada", "relation_type": "admires"},
        {"from_entity": "ada", "to_entity": "BABBAGE", "relation_type": "knew"},
        {"from_entity": "Ada", "to_entity": "nobody", "relation_type": "knew"},
        {"from_entity": "nobody", "to_entity": "nowhere", "relation_type": "knew"},
        {"from_entity": "Babbage", "to_entity": "Ada", "relation_type": "knew"},
    ]
    told = graph.good("create_relations", relations=new)
    assert [triple(edge) for edge in told["created"]] == [("Babbage", "knew", "Ada"), ("Ada", "admires", "Ada")]
    assert {triple(edge) for edge in told["already_existed"]} == {
        ("Ada", "knew", "Babbage"),
        ("Babbage", "knew", "Ada"),
    }
    assert sorted(set(told["not_found"])) == ["nobody", "nowhere"]
    between = {triple(edge) for edge in graph.listed("get_relations_between", entity_a="Babbage", entity_b="ada")}
    assert between == {("Ada", "knew", "Babbage"), ("Babbage", "knew", "Ada")}
    gone = graph.good("delete_relations", relations=[new[0], new[3], new[0]])
    assert (gone["deleted"], gone["not_found"]) == (1, 2)
    assert graph.edges("Ada") == {("Ada", "knew", "Babbage"), ("Ada", "admires", "Ada")}
    assert graph.good("get_stats")["relation_count"] == 3


def test_a_relation_is_retyped_unless_it_is_not_there_or_its_new_name_is(graph):
    ends = {"from_entity": "Ada", "to_entity": "Babbage"}
    told = graph.good("update_relation_type", **ends, old_type="knew", new_type="wrote to")
    assert (told["old_type"], told["new_type"]) == ("knew", "wrote to")
    assert graph.edges("Ada") == {("Ada", "wrote to", "Babbage")}
    assert graph.refused("update_relation_type", **ends, old_type="knew", new_type="x") == "NOT_FOUND"
    graph.good("create_relations", relations=[{**ends, "relation_type": "knew"}])
    assert graph.refused("update_relation_type", **ends, old_type="knew", new_type="wrote to") == "CONFLICT"
    assert graph.edges("Ada") == {("Ada", "wrote to", "Babbage"), ("Ada", "knew", "Babbage")}


def test_a_neighbourhood_grows_hop_by_hop_in_both_directions(graph):
    def around(name, depth):
        told = graph.good("get_neighborhood", name=name, depth=depth)
        return {node["name"] for node in told["nodes"]}, {triple(edge) for edge in told["relations"]}

    assert around("Ada", 1) == ({"Ada", "Babbage"}, {("Ada", "knew", "Babbage")})
    both = {("Ada", "knew", "Babbage"), ("Babbage", "built", "Engine")}
    assert around("Ada", 2) == ({"Ada", "Babbage", "Engine"}, both)
    assert around("Engine", 2) == ({"Ada", "Babbage", "Engine"}, both)
    assert around("Loner", 3) == ({"Loner"}, set())
    default = graph.good("get_neighborhood", name="Ada")
    assert {node["name"] for node in default["nodes"]} == {"Ada", "Babbage"}
    assert graph.refused("get_neighborhood", name="nobody") == "NOT_FOUND"


def test_a_path_is_the_shortest_and_its_relations_join_its_nodes(graph):
    told = graph.good("get_path", from_entity="Ada", to_entity="engine")
    assert (told["found"], told["path"]) == (True, ["Ada", "Babbage", "Engine"])
    assert [triple(edge) for edge in told["relations"]] == [("Ada", "knew", "Babbage"), ("Babbage", "built", "Engine")]
    graph.good("create_relations", relations=[{"from_entity": "Ada", "to_entity": "Engine", "relation_type": "saw"}])
    assert graph.good("get_path", from_entity="Ada", to_entity="Engine")["path"] == ["Ada", "Engine"]
    assert graph.good("get_path", from_entity="Ada", to_entity="Ada") == {
        "found": True,
        "path": ["Ada"],
        "relations": [],
        "suspicious": [],
    }
    for ends in (("Ada", "nobody"), ("nobody", "Ada"), ("nobody", "nobody")):
        assert graph.refused("get_path", from_entity=ends[0], to_entity=ends[1]) == "NOT_FOUND"
        assert graph.refused("get_relations_between", entity_a=ends[0], entity_b=ends[1]) == "NOT_FOUND"
    apart = graph.good("get_path", from_entity="Ada", to_entity="Loner")
    assert (apart["found"], apart["path"], apart["relations"]) == (False, [], [])


def test_gaps_are_names_in_observations_without_a_relation(graph):
    gaps = {(gap["node"], gap["referenced_name"]): gap["reference_count"] for gap in graph.listed("get_relation_gaps")}
    assert gaps == {("Ada", "Engine"): 1, ("Babbage", "Loner"): 1}
    graph.good("create_relations", relations=[{"from_entity": "Loner", "to_entity": "Babbage", "relation_type": "r"}])
    assert ("Babbage", "Loner") not in {
        (gap["node"], gap["referenced_name"]) for gap in graph.listed("get_relation_gaps")
    }


def test_similar_nodes_are_unrelated_pairs_above_the_score(empty):
    facts = ["keel of lead", "sails of hemp", "rows of oars"]
    same = [{"name": name, "entity_type": "ship", "observations": facts} for name in ("Argo", "Beagle")]
    other = {"name": "Soup", "entity_type": "dish", "observations": ["keel of potato"]}
    empty.good("create_entities", entities=[*same, other])
    pair = empty.listed("find_similar_nodes", min_score=0.0)[0]
    assert {pair["node_a"], pair["node_b"]} == {"Argo", "Beagle"}
    assert (pair["node_a_type"], pair["node_b_type"]) == ("ship", "ship")
    assert 0.5 < pair["similarity"] <= 1.0
    assert empty.listed("find_similar_nodes", min_score=pair["similarity"] - 1e-3)[0] == pair
    assert empty.listed("find_similar_nodes", min_score=1.0) == []
    assert len(empty.listed("find_similar_nodes", min_score=0.0, limit=2)) == 2
    sisters = {"from_entity": "Beagle", "to_entity": "Argo", "relation_type": "sister"}
    empty.good("create_relations", relations=[sisters])
    left = empty.listed("find_similar_nodes", min_score=0.0)
    assert {"Argo", "Beagle"} not in [{one["node_a"], one["node_b"]} for one in left]


@pytest.mark.parametrize("mode", ["embedding", "text"])
def test_a_search_gives_each_node_once_by_its_best_observation(graph, mode):
    hits = graph.listed("search_nodes", query="Designed the engine", mode=mode)
    assert (hits[0]["name"], hits[0]["matched_observation"]) == ("Babbage", "Designed the engine")
    names = [hit["name"] for hit in hits]
    assert len(names) == len(set(names))
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    perspectives = {hit["matched_perspective"] for hit in hits}
    if mode == "text":
        assert perspectives == {None}
    else:
        assert perspectives <= {"general", "technical", "relational", "temporal", "project"}
    assert len(graph.listed("search_nodes", query="engine", mode=mode, limit=1)) == 1
    graph.good("add_observations", observations=[{"entity_name": "Loner", "contents": ["Keeps a walrus"]}])
    assert graph.listed("search_nodes", query="walrus", mode=mode)[0]["name"] == "Loner"


@pytest.mark.parametrize("mode", ["embedding", "text"])
def test_one_node_s_observations_are_searched_alone(graph, mode):
    hits = graph.listed("query_observations", entity_name="Ada", query="London in 1815", mode=mode)
    assert (hits[0]["ordinal"], hits[0]["content"]) == (2, "Born in London in 1815")
    assert {hit["ordinal"] for hit in hits} <= {1, 2, 3}
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    if mode == "embedding":
        assert {hit["ordinal"] for hit in hits} == {1, 2, 3}
    assert graph.listed("query_observations", entity_name="Loner", query="London", mode=mode) == []
    assert graph.refused("query_observations", entity_name="nobody", query="x", mode=mode) == "NOT_FOUND"


def test_what_is_pending_follows_summaries_and_observations(graph):
    def pending():
        return {node["name"]: node for node in graph.listed("get_pending_consolidation")}

    assert {"Babbage", "Engine"} <= set(pending())
    assert pending()["Babbage"]["observation_count"] == 2
    assert pending()["Babbage"]["summary_updated_at"] is None
    for name in ("Ada", "Babbage", "Engine"):
        graph.good("set_summary", name=name, summary=f"About {name}.")
    assert set(pending()) & {"Ada", "Babbage", "Engine"} == set()
    time.sleep(0.005)
    graph.good("add_observations", observations=[{"entity_name": "Engine", "contents": ["It never ran"]}])
    assert set(pending()) & {"Ada", "Babbage", "Engine"} == {"Engine"}
    engine = pending()["Engine"]
    assert engine["last_observation_at"] > engine["summary_updated_at"]
    stale = {node["name"]: node for node in graph.good("get_consolidation_report")["stale_summaries"]}
    assert stale["Engine"]["observation_count"] == 2


def test_the_report_tells_of_orphans_and_events(graph):
    report = graph.good("get_consolidation_report")
    assert {node["name"] for node in report["orphaned_nodes"]} == {"Loner"}
    assert report["event_summary"]["creates"] == 4
    before = report["event_summary"]
    graph.good("set_tags", name="Ada", tags=["x"])
    graph.good("create_entities", entities=[{"name": "Fifth", "entity_type": "x"}])
    after = graph.good("get_consolidation_report")["event_summary"]
    assert after["creates"] == before["creates"] + 1
    assert after["updates"] > before["updates"]


def test_the_numbers_add_up(graph, space):
    stats = graph.good("get_stats")
    assert (stats["node_count"], stats["observation_count"], stats["relation_count"]) == (4, 6, 2)
    assert (stats["embedding_coverage"], stats["workspace"]) == (1.0, space[0].name)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_an_observation_comes_back_as_it_was_given(empty, space, step):
    empty.good(
        "create_entities", entities=[{"name": "Ada", "entity_type": "x"}, {"name": "Babbage", "entity_type": "x"}]
    )
    wanted = {}
    for text in NASTY[::step]:
        code, told = empty.ask("add_observations", observations=[{"entity_name": "Ada", "contents": [text]}])
        if code == "ok":
            (added,) = told["results"][0]["added"]
            wanted[added["ordinal"]] = text.replace("\r\n", "\n").replace("\r", "\n").strip()
            assert added["content"] == wanted[added["ordinal"]], ascii(text[:60])
        else:
            assert code == "INVALID_ARGUMENT", ascii(text[:60])
        assert empty.facts("Ada") == wanted, ascii(text[:60])
    assert len(wanted) >= len(NASTY[::step]) - 1
    assert empty.edges("Ada") == set()
    space[0].rim.world.run()
    assert empty.facts("Ada") == wanted
    for ordinal in list(wanted)[::3]:
        empty.good(
            "replace_observation", entity_name="Ada", ordinal=ordinal, new_content=wanted[ordinal] + "\nand more"
        )
        wanted[ordinal] += "\nand more"
    for ordinal in list(wanted)[1::3]:
        empty.good("delete_observations", deletions=[{"entity_name": "Ada", "ordinals": [ordinal]}])
        del wanted[ordinal]
    assert empty.facts("Ada") == wanted
    assert (empty.good("get_stats")["node_count"], empty.edges("Ada")) == (2, set())


def kept(name):
    """A name as it is kept: in normal form."""
    return unicodedata.normalize("NFC", name).strip()


@pytest.mark.slow
def test_any_name_is_created_opened_related_and_deleted(empty, space):
    made = [
        name for name in NAMES if empty.ask("create_entities", entities=[{"name": name, "entity_type": "x"}])[0] == "ok"
    ]
    assert len(made) >= len(NAMES) - 2
    files = list(space[0].folder.rglob("*.md"))
    assert len(files) == len(made)
    assert {file.parent for file in files} == {space[0].folder / "Entities"}
    for one, other in itertools.pairwise(made):
        told = empty.good(
            "create_relations", relations=[{"from_entity": one, "to_entity": other, "relation_type": "next"}]
        )
        assert told["not_found"] == []
    space[0].rim.world.run()
    for one, other in itertools.pairwise(made):
        assert empty.node(one)["name"] == kept(one)
        assert (kept(one), "next", kept(other)) in empty.edges(one)
    assert len(empty.good("get_path", from_entity=made[0], to_entity=made[-1])["path"]) == len(made)
    assert empty.good("delete_entities", entity_names=made)["not_found"] == []
    assert list(space[0].folder.rglob("*.md")) == []


BAD = [
    ("create_entities", {}),
    ("create_entities", {"entities": [{"name": "x"}]}),
    ("create_entities", {"entities": [{"name": "", "entity_type": "x"}]}),
    ("create_entities", {"entities": [{"name": "  \t ", "entity_type": "x"}]}),
    ("create_entities", {"entities": [{"name": "a\nb", "entity_type": "x"}]}),
    ("create_entities", {"entities": [{"name": "a\x00b", "entity_type": "x"}]}),
    ("create_entities", {"entities": [{"name": "n" * 257, "entity_type": "x"}]}),
    ("create_entities", {"entities": [{"name": "x", "entity_type": ""}]}),
    ("create_entities", {"entities": [{"name": "x", "entity_type": "x", "observations": [""]}]}),
    ("create_entities", {"entities": [{"name": "x", "entity_type": "x", "observations": ["ok", "o" * 10_001]}]}),
    ("create_entities", {"entities": [{"name": "x", "entity_type": "x", "promote": True}]}),
    ("create_entities", {"entities": [{"name": 5, "entity_type": "x"}]}),
    ("create_entities", {"entities": [{"name": "x", "entity_type": "x"}], "workspace": "secret"}),
    ("open_nodes", {"names": "Ada" * 100}),
    ("open_nodes", {"names": [5]}),
    ("get_nodes_by_type", {}),
    ("get_recently_modified", {"days": -1}),
    ("get_recently_modified", {"limit": 0}),
    ("get_recently_modified", {"limit": 10**9}),
    ("get_recently_modified", {"days": 10**12}),
    ("set_summary", {"name": "Ada"}),
    ("set_summary", {"name": "Ada", "summary": "x" * 1_000_000}),
    ("set_tags", {"name": "Ada", "tags": "x" * 10_000}),
    ("set_tags", {"name": "Ada", "tags": [7]}),
    ("add_observations", {"observations": [{"entity_name": "Ada", "contents": ["  \n "]}]}),
    ("add_observations", {"observations": [{"entity_name": "Ada", "contents": ["x" * 10_001]}]}),
    ("add_observations", {"observations": [{"contents": ["x"]}]}),
    ("replace_observation", {"entity_name": "Ada", "ordinal": "one", "new_content": "x"}),
    ("replace_observation", {"entity_name": "Ada", "ordinal": 1, "new_content": ""}),
    ("replace_observation", {"entity_name": "Ada", "ordinal": 1, "new_content": "x", "version": "one"}),
    ("delete_observations", {"deletions": [{"entity_name": "Ada", "ordinals": ["x"]}]}),
    ("query_observations", {"entity_name": "Ada", "query": ""}),
    ("query_observations", {"entity_name": "Ada", "query": "x", "mode": "magic"}),
    ("create_relations", {"relations": [{"from_entity": "Ada", "to_entity": "Babbage", "relation_type": ""}]}),
    ("create_relations", {"relations": [{"from_entity": "Ada", "to_entity": "Babbage", "relation_type": "a::b"}]}),
    ("create_relations", {"relations": [{"from_entity": "Ada", "to_entity": "Babbage", "relation_type": "a\nb"}]}),
    ("create_relations", {"relations": [{"from_entity": "Ada", "to_entity": "Babbage", "relation_type": "[[x]]"}]}),
    ("create_relations", {"relations": [{"from_entity": "Ada", "to_entity": "Babbage", "relation_type": "t" * 101}]}),
    ("create_relations", {"relations": [{"from_entity": "Ada", "relation_type": "t"}]}),
    ("update_relation_type", {"from_entity": "Ada", "to_entity": "Babbage", "old_type": "knew", "new_type": "a::b"}),
    ("get_neighborhood", {"name": "Ada", "depth": -1}),
    ("get_neighborhood", {"name": "Ada", "depth": 10**6}),
    ("get_path", {"from_entity": "Ada"}),
    ("find_similar_nodes", {"limit": 0}),
    ("find_similar_nodes", {"min_score": 7}),
    ("find_similar_nodes", {"min_score": True}),
    ("set_summary", {"name": "Ada", "summary": "x", "version": True}),
    ("search_nodes", {"query": ""}),
    ("search_nodes", {"query": "x" * 100_000}),
    ("search_nodes", {"query": "x", "limit": 0}),
    ("search_nodes", {"query": "x", "limit": 10**6}),
    ("search_nodes", {"query": "x", "mode": "hybrid?"}),
    ("get_stats", {"workspace": "secret"}),
]  # fmt: skip


def test_what_is_malformed_or_too_much_is_refused_and_changes_nothing(graph, rim):
    before = rim.files()
    for tool, given in BAD:
        assert graph.refused(tool, **given) == "INVALID_ARGUMENT", (tool, given)
    assert rim.files() == before


def test_empty_lists_are_answered_and_change_nothing(graph, rim):
    before = rim.files()
    for tool, field in (
        ("create_entities", "entities"),
        ("delete_entities", "entity_names"),
        ("open_nodes", "names"),
        ("add_observations", "observations"),
        ("delete_observations", "deletions"),
        ("create_relations", "relations"),
        ("delete_relations", "relations"),
    ):
        code, _ = graph.ask(tool, **{field: []})
        assert code in ("ok", "INVALID_ARGUMENT"), tool
    assert rim.files() == before


@pytest.mark.parametrize(
    "tool", ["create_entities", "add_observations", "set_summary", "create_relations", "search_nodes", "open_nodes"]
)
def test_half_a_character_is_refused(rim, tool):
    space = rim.space()
    with filled(space):
        before = rim.files()
        given = json.dumps((READS | WRITES)[tool])
        for text in ("Ada", "engine", "New", "added"):
            given = given.replace(f'"{text}', f'"{text}\\ud800', 1)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": "GIVEN"}}
        call["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        headers = {
            "content-type": "application/json", "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool,
            "x-memory-workspace": space.name,
        }  # fmt: skip
        raw = json.dumps(call).replace('"GIVEN"', given).encode()
        assert b"\\ud800" in raw
        answer = space.rest("POST", "/mcp", content=raw, headers=headers)
        assert answer.status_code in (200, 400)
        if tool not in ("create_relations", "open_nodes"):  # these tell of a name that they don't know
            assert '"isError":true' in answer.text or '"error"' in answer.text
        assert rim.files() == before


def test_a_version_that_is_not_current_is_a_conflict(graph):
    version = graph.node("Ada")["version"]
    graph.good("set_summary", name="Ada", summary="mine", version=version)
    code, told = graph.ask("set_summary", name="Ada", summary="yours", version=version)
    assert code == "CONFLICT"
    assert str(version + 1) in json.dumps(told)
    assert (graph.node("Ada")["summary"], graph.node("Ada")["version"]) == ("mine", version + 1)
    for tool, given in (
        ("set_tags", {"name": "Ada", "tags": ["late"]}),
        ("replace_observation", {"entity_name": "Ada", "ordinal": 1, "new_content": "late"}),
    ):
        assert graph.refused(tool, **given, version=version) == "CONFLICT"


def test_lists_and_numbers_may_come_as_text(graph):
    """Some hosts send a list or an object as a string of JSON."""
    told = graph.good("open_nodes", names='["Ada"]')
    assert [node["name"] for node in told["entities"]] == ["Ada"]


# The wall


def test_nothing_crosses_the_wall_between_workspaces(rim):
    mine, theirs = rim.space(), rim.space()
    with filled(mine) as one, filled(theirs) as other:
        other.good(
            "create_entities",
            entities=[{"name": "Quokka", "entity_type": "secret", "observations": ["quokkas engine Ada"]}],
        )
        other.good("add_observations", observations=[{"entity_name": "Ada", "contents": ["Feeds a quokka"]}])
        other.good("set_summary", name="Ada", summary="quokka keeper")
        new = {"from_entity": "Ada", "to_entity": "Quokka", "relation_type": "feeds_quokka"}
        other.good("create_relations", relations=[new])
        heard = [one.good(tool, **given) for tool, given in READS.items()]
        heard.append(one.listed("search_nodes", query="quokka", limit=50))
        heard.append(one.listed("search_nodes", query="quokka", mode="text"))
        heard.append(one.listed("query_observations", entity_name="Ada", query="quokka"))
        assert "quokka" not in json.dumps(heard).casefold()
        assert one.good("open_nodes", names=["Quokka"])["not_found"] == ["Quokka"]
        asked = one.good(
            "create_relations", relations=[{"from_entity": "Ada", "to_entity": "Quokka", "relation_type": "r"}]
        )
        assert asked["not_found"] == ["Quokka"]
        for tool, given in WRITES.items():
            one.good(tool, **given)
        one.good("delete_entities", entity_names=["Ada", "Quokka"])
        assert other.node("Ada")["summary"] == "quokka keeper"
        assert other.facts("Ada")[4] == "Feeds a quokka"
        assert other.good("get_stats")["node_count"] == 5


def everything():
    """Every tool of both families with arguments that could work."""
    id = "00000000-0000-4000-8000-000000000000"
    ends = {"sourceMemoId": id, "targetMemoId": id}
    return [
        *((tool, given, "read") for tool, given in READS.items()),
        *((tool, given, "write") for tool, given in WRITES.items()),
        ("memory.save", {"namespace": "default", "content": "x"}, "write"),
        ("memory.search", {"namespace": "default", "query": "x"}, "read"),
        ("memory.delete", {"namespace": "default", "memo_id": id}, "write"),
        ("memory.relation.save", {**ends, "tag": "t", "weight": 0.5}, "write"),
        ("memory.relation.delete", {**ends, "namespace": "default", "tag": "t"}, "write"),
        ("memory.relation.list", {}, "read"),
        ("memory.relation.graph", {"startMemoId": id}, "read"),
    ]


@pytest.mark.parametrize("mode", DIALECT_PARAMS)
def test_a_key_does_what_its_scopes_and_workspaces_allow(rim, mode):
    space = rim.space()
    with filled(space):
        before = rim.files()
        for key, forbidden in (("reader", "write"), ("writer", "read")):
            with agent(rim, key=key, workspace=space.name, mode=mode) as one:
                for tool, given, scope in everything():
                    if scope == forbidden:
                        assert one.refused(tool, **given) == "PERMISSION_DENIED", (key, tool)
        for key, workspace in (
            ("work", space.name),
            ("full", "no such space"),
            ("gone", "nowhere"),
            ("full", "Reports"),
        ):
            with agent(rim, key=key, workspace=workspace, mode=mode) as one:
                told = {json.dumps(one.ask(tool, **given)[1]["message"]) for tool, given, _ in everything()}
                assert len(told) == 1
                assert "no such workspace" in told.pop()
        with agent(rim, key=space.name, mode=mode) as one:  # the seed wants the header, even where the key implies it
            for tool, given, _ in everything():
                if tool in GRAPH:
                    assert one.refused(tool, **given) == "NOT_FOUND", tool
        assert rim.files() == before


@pytest.mark.parametrize("key", ["bad", "expired", "revoked", "nonsense", "rest-only", "static-rest"])
def test_no_tool_answers_a_bad_key(rim, key):
    for tool, given, _ in everything():
        name = tool.replace(".", "_")
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
        headers = {
            "accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call", "mcp-name": name, "x-memory-workspace": "default",
        }  # fmt: skip
        answer = rim.rest("POST", "/mcp", key=key, json=call, headers=headers)
        assert answer.status_code in (401, 403), tool
        assert "result" not in answer.text


@pytest.mark.parametrize("mode", DIALECTS)
def test_the_workspace_of_a_call_is_that_of_its_very_request(rim, mode):
    one, other = rim.space(), rim.space()
    for space in (one, other):
        with member(space) as made:
            made.good("create_entities", entities=[{"name": space.name, "entity_type": "x"}])
    for space in (one, other, one):
        with agent(rim, workspace=space.name, mode=mode) as made:
            assert [node["name"] for node in made.listed("get_orphans")] == [space.name]


def test_ten_hits_of_a_search_cost_a_model_little(rim):
    space = rim.space()
    with member(space) as one:
        text = "A fact about the weather station, of the usual length of a fact that an agent states, with a date: 2026-11-20."
        one.good(
            "create_entities",
            entities=[
                {
                    "name": f"Station {n}",
                    "entity_type": "place",
                    "observations": [f"{text} {n}"],
                    "summary": f"{text} {text}",
                }
                for n in range(12)
            ],
        )
        told = one.good("search_nodes", query="weather station")
        assert len(told["results"]) == 10
        assert len(json.dumps(told, separators=(",", ":"), ensure_ascii=False)) / 4 <= 2_000
