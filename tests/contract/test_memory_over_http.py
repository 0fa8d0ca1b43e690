"""The family `memory` as agents call it: seven tools over real HTTP, on real stores."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcp_server.operations.wire_format import replace_surrogates
from mcp_server.tools.thoughts_schema import LONGEST_METADATA
from tests.support.live_server import client, run, running

NAMES = [
    "memory.save", "memory.search", "memory.delete", "memory.relation.save", "memory.relation.delete", "memory.relation.list",
    "memory.relation.graph",
]  # fmt: skip
MEMO = {"memo_id", "namespace", "title", "tags", "metadata", "created_at", "updated_at", "version", "path"}
RELATION = {
    "namespace",
    "sourceMemoId",
    "targetMemoId",
    "tag",
    "weight",
    "reason",
    "created_at",
    "updated_at",
    "version",
}
WHEN = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NASTY = [
    "\ufeffmark", "a\r\nb\rc\n\n", "\x00\x01\x7f\x85", "\u2028\u2029\x0b\x0c", "e\u0301 \u00e9", "---\nid: mine\n---\nnot properties",
    "---\n", "```\nnever closed", " \t ", "日本語のメモ。", "\u202eright to left", "x" * 90_000, "%%c%% [[a|b]] #tag", "<script>x</script>",
]  # fmt: skip


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def calls(space, *asked, key=None, **headers):
    """What several calls of one client give, each the code and what was told."""

    async def work():
        async with client(space.rim, key=key or space.name, mode="2026-07-28", path="/mcp/memory", **headers) as mcp:
            return [await mcp.call_tool(tool, given) for tool, given in asked]

    told = []
    for result in run(work()):
        (block,) = result.content
        shown = json.loads(block.text)
        if result.is_error:
            assert result.structured_content is None
            told.append((shown["error"]["code"], shown["error"]))
        else:
            assert shown == result.structured_content
            told.append(("ok", shown))
    return told


def ask(space, tool, /, **given):
    return calls(space, (tool, given))[0]


def good(space, tool, /, **given):
    code, told = ask(space, tool, **given)
    assert code == "ok", told
    return told


def test_dotted_names_are_called_and_safe_names_are_listed(rim):
    space = rim.space()

    async def listed(**headers):
        async with client(rim, path="/mcp/memory", **headers) as mcp:
            return [tool.name for tool in (await mcp.list_tools()).tools]

    assert run(listed()) == [name.replace(".", "_") for name in NAMES]
    assert run(listed(X_MCP_Tool_Names="dotted")) == NAMES
    assert run(listed(X_MCP_Readonly="true")) == ["memory_search", "memory_relation_list", "memory_relation_graph"]
    for name in ("memory.search", "memory_search"):
        assert good(space, name) == {"items": [], "degraded": [], "suspicious": []}


def test_every_tool_answers_as_the_seed_has_it(rim):
    space = rim.space()
    given = {
        "namespace": "team",
        "content": "The keel is lead.",
        "metadata": {"p": {"q": [1, None, "x"]}},
        "title": "Keel",
    }
    one = good(space, "memory.save", **given)
    assert set(one) == MEMO | {"created", "warnings", "suspicious", "url"}
    assert one["path"] == "team/Keel.md"
    assert one["url"].endswith("%2Fteam%2FKeel.md")
    assert (one["namespace"], one["metadata"], one["version"], one["title"]) == ("team", given["metadata"], 1, "Keel")
    assert one["created_at"] == one["updated_at"]
    two = good(space, "memory.save", namespace="team", content="Sails are hemp.")
    again = good(space, "memory.save", namespace="team", content="The keel is iron.", memo_id=one["memo_id"], version=1)
    assert (again["version"], again["created"], again["created_at"]) == (2, False, one["created_at"])
    found = good(space, "memory.search", namespace="team", query="keel", k=1)
    assert set(found) == {"items", "degraded", "suspicious"}
    (item,) = found["items"]
    assert set(item) == MEMO | {"content", "content_truncated", "by", "score", "suspicious"}
    assert (item["memo_id"], item["content"], item["content_truncated"]) == (one["memo_id"], "The keel is iron.", False)
    assert 0 < item["score"] <= 1
    ends = {"sourceMemoId": one["memo_id"], "targetMemoId": two["memo_id"]}
    made = good(space, "memory.relation.save", namespace="team", **ends, tag="needs", weight=0.5, reason="to sail")
    assert made.pop("warnings") == []
    assert set(made) == RELATION | {"suspicious"}
    assert {**ends, "tag": "needs", "weight": 0.5, "reason": "to sail", "version": 1}.items() <= made.items()
    listed = good(space, "memory.relation.list", namespace="team")
    assert listed["edges"] == [made]
    code, error = ask(space, "memory.relation.save", namespace="team", **ends, tag="needs", weight=True)
    assert (code, "a number" in error["message"]) == ("INVALID_ARGUMENT", True)
    assert [set(node) for node in listed["nodes"]] == [MEMO, MEMO]
    walked = good(space, "memory.relation.graph", namespace="team", startMemoId=two["memo_id"], direction="backward")
    (edge,) = walked["edges"]
    assert edge == made | {
        "depth": 1, "direction": "backward", "path": [two["memo_id"], one["memo_id"]], "loop": False,
    }  # fmt: skip
    assert [node["memo_id"] for node in walked["nodes"]] == [two["memo_id"], one["memo_id"]]
    gone = good(space, "memory.relation.delete", namespace="team", **ends, tag="needs")
    assert gone == {"deleted": True, "relation": made, "suspicious": []}
    good(space, "memory.relation.save", namespace="team", **ends, tag="needs")
    last = good(space, "memory.delete", namespace="team", memo_id=two["memo_id"])
    assert (
        last.items()
        >= {"memo_id": two["memo_id"], "namespace": "team", "deleted": True, "relations_deleted": 1}.items()
    )
    assert len(last) == 5
    assert good(space, "memory.relation.list", namespace="team")["edges"] == []


@pytest.mark.slow
def test_what_comes_back_is_byte_for_byte_what_went_in(rim):
    space = rim.space()
    made = calls(space, *(("memory.save", {"content": text, "metadata": {"n": n}}) for n, text in enumerate(NASTY)))
    assert {code for code, _ in made} == {"ok"}
    rim.world.run()
    found = calls(space, *(("memory.search", {"metadata_filter": {"n": n}}) for n in range(len(NASTY))))
    for text, (_, told) in zip(NASTY, found, strict=True):
        (item,) = told["items"]
        assert item["content"].encode() == text.encode(), ascii(text[:40])
    changed = calls(
        space,
        *(
            ("memory.save", {"content": text[::-1], "memo_id": told["memo_id"]})
            for text, (_, told) in zip(NASTY, made, strict=True)
        ),
    )
    for text, (_, told) in zip(NASTY, changed, strict=True):
        assert space.tools.get(told["memo_id"]).content.encode() == text[::-1].encode()


def test_very_long_memos_share_an_answer_and_say_so(rim):
    space = rim.space()
    calls(
        space,
        *(("memory.save", {"content": letter * 80_000}) for letter in "ab"),
        ("memory.save", {"content": "short"}),
    )
    items = good(space, "memory.search")["items"]
    assert sum(len(item["content"]) for item in items) <= 100_000
    assert [item["content_truncated"] for item in items] == [False, True, True]


@pytest.mark.parametrize(
    ("tool", "given", "code", "word"),
    [
        ("memory.save", {}, "INVALID_ARGUMENT", "content"),
        ("memory.save", {"content": ""}, "INVALID_ARGUMENT", "content"),
        ("memory.save", {"content": "x", "colour": 1}, "INVALID_ARGUMENT", "colour"),
        ("memory.save", {"content": "x", "namespace": "../secret"}, "INVALID_ARGUMENT", "namespace"),
        ("memory.save", {"content": "x", "namespace": "/etc"}, "INVALID_ARGUMENT", "namespace"),
        ("memory.save", {"content": "x", "metadata": {"promote": True}}, "INVALID_ARGUMENT", "promote"),
        ("memory.save", {"content": "x", "metadata": {"relations": []}}, "INVALID_ARGUMENT", "relations"),
        ("memory.save", {"content": "x", "metadata": "no object"}, "INVALID_ARGUMENT", "metadata"),
        ("memory.save", {"content": "x", "metadata": {"k": "v" * LONGEST_METADATA}}, "INVALID_ARGUMENT", "bytes"),
        ("memory.save", {"content": "x", "metadata_mode": "mix"}, "INVALID_ARGUMENT", "metadata_mode"),
        ("memory.save", {"content": "x", "memo_id": "a/b"}, "INVALID_ARGUMENT", "memo_id"),
        ("memory.save", {"content": "x", "memo_id": "m", "version": -1}, "INVALID_ARGUMENT", "version"),
        ("memory.save", {"content": "x", "memo_id": "m", "version": 7}, "CONFLICT", "version"),
        ("memory.save", {"content": "x" * 1_000_001}, "RESOURCE_EXHAUSTED", "1,000,000"),
        ("memory.search", {"query": "x", "minimum_similarity": 0.5, "distance_metric": "l2"}, "INVALID_ARGUMENT", "cosine"),
        ("memory.search", {"query": "x", "minimum_similarity": 1.5}, "INVALID_ARGUMENT", "minimum_similarity"),
        ("memory.search", {"query": "x", "distance_metric": "dot"}, "INVALID_ARGUMENT", "distance_metric"),
        ("memory.search", {"query": "x", "pivot_memo_id": "y"}, "INVALID_ARGUMENT", "not both"),
        ("memory.search", {"query": "x", "k": 0}, "INVALID_ARGUMENT", "k"),
        ("memory.search", {"query": "x", "k": 101}, "INVALID_ARGUMENT", "k"),
        ("memory.search", {"query": "x", "k": True}, "INVALID_ARGUMENT", "k"),
        ("memory.search", {"query": "x" * 2001}, "INVALID_ARGUMENT", "query"),
        ("memory.search", {"pivot_memo_id": "nobody"}, "NOT_FOUND", "nobody"),
        ("memory.delete", {"memo_id": "nobody"}, "NOT_FOUND", "nobody"),
        ("memory.delete", {}, "INVALID_ARGUMENT", "memo_id"),
        ("memory.relation.save", {"sourceMemoId": "a", "targetMemoId": "b"}, "INVALID_ARGUMENT", "tag"),
        ("memory.relation.save", {"sourceMemoId": "a", "tag": "t"}, "INVALID_ARGUMENT", "targetMemoId"),
        ("memory.relation.save", {"sauce": "a", "targetMemoId": "b", "tag": "t"}, "INVALID_ARGUMENT", "sauce"),
        ("memory.relation.save", {"sourceMemoId": "a", "targetMemoId": "b", "tag": "t" * 65}, "INVALID_ARGUMENT", "tag"),
        ("memory.relation.save", {"sourceMemoId": "a", "targetMemoId": "b", "tag": "t", "weight": 1.1}, "INVALID_ARGUMENT", "weight"),
        ("memory.relation.save", {"sourceMemoId": "a", "targetMemoId": "b", "tag": "t", "weight": "x"}, "INVALID_ARGUMENT", "weight"),
        ("memory.relation.save", {"sourceMemoId": "a", "targetMemoId": "b", "tag": "t"}, "NOT_FOUND", "memo"),
        ("memory.relation.delete", {"sourceMemoId": "a", "targetMemoId": "b", "tag": "t"}, "NOT_FOUND", "memo"),
        ("memory.relation.list", {"limit": 501}, "INVALID_ARGUMENT", "limit"),
        ("memory.relation.list", {"limit": 0}, "INVALID_ARGUMENT", "limit"),
        ("memory.relation.graph", {}, "INVALID_ARGUMENT", "startMemoId"),
        ("memory.relation.graph", {"startMemoId": "a", "maxDepth": 11}, "INVALID_ARGUMENT", "maxDepth"),
        ("memory.relation.graph", {"startMemoId": "a", "direction": "up"}, "INVALID_ARGUMENT", "direction"),
        ("memory.relation.graph", {"startMemoId": "a", "limit": 1001}, "INVALID_ARGUMENT", "limit"),
        ("memory.relation.graph", {"startMemoId": "a"}, "NOT_FOUND", "memo"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_call_that_can_t_be_has_one_of_four_codes_and_changes_nothing(rim, tool, given, code, word):
    before = rim.files()
    told, error = ask(rim_space(rim), tool, **given)
    assert told == code
    assert word in error["message"]
    assert rim.files() == before


_SPACES = {}


def rim_space(rim):
    """One workspace for all calls that must leave it empty."""
    return _SPACES.setdefault(id(rim), rim.space())


def test_arguments_that_hosts_send_as_text_are_read(rim):
    space = rim.space()
    made = good(space, "memory.save", content="x", metadata='{"a": {"b": 1}}')
    assert made["metadata"] == {"a": {"b": 1}}
    assert len(good(space, "memory.search", metadata_filter='{"a": {"b": 1}}')["items"]) == 1


def test_a_workspace_shows_nothing_of_another(rim):
    mine, theirs = rim.space(), rim.space()
    own = [good(mine, "memory.save", content=f"walrus {n}")["memo_id"] for n in range(2)]
    good(mine, "memory.relation.save", sourceMemoId=own[0], targetMemoId=own[1], tag="t")
    secret = good(theirs, "memory.save", content="quokka walrus", title="Quokka", metadata={"quokka": 1})["memo_id"]
    other = good(theirs, "memory.save", content="walrus")["memo_id"]
    good(theirs, "memory.relation.save", sourceMemoId=secret, targetMemoId=other, tag="quokka")
    before = rim.files()
    told = calls(
        mine,
        ("memory.search", {"query": "quokka walrus", "k": 100}),
        ("memory.search", {"metadata_filter": {"quokka": 1}}),
        ("memory.search", {"namespace": theirs.name}),
        ("memory.relation.list", {}),
        ("memory.relation.graph", {"startMemoId": own[0], "direction": "both"}),
    )
    assert "quokka" not in json.dumps(told).casefold()
    assert [code for code, _ in told] == ["ok"] * 5
    unknown = "0" * 8 + secret[8:]
    for tool, given in (
        ("memory.search", {"pivot_memo_id": secret}),
        ("memory.delete", {"memo_id": secret}),
        ("memory.relation.save", {"sourceMemoId": own[0], "targetMemoId": secret, "tag": "t"}),
        ("memory.relation.save", {"sourceMemoId": secret, "targetMemoId": own[0], "tag": "t"}),
        ("memory.relation.delete", {"sourceMemoId": secret, "targetMemoId": other, "tag": "quokka"}),
        ("memory.relation.graph", {"startMemoId": secret}),
    ):
        forbidden, missing = (
            ask(mine, tool, **given),
            ask(mine, tool, **json.loads(json.dumps(given).replace(secret, unknown))),
        )
        assert forbidden[0] == "NOT_FOUND"
        assert json.dumps(forbidden).replace(secret, "ID") == json.dumps(missing).replace(unknown, "ID")
    assert rim.files() == before
    same = good(mine, "memory.save", content="x", memo_id=secret)  # an id is a workspace's own, and tells of no other
    assert same["created"]
    assert {path: raw for path, raw in rim.files().items() if path in before} == before
    refused = [calls(mine, ("memory.search", {}), X_Memory_Workspace=name) for name in (theirs.name, "no such space")]
    assert refused[0] == refused[1]
    assert refused[0][0][0] == "NOT_FOUND"


def test_scopes_are_enforced(rim):
    space = rim.space()
    memo = good(space, "memory.save", content="x")["memo_id"]
    ends = {"sourceMemoId": memo, "targetMemoId": memo, "tag": "t"}
    writes = [
        ("memory.save", {"content": "x"}), ("memory.delete", {"memo_id": memo}), ("memory.relation.save", ends),
        ("memory.relation.delete", ends),
    ]  # fmt: skip
    reads = [("memory.search", {}), ("memory.relation.list", {}), ("memory.relation.graph", {"startMemoId": memo})]
    here = {"X_Memory_Workspace": space.name}
    assert {code for code, _ in calls(space, *writes, key="reader", **here)} == {"PERMISSION_DENIED"}
    assert {code for code, _ in calls(space, *reads, key="reader", **here)} == {"ok"}
    assert {code for code, _ in calls(space, *reads, key="writer", **here)} == {"PERMISSION_DENIED"}


@pytest.mark.slow
def test_eight_clients_that_upsert_the_same_ids_over_http_lose_and_double_nothing(rim):
    space = rim.space()
    ids = [f"shared-{space.name.replace(' ', '-')}-{n}" for n in range(4)]

    def one(number):
        return calls(
            space,
            *(("memory.save", {"content": f"by {number}", "memo_id": id, "metadata": {f"c{number}": 1}}) for id in ids),
            *(
                ("memory.relation.save", {"sourceMemoId": ids[0], "targetMemoId": id, "tag": f"t{number}"})
                for id in ids[1:]
            ),
        )

    with ThreadPoolExecutor(8) as pool:
        told = [code for made in pool.map(one, range(8)) for code, _ in made]
    assert set(told) == {"ok"}
    items = good(space, "memory.search")["items"]
    assert sorted(item["memo_id"] for item in items) == ids
    assert {item["version"] for item in items} == {8}
    assert all(item["metadata"] == {f"c{number}": 1 for number in range(8)} for item in items)
    assert len(good(space, "memory.relation.list", limit=500)["edges"]) == 24
    assert len(list(space.folder.glob("*.md"))) == 4


def test_a_secret_in_a_memo_is_told_to_whoever_wrote_it(rim):
    space = rim.space()
    told = good(space, "memory.save", content="key ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5")
    assert len(told["warnings"]) == 1


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a\ud800", "a\ufffd"), ("\udc00b\udc01", "\ufffdb\ufffd"), ("\ufeffé\ud83d\ude00", "\ufeffé😀"), ("", "")],
)
def test_each_half_of_a_character_is_sent_as_one_sign(text, sent):
    assert replace_surrogates(text) == sent
