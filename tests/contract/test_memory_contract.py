"""The seven tools of the family memory as their seed has them, over MCP on real stores, by their dotted and their safe names."""

from __future__ import annotations

import json
import math
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.answer_schemas import MEMORY
from tests.support.live_server import client, run, running
from tests.support.mcp_agent import agent, member

DIALECTS = ("legacy", "2026-07-28")
NOBODY = "00000000-0000-4000-8000-000000000000"
NASTY = [
    "\ufeffmark", "a\r\nb\rc\n\n", "\x00\x01\x7f\x85", "\u2028\u2029\x0b\x0c", "e\u0301 \u00e9", "\u202eright to left\u202c",
    "---\nid: mine\n---\nnot properties", "---\n", "%%comment%% [[a|b]]", "```\nnever closed", " \t ", "日本語のメモ。", "x" * 20_000,
    "## Observations\n- no ^o1\n## Relations\n- knew:: [[Ada]]", '{"json": "\\ud800"}',
]  # fmt: skip


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


# What a tool does is tried in the newer dialect with safe names, and in all pairs in the long run; each dialect and each kind of name
# calls every tool once.
PAIRS = [(mode, names) for mode in DIALECTS for names in ("dotted", "safe")]
EACH = [PAIRS[0], PAIRS[-1]]


@pytest.fixture(
    params=[*(pytest.param(pair, marks=pytest.mark.slow) for pair in PAIRS[:-1]), PAIRS[-1]],
    ids="-".join,
)
def one(rim, request):
    """An agent in a workspace of its own, that uses one kind of name."""
    mode, kind = request.param
    names = {} if kind == "dotted" else {name: name.replace(".", "_") for name in MEMORY}
    with member(rim.space(), mode, names=names) as made:
        yield made


@pytest.fixture
def memos(rim):
    """An agent of one kind, where the kind does not matter."""
    with member(rim.space()) as made:
        yield made


def save(one, content, namespace="default", **more):
    return one.good("memory.save", namespace=namespace, content=content, **more)


def relate(one, source, target, tag="t", **more):
    made = one.good("memory.relation.save", sourceMemoId=source, targetMemoId=target, tag=tag, **more)
    assert made.pop("warnings") == []
    return made


def found(one, **given):
    return one.good("memory.search", **{"namespace": "default", **given})["items"]


def contents(one, **given):
    return [item["content"] for item in found(one, **given)]


def walked(one, start, **given):
    told = one.good("memory.relation.graph", startMemoId=start, **given)
    return told["edges"], {node["memo_id"] for node in told["nodes"]}


@pytest.mark.parametrize("mode", DIALECTS)
def test_dotted_names_are_listed_where_they_are_asked_for(rim, mode):
    async def names(**headers):
        async with client(rim, mode=mode, path="/mcp/memory", **headers) as mcp:
            return [tool.name for tool in (await mcp.list_tools()).tools]

    assert run(names()) == [name.replace(".", "_") for name in MEMORY]
    assert run(names(X_MCP_Tool_Names="dotted")) == list(MEMORY)


@pytest.mark.parametrize("one", EACH, indirect=True, ids="-".join)
def test_every_tool_answers_with_the_shape_of_its_seed(one):
    first = save(one, "The keel is lead.", metadata={"kind": "ship", "n": {"deep": [1, None]}}, title="Keel")
    second = save(one, "The sails are hemp.")
    assert (first["version"], first["metadata"]) == (1, {"kind": "ship", "n": {"deep": [1, None]}})
    assert first["created_at"] == first["updated_at"]
    assert contents(one, query="lead keel")[0] == "The keel is lead."
    made = relate(one, first["memo_id"], second["memo_id"], "needs", weight=0.25, reason="to sail")
    assert (made["weight"], made["reason"], made["version"], made["namespace"]) == (0.25, "to sail", 1, "default")
    listed = one.good("memory.relation.list")
    assert listed["edges"] == [made]
    assert {node["memo_id"] for node in listed["nodes"]} == {first["memo_id"], second["memo_id"]}
    edges, nodes = walked(one, first["memo_id"])
    assert [(edge["depth"], edge["direction"]) for edge in edges] == [(1, "forward")]
    assert edges[0]["path"] == [first["memo_id"], second["memo_id"]]
    assert nodes == {first["memo_id"], second["memo_id"]}
    gone = one.good(
        "memory.relation.delete", sourceMemoId=first["memo_id"], targetMemoId=second["memo_id"], tag="needs"
    )
    assert gone["relation"] == made
    assert one.good("memory.delete", namespace="default", memo_id=first["memo_id"])["deleted"] is True
    assert contents(one) == ["The sails are hemp."]


def test_an_empty_workspace_has_empty_answers(memos):
    assert found(memos) == found(memos, query="x") == found(memos, metadata_filter={"a": 1}) == []
    told = memos.good("memory.relation.list")
    assert (told["edges"], told["nodes"]) == ([], [])


def test_a_save_with_an_id_changes_the_memo_and_raises_its_version(one):
    made = save(one, "one", metadata={"a": 1, "b": {"c": 2}})
    again = save(one, "two", memo_id=made["memo_id"], metadata={"b": 3, "d": 4})
    assert (again["memo_id"], again["version"], again["created_at"]) == (made["memo_id"], 2, made["created_at"])
    assert again["updated_at"] >= made["updated_at"]
    assert again["metadata"] == {"a": 1, "b": 3, "d": 4}
    replaced = save(one, "two", memo_id=made["memo_id"], metadata={"z": 1}, metadata_mode="replace")
    assert (replaced["metadata"], replaced["version"]) == ({"z": 1}, 3)
    assert contents(one) == ["two"]
    assert contents(one, query="two")[0] == "two"


def test_a_save_under_a_new_id_creates_that_memo(one):
    id = str(uuid.uuid4())
    made = save(one, "mine", memo_id=id)
    assert (made["memo_id"], made["version"]) == (id, 1)
    assert save(one, "mine too", memo_id=id)["version"] == 2
    assert contents(one) == ["mine too"]


def test_a_version_that_is_not_current_is_a_conflict(one):
    made = save(one, "one")
    save(one, "two", memo_id=made["memo_id"], version=1)
    code, told = one.ask("memory.save", namespace="default", content="three", memo_id=made["memo_id"], version=1)
    assert code == "CONFLICT"
    assert "2" in json.dumps(told)
    assert contents(one) == ["two"]


def test_two_memos_may_say_the_same(memos):
    ids = {save(memos, "said twice")["memo_id"] for _ in range(2)}
    assert len(ids) == 2
    assert contents(memos) == ["said twice"] * 2


@pytest.mark.slow
def test_what_comes_back_is_byte_for_byte_what_went_in(one, rim):
    ids = {save(one, text)["memo_id"]: text for text in NASTY}
    assert {item["memo_id"]: item["content"] for item in found(one, k=100)} == ids
    rim.world.run()
    assert {item["memo_id"]: item["content"] for item in found(one, k=100)} == ids


def test_namespaces_are_folders_and_keep_apart(one):
    here = save(one, "whale here")
    there = save(one, "whale there", namespace="alpha/beta")
    assert there["namespace"] == "alpha/beta"
    assert contents(one) == ["whale here"]
    assert contents(one, namespace="alpha/beta", query="whale") == ["whale there"]
    assert contents(one, namespace="gamma") == []
    for id, namespace in ((here["memo_id"], "alpha/beta"), (there["memo_id"], "default")):
        assert one.refused("memory.delete", namespace=namespace, memo_id=id) == "NOT_FOUND"
    ends = {"sourceMemoId": here["memo_id"], "targetMemoId": there["memo_id"], "tag": "t"}
    assert one.refused("memory.relation.save", **ends) == "NOT_FOUND"


FILTERS = [
    ({}, {"a", "b", "c"}),
    ({"kind": "note"}, {"a", "b"}),
    ({"kind": "NOTE"}, set()),
    ({"kind": "note", "n": 1}, {"a"}),
    ({"n": 1.0}, {"a"}),
    ({"n": "1"}, set()),
    ({"n": True}, set()),
    ({"deep": {"er": "x"}}, {"a"}),
    ({"deep": {"nothing": None}}, set()),
    ({"kind": {"contains": "ot"}}, {"a", "b"}),
    ({"deep": {"er": {"contains": "x"}}}, {"a"}),
    ({"kind": {"contains": "zz"}}, set()),
    ({"日本": "語"}, {"c"}),
    ({"missing": "x"}, set()),
    ({"flag": False}, {"b"}),
]


@pytest.fixture(scope="module")
def described(rim):
    """An agent among memos with metadata."""
    with member(rim.space()) as one:
        save(one, "memo a", metadata={"kind": "note", "n": 1, "deep": {"er": "x", "other": 2}})
        save(one, "memo b", metadata={"kind": "note", "n": 2, "flag": False})
        save(one, "memo c", metadata={"kind": "task", "日本": "語"})
        yield one


@pytest.mark.parametrize(("wanted", "expected"), FILTERS, ids=[str(wanted) for wanted, _ in FILTERS])
@pytest.mark.parametrize("query", [{}, {"query": "memo"}], ids=["alone", "with a query"])
def test_metadata_filters_are_exact_or_contain(described, wanted, expected, query):
    assert {text.split()[1] for text in contents(described, metadata_filter=wanted, **query)} == expected


def test_scores_are_those_of_the_metric(memos):
    for text in ("keel of lead", "keel of iron", "potato soup"):
        save(memos, text)
    cosine = found(memos, query="keel of lead")
    assert cosine[0]["content"] == "keel of lead"
    assert cosine[0]["score"] == pytest.approx(1.0, abs=1e-3)
    l2 = found(memos, query="keel of lead", distance_metric="l2")
    assert [item["content"] for item in l2] == [item["content"] for item in cosine]
    for one, other in zip(cosine, l2, strict=True):  # unit vectors: |a-b|² = 2 - 2cos
        assert other["score"] == pytest.approx(math.sqrt(max(0.0, 2 - 2 * one["score"])), abs=0.02)
    assert contents(memos, query="keel of lead", minimum_similarity=0.9) == ["keel of lead"]
    assert contents(memos, query="keel of lead", k=1) == ["keel of lead"]
    refused = memos.refused(
        "memory.search", namespace="default", query="x", distance_metric="l2", minimum_similarity=0.5
    )
    assert refused == "INVALID_ARGUMENT"


def test_a_pivot_finds_its_likes_without_itself(memos, rim):
    pivot = save(memos, "keel of lead", metadata={"kind": "p"})
    like = save(memos, "keel of lead and oak", metadata={"kind": "l"})
    save(memos, "potato soup")
    calls = len(rim.encoder.calls)
    told = found(memos, pivot_memo_id=pivot["memo_id"])
    assert told[0]["memo_id"] == like["memo_id"]
    assert pivot["memo_id"] not in {item["memo_id"] for item in told}
    assert found(memos, pivot_memo_id=pivot["memo_id"], exclude_pivot=False)[0]["memo_id"] == pivot["memo_id"]
    assert len(rim.encoder.calls) == calls  # its vectors are stored
    assert contents(memos, pivot_memo_id=pivot["memo_id"], metadata_filter={"kind": "l"}) == ["keel of lead and oak"]
    assert memos.refused("memory.search", namespace="default", pivot_memo_id=NOBODY) == "NOT_FOUND"


def test_a_relation_is_upserted_and_its_version_moves_only_on_a_change(one):
    a, b = save(one, "a")["memo_id"], save(one, "b")["memo_id"]
    made = relate(one, a, b, weight=0.5, reason="r")
    same = relate(one, a, b, weight=0.5, reason="r")
    assert (same["version"], same["updated_at"]) == (1, made["updated_at"])
    assert relate(one, a, b, weight=0.75, reason="r")["version"] == 2
    last = relate(one, a, b, weight=0.75, reason="other\nreason")
    assert (last["version"], last["reason"], last["created_at"]) == (3, "other\nreason", made["created_at"])
    relate(one, b, a)
    relate(one, a, b, "second")
    assert len(one.good("memory.relation.list")["edges"]) == 3
    assert one.good("memory.relation.list", tag="t", sourceMemoId=a)["edges"] == [last]
    assert len(one.good("memory.relation.list", targetMemoId=b, limit=1)["edges"]) == 1


def test_deleting_either_end_drops_the_relation(one, rim):
    ids = [save(one, text)["memo_id"] for text in "abc"]
    for source, target in zip(ids, [*ids[1:], ids[0]], strict=True):
        relate(one, source, target)
    one.good("memory.delete", namespace="default", memo_id=ids[1])
    (edge,) = one.good("memory.relation.list")["edges"]
    assert (edge["sourceMemoId"], edge["targetMemoId"]) == (ids[2], ids[0])
    save(one, "b is back", memo_id=ids[1])
    assert len(one.good("memory.relation.list")["edges"]) == 1
    rim.world.run()
    assert len(one.good("memory.relation.list")["edges"]) == 1


def test_unknown_memos_are_not_found(memos):
    id = save(memos, "a")["memo_id"]
    for tool, given in (
        ("memory.delete", {"namespace": "default", "memo_id": NOBODY}),
        ("memory.relation.save", {"sourceMemoId": id, "targetMemoId": NOBODY, "tag": "t"}),
        ("memory.relation.save", {"sourceMemoId": NOBODY, "targetMemoId": id, "tag": "t"}),
        ("memory.relation.delete", {"namespace": "default", "sourceMemoId": id, "targetMemoId": NOBODY, "tag": "t"}),
        ("memory.relation.delete", {"namespace": "default", "sourceMemoId": id, "targetMemoId": id, "tag": "t"}),
        ("memory.relation.graph", {"startMemoId": NOBODY}),
    ):
        assert memos.refused(tool, **given) == "NOT_FOUND", tool
    assert memos.good("memory.relation.list", sourceMemoId=NOBODY)["edges"] == []


def test_a_walk_has_directions_depths_and_paths_and_ends_in_a_ring(one):
    a, b, c, d = ids = [save(one, text)["memo_id"] for text in "abcd"]
    for source, target in ((a, b), (b, c), (c, a)):
        relate(one, source, target, "ring")
    relate(one, d, a, "spoke")
    edges, nodes = walked(one, a)
    assert [(edge["depth"], edge["path"]) for edge in edges] == [(1, [a, b]), (2, [a, b, c]), (3, [a, b, c, a])]
    assert nodes == {a, b, c}
    edges, nodes = walked(one, a, direction="backward", maxDepth=1)
    assert {(edge["sourceMemoId"], edge["direction"]) for edge in edges} == {(c, "backward"), (d, "backward")}
    assert nodes == {a, c, d}
    edges, nodes = walked(one, a, direction="both", maxDepth=10)
    assert nodes == set(ids)
    assert len({(edge["sourceMemoId"], edge["targetMemoId"], edge["tag"]) for edge in edges}) == 4
    assert [edge["tag"] for edge in walked(one, d, tag="spoke")[0]] == ["spoke"]
    assert len(walked(one, a, direction="both", limit=2)[0]) == 2


BAD = [
    ("memory.save", {"namespace": "default"}),
    ("memory.save", {"namespace": "default", "content": ""}),
    ("memory.save", {"namespace": "", "content": "x"}),
    ("memory.save", {"namespace": "../work", "content": "x"}),
    ("memory.save", {"namespace": "Entities", "content": "x"}),
    ("memory.save", {"namespace": "a/" * 20, "content": "x"}),
    ("memory.save", {"namespace": "default", "content": "x", "memo_id": "../../x"}),
    ("memory.save", {"namespace": "default", "content": "x", "memo_id": ""}),
    ("memory.save", {"namespace": "default", "content": "x", "metadata": {"promote": True}}),
    ("memory.save", {"namespace": "default", "content": "x", "metadata": {"relations": []}}),
    ("memory.save", {"namespace": "default", "content": "x", "metadata": []}),
    ("memory.save", {"namespace": "default", "content": "x", "metadata_mode": "forget"}),
    ("memory.save", {"namespace": "default", "content": "x", "title": "a" * 501}),
    ("memory.save", {"namespace": "default", "content": "x", "title": " \t"}),
    ("memory.save", {"namespace": "default", "content": "x", "title": "a\nb"}),
    ("memory.save", {"namespace": "default", "content": "x", "title": "a\u2028b"}),
    ("memory.save", {"namespace": "default", "content": "x", "colour": 1}),
    ("memory.search", {"namespace": "default", "k": 0}),
    ("memory.search", {"namespace": "default", "k": 10**6}),
    ("memory.search", {"namespace": "default", "query": "x", "distance_metric": "dot"}),
    ("memory.search", {"namespace": "default", "query": "x", "minimum_similarity": 7}),
    ("memory.search", {"namespace": "default", "query": "x" * 100_000}),
    ("memory.search", {"namespace": "default", "metadata_filter": "x"}),
    ("memory.search", {"namespace": "default", "metadata_filter": {"a": [{"b": number} for number in range(101)]}}),
    ("memory.delete", {"namespace": "default"}),
    ("memory.relation.save", {"sourceMemoId": NOBODY, "targetMemoId": NOBODY}),
    ("memory.relation.save", {"sourceMemoId": NOBODY, "targetMemoId": NOBODY, "tag": ""}),
    ("memory.relation.save", {"sourceMemoId": NOBODY, "targetMemoId": NOBODY, "tag": "t" * 65}),
    ("memory.relation.save", {"sourceMemoId": NOBODY, "targetMemoId": NOBODY, "tag": "t", "weight": 1.01}),
    ("memory.relation.save", {"sourceMemoId": NOBODY, "targetMemoId": NOBODY, "tag": "t", "weight": -0.1}),
    ("memory.relation.list", {"limit": 0}),
    ("memory.relation.list", {"limit": 501}),
    ("memory.relation.graph", {}),
    ("memory.relation.graph", {"startMemoId": NOBODY, "direction": "up"}),
    ("memory.relation.graph", {"startMemoId": NOBODY, "maxDepth": 0}),
    ("memory.relation.graph", {"startMemoId": NOBODY, "maxDepth": 11}),
    ("memory.relation.graph", {"startMemoId": NOBODY, "limit": 1001}),
]


def test_what_is_malformed_or_too_much_is_refused_and_changes_nothing(one, rim):
    save(one, "x")
    before = rim.files()
    for tool, given in BAD:
        assert one.refused(tool, **given) == "INVALID_ARGUMENT", (tool, given)
    assert rim.files() == before


def test_what_is_not_a_memo_can_not_be_changed_as_one(rim):
    """A node has its own tools; a save by its id must not overwrite what it says."""
    space = rim.space()
    with member(space) as one:
        one.good("create_entities", entities=[{"name": "Ada", "entity_type": "person", "observations": ["fact"]}])
        (file,) = space.folder.rglob("*.md")
        before = file.read_bytes()
        id = next(line.split(": ")[1] for line in file.read_text().splitlines() if line.startswith("id: "))
        assert one.ask("memory.save", namespace="default", content="gone", memo_id=id)[0] in (
            "NOT_FOUND",
            "CONFLICT",
            "INVALID_ARGUMENT",
        )
        assert one.refused("memory.delete", namespace="default", memo_id=id) == "NOT_FOUND"
        assert file.read_bytes() == before


def test_nothing_crosses_the_wall_between_workspaces(rim):
    mine, theirs = rim.space(), rim.space()
    with member(mine) as one, member(theirs) as other:
        secret = save(other, "a secret quokka", metadata={"kind": "quokka"})
        partner = save(other, "its partner")
        relate(other, secret["memo_id"], partner["memo_id"], "quokka")
        own = save(one, "a walrus")["memo_id"]
        unknown = "0" * 8 + secret["memo_id"][8:]
        before = rim.files()
        for tool, given in (
            ("memory.delete", {"namespace": "default", "memo_id": "ID"}),
            ("memory.search", {"namespace": "default", "pivot_memo_id": "ID"}),
            ("memory.relation.save", {"sourceMemoId": own, "targetMemoId": "ID", "tag": "t"}),
            ("memory.relation.save", {"sourceMemoId": "ID", "targetMemoId": own, "tag": "t"}),
            ("memory.relation.delete", {"namespace": "default", "sourceMemoId": "ID", "targetMemoId": own, "tag": "t"}),
            ("memory.relation.graph", {"startMemoId": "ID"}),
        ):
            told = []
            for id in (secret["memo_id"], unknown):
                code, error = one.ask(tool, **{key: id if value == "ID" else value for key, value in given.items()})
                assert code == "NOT_FOUND", tool
                told.append(error["message"].replace(id, "ID"))
            assert told[0] == told[1], tool
        assert rim.files() == before
        heard = [found(one, k=100), found(one, query="quokka"), found(one, metadata_filter={"kind": "quokka"})]
        assert "quokka" not in json.dumps(heard)
        assert one.good("memory.relation.list")["edges"] == []
        taken = one.ask("memory.save", namespace="default", content="over it", memo_id=secret["memo_id"])
        assert "quokka" not in json.dumps(taken)
        assert contents(other, query="secret quokka")[0] == "a secret quokka"


def test_without_the_header_a_key_s_only_workspace_is_meant(rim):
    space = rim.space()
    with agent(rim, key=space.name) as one:
        save(one, "by the key alone")
    with member(space) as one:
        assert contents(one) == ["by the key alone"]


@pytest.mark.parametrize(
    ("clients", "turns", "memos"),
    [pytest.param(8, 1, 2, id="a few"), pytest.param(8, 3, 5, id="many", marks=pytest.mark.slow)],
)
def test_eight_clients_upsert_the_same_memos_and_double_nothing(rim, clients, turns, memos):
    space = rim.space()
    ids = [str(uuid.uuid4()) for _ in range(memos)]

    def work(number):
        with member(space) as one:
            for turn in range(turns):
                for id in ids:
                    save(one, f"client {number} turn {turn}", memo_id=id, metadata={f"c{number}": turn})

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    with member(space) as one:
        for check in range(2):
            items = {item["memo_id"]: item for item in found(one, k=100)}
            assert sorted(items) == sorted(ids)
            for item in items.values():
                assert item["metadata"] == {f"c{number}": turns - 1 for number in range(clients)}  # every merge counts
                assert save(one, f"last {check}", memo_id=item["memo_id"])["version"] == clients * turns + 1 + check
            space.rim.world.run()
    assert len(list(space.folder.rglob("*.md"))) == memos


@pytest.mark.slow
def test_twenty_relations_saved_at_once_on_one_memo_are_all_kept(rim):
    space = rim.space()
    with member(space) as one:
        hub = save(one, "hub")["memo_id"]
        leaves = [save(one, f"leaf {n}")["memo_id"] for n in range(20)]

        def work(leaf):
            with member(space) as other:
                relate(other, hub, leaf, "a", weight=0.5)
                relate(other, leaf, hub, "b")

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(work, leaves))
        edges = {
            (edge["sourceMemoId"], edge["targetMemoId"], edge["tag"])
            for edge in one.good("memory.relation.list", limit=500)["edges"]
        }
        assert edges == {(hub, leaf, "a") for leaf in leaves} | {(leaf, hub, "b") for leaf in leaves}
