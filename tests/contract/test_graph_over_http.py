"""The family `graph` as an agent meets it, over real HTTP: its shapes, its bounds, and the header that it cannot do without."""

from __future__ import annotations

import asyncio
import json

import pytest

from mcp_server.protocol import resources
from tests.support.live_server import client, run, running
from tests.support.world import until

MODES = ("legacy", "2026-07-28")
TOOLS = [
    "create_entities", "delete_entities", "open_nodes", "get_nodes_by_type", "get_recently_modified", "set_summary", "set_tags",
    "add_observations", "replace_observation", "delete_observations", "query_observations", "create_relations", "delete_relations",
    "update_relation_type", "get_relations_between", "get_neighborhood", "get_path", "get_orphans", "get_relation_gaps",
    "find_similar_nodes", "search_nodes", "get_consolidation_report", "get_pending_consolidation", "get_stats",
]  # fmt: skip


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


class Agent:
    """Calls in a workspace of its own, each over a connection that names it."""

    def __init__(self, rim, mode="2026-07-28"):
        self.rim, self.mode, self.space = rim, mode, rim.space()

    def ask(self, *calls, **headers):
        """What each call (name, arguments) gave: its data, or its error."""
        sent = {"X_Memory_Workspace": self.space.name} | headers

        async def work():
            async with client(self.rim, key=self.space.name, mode=self.mode, path="/mcp/graph", **sent) as mcp:
                return [told(await mcp.call_tool(name, given)) for name, given in calls]

        return run(work())

    def __call__(self, name, /, **given):
        (answer,) = self.ask((name, given))
        return answer

    def create(self, *names, **given):
        entities = [{"name": name, "entity_type": "thing"} | given for name in names]
        return self("create_entities", entities=entities)


def told(result):
    if result.is_error:
        assert result.structured_content is None
        return json.loads(result.content[0].text)["error"]
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


@pytest.fixture
def agent(rim):
    return Agent(rim)


def relation(source, kind, to):
    return {"from_entity": source, "to_entity": to, "relation_type": kind}


def edge(source, kind, to):
    return {"from": source, "to": to, "relation_type": kind}


@pytest.mark.parametrize("mode", [pytest.param(MODES[0], marks=pytest.mark.slow), *MODES[1:]])
def test_every_tool_answers_in_the_shape_that_was_agreed(rim, mode):
    agent = Agent(rim, mode)
    (made,) = agent.create("Ada Lovelace", observations=["Wrote an algorithm", "Knew Charles Babbage"], tags=["math"])[
        "results"
    ]
    assert made.keys() == {"name", "entity_type", "created_at"}
    assert made["created_at"].endswith("Z")
    agent.create("Charles Babbage", observations=["Built the difference engine"], summary="An engineer")
    agent.create("Loner", observations=["Wrote an algorithm too"])

    related = agent(
        "create_relations",
        relations=[relation("ada lovelace", "knew", "Charles Babbage"), relation("Ada Lovelace", "knew", "X")],
    )
    assert related == {
        "created": [edge("Ada Lovelace", "knew", "Charles Babbage")],
        "already_existed": [],
        "not_found": ["X"],
        "suspicious": [],
        "warnings": [],
    }
    assert (
        agent("create_relations", relations=[relation("Ada Lovelace", "knew", "Charles Babbage")])["already_existed"]
        == related["created"]
    )

    added = agent(
        "add_observations",
        observations=[
            {"entity_name": "Ada Lovelace", "contents": ["Died in 1852"]},
            {"entity_name": "X", "contents": ["x"]},
        ],
    )
    assert added["results"] == [
        {"entity_name": "Ada Lovelace", "added": [{"ordinal": 3, "content": "Died in 1852"}], "not_found": False},
        {"entity_name": "X", "added": [], "not_found": True},
    ]  # fmt: skip
    replaced = agent(
        "replace_observation", entity_name="Ada Lovelace", ordinal=3, new_content="Died on 27 November 1852"
    )
    assert replaced == {
        "entity_name": "Ada Lovelace",
        "ordinal": 3,
        "old_content": "Died in 1852",
        "new_content": "Died on 27 November 1852",
        "warnings": [],
        "suspicious": [],
    }
    dropped = agent("delete_observations", deletions=[{"entity_name": "Ada Lovelace", "ordinals": [2, 9]}])
    assert dropped["results"] == [{"entity_name": "Ada Lovelace", "deleted_ordinals": [2], "not_found_ordinals": [9]}]

    summarised = agent("set_summary", name="Ada Lovelace", summary="A mathematician")
    assert summarised.keys() == {"name", "summary", "updated_at", "version", "warnings", "suspicious"}
    assert agent("set_tags", name="Ada Lovelace", tags=["math", "history"])["tags"] == ["math", "history"]
    assert agent("set_tags", name="Ada Lovelace", tags=[], version=1)["code"] == "CONFLICT"

    opened = agent("open_nodes", names=["Ada Lovelace", "X"])
    (ada,) = opened["entities"]
    assert (ada["path"], ada["url"][-31:]) == ("Entities/Ada Lovelace.md", "%2FEntities%2FAda%20Lovelace.md")
    assert ada.keys() == {
        "path",
        "url",
        "name",
        "entity_type",
        "summary",
        "tags",
        "observations",
        "created_at",
        "updated_at",
        "version",
        "suspicious",
    }
    assert (ada["summary"], ada["tags"]) == ("A mathematician", ["math", "history"])
    assert ada["observations"] == [
        {"ordinal": 1, "content": "Wrote an algorithm"},
        {"ordinal": 3, "content": "Died on 27 November 1852"},
    ]
    assert ada["updated_at"] > ada["created_at"] == made["created_at"]
    assert (opened["relations"], opened["not_found"]) == ([edge("Ada Lovelace", "knew", "Charles Babbage")], ["X"])

    typed = agent("get_nodes_by_type", entity_type="thing", limit=2)
    assert [one["name"] for one in typed["results"]] == ["Ada Lovelace", "Charles Babbage"]
    assert typed["results"][0].keys() == {"name", "entity_type", "summary", "tags", "updated_at", "suspicious"}
    assert typed["truncated"] is True
    rest = agent("get_nodes_by_type", entity_type="thing", limit=2, cursor=typed["next_cursor"])
    assert ([one["name"] for one in rest["results"]], rest["truncated"], rest["next_cursor"]) == (
        ["Loner"],
        False,
        None,
    )
    recent = agent("get_recently_modified", limit=1)
    assert recent["results"] == [{"name": "Ada Lovelace", "entity_type": "thing", "summary": "A mathematician", "updated_at": agent("open_nodes", names=["Ada Lovelace"])["entities"][0]["updated_at"], "suspicious": []}]  # fmt: skip

    renamed = agent(
        "update_relation_type",
        from_entity="Ada Lovelace",
        to_entity="Charles Babbage",
        old_type="knew",
        new_type="wrote to",
    )
    assert renamed == {
        "from_entity": "Ada Lovelace",
        "to_entity": "Charles Babbage",
        "old_type": "knew",
        "new_type": "wrote to",
        "suspicious": [],
        "warnings": [],
    }
    wrote = edge("Ada Lovelace", "wrote to", "Charles Babbage")
    assert agent("get_relations_between", entity_a="Charles Babbage", entity_b="Ada Lovelace")["results"] == [wrote]
    near = agent("get_neighborhood", name="Charles Babbage")
    assert [one.keys() for one in near["nodes"]] == [{"name", "entity_type", "summary", "tags", "suspicious"}] * 2
    assert (near["relations"], near["truncated"]) == ([wrote], False)
    assert agent("get_path", from_entity="charles babbage", to_entity="Ada Lovelace") == {
        "found": True, "path": ["Charles Babbage", "Ada Lovelace"], "relations": [wrote], "suspicious": [],
    }  # fmt: skip
    assert agent("get_path", from_entity="Ada Lovelace", to_entity="Loner") == {
        "found": False,
        "path": [],
        "relations": [],
        "suspicious": [],
    }
    assert [one["name"] for one in agent("get_orphans")["results"]] == ["Loner"]

    found = agent("search_nodes", query="an algorithm written by Ada", limit=2)
    assert found["results"][0].keys() == {
        "path", "name", "entity_type", "summary", "matched_observation", "ordinal", "truncated", "matched_perspective", "score", "by", "suspicious",
    }  # fmt: skip
    assert (found["results"][0]["name"], found["results"][0]["ordinal"]) == ("Ada Lovelace", 1)
    assert found["results"][0]["matched_perspective"]
    worded = agent("search_nodes", query="difference engine", mode="text")
    assert [(one["name"], one["matched_perspective"]) for one in worded["results"]] == [("Charles Babbage", None)]
    asked = agent("query_observations", entity_name="Ada Lovelace", query="when did she die in November")
    assert asked["results"][0].keys() == {"ordinal", "content", "truncated", "by", "score", "suspicious"}
    assert asked["results"][0]["ordinal"] == 3
    assert agent("query_observations", entity_name="X", query="x")["code"] == "NOT_FOUND"

    assert agent("get_stats") == {
        "node_count": 3, "observation_count": 4, "relation_count": 1, "embedding_coverage": 1.0, "workspace": agent.space.name, "suspicious": [],
    }  # fmt: skip
    agent("add_observations", observations=[{"entity_name": "Loner", "contents": ["Admires Ada Lovelace"]}])
    assert agent("get_relation_gaps")["results"] == [
        {"node": "Loner", "referenced_name": "Ada Lovelace", "reference_count": 1}
    ]
    (pair,) = agent("find_similar_nodes", min_score=0.2, limit=1)["results"]
    assert {pair["node_a"], pair["node_b"]} == {"Ada Lovelace", "Loner"}
    assert pair.keys() == {"node_a", "node_b", "similarity", "node_a_type", "node_b_type"}
    (first, *_) = agent("get_pending_consolidation")["results"]
    assert first.keys() == {"name", "entity_type", "observation_count", "last_observation_at", "summary_updated_at"}
    report = agent("get_consolidation_report")
    assert report.keys() >= {
        "stale_summaries",
        "relation_candidates",
        "orphaned_nodes",
        "cluster_summary",
        "event_summary",
    }
    assert report["stale_summaries"][0].keys() == {
        "name",
        "entity_type",
        "last_modified",
        "observation_count",
        "draft_summary",
        "suspicious",
    }
    assert report["orphaned_nodes"][0].keys() == {"name", "entity_type", "updated_at"}
    assert report["event_summary"]["creates"] == 3

    assert agent(
        "delete_relations", relations=[relation("Ada Lovelace", "wrote to", "Charles Babbage"), relation("a", "b", "c")]
    ) == {"deleted": 1, "not_found": 1, "suspicious": []}
    gone = agent("delete_entities", entity_names=["loner", "X"])
    assert gone == {"deleted": ["Loner"], "not_found": ["X"], "suspicious": []}
    assert agent(
        "create_entities", entities=[{"name": "New", "entity_type": "x"}, {"name": "ada LOVELACE", "entity_type": "x"}]
    )["details"]["names"] == ["Ada Lovelace"]
    assert agent("open_nodes", names=["New"])["not_found"] == ["New"]


def test_the_family_has_an_endpoint_of_its_own_and_can_be_narrowed_to(rim):
    async def names(path, **headers):
        async with client(rim, path=path, **headers) as mcp:
            return [tool.name for tool in (await mcp.list_tools()).tools]

    assert run(names("/mcp/graph")) == TOOLS
    assert run(names("/mcp", X_MCP_Toolsets="graph")) == TOOLS
    reading = run(names("/mcp", X_MCP_Toolsets="graph", X_MCP_Readonly="true"))
    assert reading == [name for name in TOOLS if name.startswith(("get_", "open_", "find_", "search_", "query_"))]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["http", "sse", "stdio"])
@pytest.mark.parametrize("mode", MODES)
def test_without_the_header_there_is_no_workspace_even_for_a_key_that_opens_only_one(rim, way, mode):
    space = rim.space()
    space.tools.nodes.create([])

    async def asked(**headers):
        async with client(rim, key=space.name, way=way, mode=mode, **headers) as mcp:
            return [
                told(await mcp.call_tool(name, given))
                for name, given in (("get_stats", {}), ("open_nodes", {"names": ["x"]}))
            ]

    missing = run(asked())
    if way != "sse":  # where no connection begins
        assert missing == run(asked(X_Memory_Workspace="nowhere")) == run(asked(X_Memory_Workspace="secret"))
    assert {one["code"] for one in missing} == {"NOT_FOUND"}
    assert run(asked(X_Memory_Workspace=space.name))[0]["workspace"] == space.name


def test_nothing_crosses_workspaces(rim):
    one, other = Agent(rim), Agent(rim)
    one.create("Ada", "Secret", observations=["hidden treasure"])
    other.create("Ada", observations=["plain words"])
    assert other("open_nodes", names=["Secret"])["not_found"] == ["Secret"]
    assert [hit["name"] for hit in other("search_nodes", query="hidden treasure")["results"]] == ["Ada"]
    assert other("search_nodes", query="treasure", mode="text")["results"] == []
    assert other("create_relations", relations=[relation("Ada", "knows", "Secret")])["not_found"] == ["Secret"]
    assert other("delete_entities", entity_names=["Ada"])["deleted"] == ["Ada"]
    assert one("get_stats")["observation_count"] == 2


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("create_entities", {"entities": []}, "entities"),
        ("create_entities", {"entities": [{"name": "x", "entity_type": "y"}] * 101}, "entities"),
        ("create_entities", {"entities": [{"name": "x"}]}, "entity_type"),
        ("create_entities", {"entities": [{"name": "x", "entity_type": "y", "id": "z"}]}, "id"),
        ("create_entities", {"entities": [{"name": "x" * 257, "entity_type": "y"}]}, "name"),
        (
            "create_entities",
            {"entities": [{"name": "x", "entity_type": "y", "observations": ["z"] * 201}]},
            "observations",
        ),
        ("open_nodes", {"names": "x"}, "names"),
        ("add_observations", {"observations": [{"entity_name": "x", "contents": []}]}, "contents"),
        ("add_observations", {"observations": [{"entity_name": "x", "contents": ["y" * 10_001]}]}, "contents"),
        ("replace_observation", {"entity_name": "x", "ordinal": 0, "new_content": "y"}, "ordinal"),
        ("replace_observation", {"entity_name": "x", "ordinal": True, "new_content": "y"}, "ordinal"),
        ("set_summary", {"name": "x", "summary": "y" * 2_001}, "summary"),
        ("get_recently_modified", {"days": 0}, "days"),
        ("get_neighborhood", {"name": "x", "depth": 11}, "depth"),
        ("find_similar_nodes", {"min_score": 1.5}, "min_score"),
        ("find_similar_nodes", {"min_score": "NaN"}, "min_score"),
        ("search_nodes", {"query": ""}, "query"),
        ("search_nodes", {"query": "x", "mode": "hybrid"}, "mode"),
        ("search_nodes", {"query": "x", "workspace": "secret"}, "workspace"),
        ("get_stats", {"workspace": "secret"}, "workspace"),
        ("create_relations", {"relations": [relation("a", "x" * 101, "b")]}, "relation_type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_out_of_bounds_is_named(rim, name, given, word):
    error = Agent(rim)(name, **given)
    assert error["code"] == "INVALID_ARGUMENT"
    assert word in error["message"]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("create_entities", {"entities": []}, "entities: must have 1 or more items"),
        ("create_entities", {"entities": [{"name": "x"}]}, "entities.0.entity_type: is required"),
        ("open_nodes", {"names": "x"}, "names: must be a list"),
        ("open_nodes", {"names": ["x"] * 101}, "names: must have 100 or fewer items"),
    ],
)
def test_a_bad_list_is_told_in_the_words_of_the_schema(rim, name, given, message):
    assert Agent(rim)(name, **given)["message"] == message


def test_lists_may_come_as_json_in_a_text(agent):
    made = agent("create_entities", entities='[{"name": "x", "entity_type": "y", "observations": ["z"]}]')
    assert [one["name"] for one in made["results"]] == ["x"]
    assert agent("open_nodes", names='["x"]')["entities"][0]["name"] == "x"


def test_a_hit_whose_summary_alone_is_cut_is_truncated(rim):
    agent = Agent(rim)
    agent.create("Long", observations=["needle"], summary="a summary " * 150)
    agent.create("Short", observations=["needle"], summary="a summary")
    for mode in ("embedding", "text"):
        found = {one["name"]: one for one in agent("search_nodes", query="needle", mode=mode)["results"]}
        assert (found["Long"]["matched_observation"], found["Long"]["truncated"]) == ("needle", True)
        assert (found["Short"]["summary"], found["Short"]["truncated"]) == ("a summary", False)


@pytest.mark.parametrize(
    "filler",
    ["a long sentence about nothing ", "長い文章がここに続きます。", '"\\\n'],
    ids=["latin", "japanese", "escaped"],
)
def test_ten_hits_are_two_thousand_tokens_at_most(rim, filler):
    agent = Agent(rim)
    agent.create(
        *(f"{n} {filler.strip() * 20}"[:60].replace("\n", "") for n in range(12)),
        observations=[f"needle {filler * 400}"[:9_000].strip()],
        summary=(filler * 80)[:1_900],
    )
    for mode in ("embedding", "text"):
        found = agent("search_nodes", query="needle", mode=mode)
        assert len(found["results"]) == 10
        assert all(one["truncated"] for one in found["results"])
        assert all(one["matched_observation"].startswith("needle") for one in found["results"])
        shown = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        assert len(shown.encode()) / 4 <= 2_000


def test_observations_of_a_long_node_share_a_budget(rim):
    agent = Agent(rim)
    agent.create("Long", observations=[f"needle {n} {'x ' * 2_000}" for n in range(20)])
    asked = agent("query_observations", entity_name="Long", query="needle")
    assert len(asked["results"]) == 20
    assert sum(len(one["content"]) for one in asked["results"]) <= 8_000
    assert len(agent("open_nodes", names=["Long"])["entities"][0]["observations"][0]["content"]) > 4_000


def test_a_note_of_a_node_is_a_resource_and_who_watches_it_is_told(rim):
    agent = Agent(rim)
    agent.create("Ada", observations=["one"])
    uri = resources.note_uri(agent.space.name, "Entities/Ada.md")

    async def work():
        async with client(rim, key=agent.space.name, mode="2026-07-28") as mcp:
            read = await mcp.read_resource(uri)
            assert read.contents[0].text == "## Observations\n- one ^o1\n"
            async with mcp.listen(resource_subscriptions=[uri]) as heard:
                writing = asyncio.create_task(
                    asyncio.to_thread(
                        agent, "add_observations", observations=[{"entity_name": "Ada", "contents": ["two"]}]
                    )
                )
                async for event in heard:
                    assert uri in str(event)
                    break
                await writing
            return (await mcp.read_resource(uri)).contents[0].text

    assert "- two ^o2" in run(work())


def test_a_node_deleted_as_a_thought_takes_its_relations_along(rim):
    agent = Agent(rim)
    agent.create("Ada", "Kay")
    agent("create_relations", relations=[relation("Kay", "admires", "Ada")])
    id = agent.space.tools.nodes.get("Ada").id
    assert agent.space.rest("DELETE", f"/thought/{id}").status_code == 200
    assert agent("open_nodes", names=["Ada", "Kay"])["not_found"] == ["Ada"]
    assert "Ada" not in (agent.space.folder / "Entities/Kay.md").read_text()


def test_a_note_made_in_obsidian_is_a_node(rim):
    agent = Agent(rim)
    agent.create("Ada")
    folder = agent.space.folder / "Entities"
    folder.joinpath("Grace Hopper.md").write_text(
        "A person's words.\n\n## Observations\n- Found a bug\n\n## Relations\n- admires:: [[Ada]]\n"
    )
    until(lambda: agent("open_nodes", names=["grace hopper"])["entities"])
    until(lambda: "^o1" in folder.joinpath("Grace Hopper.md").read_text())
    opened = agent("open_nodes", names=["Grace Hopper"])
    assert opened["entities"][0]["observations"] == [{"ordinal": 1, "content": "Found a bug"}]
    assert opened["relations"] == [edge("Grace Hopper", "admires", "Ada")]
    agent("add_observations", observations=[{"entity_name": "Grace Hopper", "contents": ["Was an admiral"]}])
    text = folder.joinpath("Grace Hopper.md").read_text()
    assert "A person's words.\n" in text
    assert "- Was an admiral ^o2\n" in text


@pytest.mark.slow
def test_twenty_agents_at_once_lose_nothing(rim):
    agent = Agent(rim)
    agent.create("Hub")

    async def one(number):
        async with client(
            rim, key=agent.space.name, mode=MODES[number % 2], X_Memory_Workspace=agent.space.name
        ) as mcp:
            for name, given in (
                ("create_entities", {"entities": [{"name": f"n{number}", "entity_type": "x"}]}),
                ("add_observations", {"observations": [{"entity_name": "Hub", "contents": [f"fact {number}"]}]}),
                ("create_relations", {"relations": [relation("Hub", "leads to", f"n{number}")]}),
            ):
                assert "code" not in told(await mcp.call_tool(name, given))

    async def work():
        await asyncio.gather(*(one(number) for number in range(20)))

    run(work())
    opened = agent("open_nodes", names=["Hub"])
    assert sorted(one["content"] for one in opened["entities"][0]["observations"]) == sorted(
        f"fact {n}" for n in range(20)
    )
    assert [one["ordinal"] for one in opened["entities"][0]["observations"]] == list(range(1, 21))
    assert len(opened["relations"]) == 20


@pytest.mark.parametrize("mode", MODES)
def test_prompts_name_the_tools_of_the_families_that_are_listed(rim, mode):
    space = rim.space()

    async def asked(path="/mcp", **headers):
        async with client(rim, key=space.name, mode=mode, path=path, **headers) as mcp:
            given = {"recall": {"question": "who?"}, "capture-session": {}, "consolidate": {}}
            return [
                (await mcp.get_prompt(name, arguments)).messages[0].content.text for name, arguments in given.items()
            ]

    own = {"X_Memory_Workspace": space.name}
    notes = ("semantic_search", "capture_thought", "delete_thought")
    graph = ("search_nodes", "create_entities", "get_consolidation_report")
    for told, there, missing in (
        (run(asked(**own)), notes + graph, ()),
        (run(asked("/mcp/graph", **own)), graph, notes),
        (run(asked("/mcp/thoughts", **own)), notes, graph),
        (run(asked(X_MCP_Toolsets="thoughts", **own)), notes, graph),
        (run(asked()), notes, graph),  # without the header no tool of the graph would answer
    ):
        for text, tool in zip(told * 2, there, strict=False):
            assert tool in text
        assert not [tool for tool in missing if tool in "".join(told)]
        for text in told:
            steps = [line for line in text.splitlines() if line[:1].isdigit()]
            assert [line.partition(".")[0] for line in steps] == [str(n) for n in range(1, len(steps) + 1)]
            assert len(steps) >= 3
