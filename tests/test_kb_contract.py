"""The nine tools of the family kb as their seed has them, over MCP and REST on real stores; and the wall between workspaces."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode

import pytest

from index.encoders import Bundled, Endpoint, Local, called
from mcp_server.tools import FAMILIES
from tests.agent import agent, member
from tests.counted import counted
from tests.rim import client, run, running
from tests.shapes import KB, differences
from tests.world import until

DIALECTS = ("legacy", "2026-07-28")
READS = {"kb_search", "kb_get", "kb_status", "kb_jobs"}


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


@pytest.fixture(params=DIALECTS)
def space(rim, request):
    return rim.space(), request.param


@pytest.fixture
def one(space):
    """An agent in a workspace of its own."""
    with member(*space) as made:
        made_in = made
        yield made_in


def written(space, path, text):
    """A note as its owner writes it, indexed."""
    file = space.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    full = f"Captures/{space.name}/{path}"
    until(lambda: space.rim.world.app.shelf.slots["captures"].index.at(full) is not None)


def rest(space, method, path, **options):
    """The status and what is told, held against what is promised of the route."""
    answer = space.rest(method, f"/api/v1{path}", **options)
    return answer.status_code, answer.json()


# What is listed


def test_the_family_has_the_tools_of_its_seed():
    assert sorted(one.name for one in FAMILIES["kb"]) == sorted(KB)
    assert {one.name for one in FAMILIES["kb"] if one.scope == "read"} == READS
    assert list(FAMILIES)[:2] == ["thoughts", "kb"]


@pytest.mark.parametrize("mode", DIALECTS)
def test_the_schemas_that_are_listed_promise_what_the_seed_does(rim, mode):
    async def work():
        async with client(rim, mode=mode, path="/mcp/kb") as mcp:
            return (await mcp.list_tools()).tools

    listed = {tool.name: tool for tool in run(work())}
    assert sorted(listed) == sorted(KB)
    for name, seed in KB.items():
        tool = listed[name]
        assert differences(seed, tool.output_schema) == [], name
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations.read_only_hint is (name in READS)
        assert tool.annotations.open_world_hint is False
        assert "$defs" not in json.dumps([tool.input_schema, tool.output_schema])
    told = listed["kb_search"]
    assert all(word in told.description for word in ("variant", "chunk_id", "rerank"))
    assert told.input_schema["properties"]["collection"]["enum"] == ["documents", "memory", "workspace"]
    steps = listed["kb_upload_start"].description
    assert [step in steps for step in ("kb_upload_start(", "kb_upload_chunk(", "kb_upload_finish(")] == [True] * 3


def test_the_family_can_be_narrowed_to_and_to_what_only_reads(rim):
    async def names(**headers):
        async with client(rim, **headers) as mcp:
            return [tool.name for tool in (await mcp.list_tools()).tools]

    assert set(run(names(X_MCP_Toolsets="kb"))) == set(KB)
    assert set(run(names(X_MCP_Toolsets="kb", X_MCP_Readonly="true"))) == READS


# kb_search


def test_a_hit_has_the_fields_of_the_seed_and_its_collection_apart_from_its_tags(one, space):
    written(
        space[0],
        "alpha/Pump.md",
        "---\ntags: [home, collection:memory]\n---\n# Heat pump\n\n## Filter\n\nThe filter is due in May.\n",
    )
    (hit,) = one.good("kb_search", query="filter due")["results"]
    assert (hit["title"], hit["source_path"], hit["doc_type"]) == ("Pump", "alpha/Pump.md", "note")
    assert (hit["collection"], hit["tags"]) == ("memory", ["home"])
    assert hit["heading"] == "Heat pump > Filter"
    assert hit["chunk_id"] == f"{hit['document_id']}#0"
    assert "due in May" in hit["snippet"]
    assert 0 < hit["score"] <= 1
    assert one.good("kb_search", query="filter due", collection="documents")["results"] == []
    assert len(one.good("kb_search", query="filter due", collection="memory")["results"]) == 1


def test_tags_are_asked_for_together_or_one_of_them(one, space):
    for tags in (["red"], ["red", "big"], ["blue/dark"], []):
        space[0].capture(f"an apple of {tags}", metadata={"tags": tags} if tags else {})
    space[0].capture("an apple of nothing", metadata={"tags": ["none"]})

    def found(**given):
        return {tuple(hit["tags"]) for hit in one.good("kb_search", query="apple", **given)["results"]}

    assert found(tags=["red", "big"]) == {("red", "big")}
    assert found(tags=["red"]) == {("red",), ("red", "big")}
    assert found(tags=["big", "blue"], tags_match="any") == {("red", "big"), ("blue/dark",)}
    assert found(tags=["nowhere"], tags_match="any") == set()
    assert found(tags=["red"], tags_match="any", top_n=1) < {("red",), ("red", "big")}


def test_a_type_of_document_and_a_mode_can_be_asked_for(one, space):
    space[0].capture("a note about the walrus")
    written(
        space[0], "Entities/Walrus.md", "---\ntype: entity\nentity_type: animal\n---\n## Observations\n- a walrus\n"
    )
    for kind in ("note", "entity"):
        hits = one.good("kb_search", query="walrus", doc_type=kind)["results"]
        assert [hit["doc_type"] for hit in hits] == [kind]
    assert one.good("kb_search", query="walrus", doc_type="file")["results"] == []
    for mode in ("hybrid", "vector", "text"):
        assert one.good("kb_search", query="walrus", mode=mode)["mode"] == mode


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"query": ""},
        {"query": "  "},
        {"query": "x", "top_n": 0},
        {"query": "x", "top_n": 51},
        {"query": "x", "tags": ["#"]},
        {"query": "x", "tags_match": "none"},
        {"query": "x", "doc_type": "folder"},
        {"query": "x", "mode": "best"},
        {"query": "x", "collection": "memeory"},
        {"query": "x", "scope": "vault"},
    ],
    ids=str,
)
def test_a_search_that_can_not_be_meant_is_refused(rim, given):
    with agent(rim) as one:
        code, error = one.ask("kb_search", **given)
    assert code == "INVALID_ARGUMENT"
    if "collection" in given:
        assert [name in error["message"] for name in ("documents", "memory", "workspace")] == [True] * 3


def test_ten_hits_cost_a_model_little_whatever_they_hold(rim):
    space = rim.space()
    for n in range(12):
        text = f"The weather station of place {n} tells the wind, the rain and the sun once an hour. " * 6
        space.capture(
            f"# Weather station {n}\n\n## How it is read\n\n{text}\n\n" * 4,
            metadata={"title": f"Weather station {n}", "tags": ["weather", "stations"]},
            namespace="alpha",
        )
    with member(space) as one:
        told = one.good("kb_search", query="weather station that tells the wind")
    assert len(told["results"]) == 10
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False)
    assert len(text) / 4 <= 2_000
    assert counted(text) <= 2_000
    assert all(len(hit["snippet"]) > 80 for hit in told["results"])


def test_a_passage_is_cut_around_what_was_asked_for_and_whole_when_there_is_room(rim):
    space = rim.space()
    space.capture("The needle stands alone here, and all of it is told.")
    for n in range(9):
        space.capture(f"{'before it there are words ' * 20}the needle number {n} {'and after it others ' * 20}")
    with member(space) as one:
        hits = one.good("kb_search", query="needle", top_n=10)["results"]
    assert len(hits) == 10
    assert all("needle" in hit["snippet"] for hit in hits)
    assert "The needle stands alone here, and all of it is told." in [hit["snippet"] for hit in hits]
    assert sum(hit["snippet"].startswith("…") for hit in hits) == 9


def test_a_document_whose_file_has_just_gone_is_left_out(rim):
    space = rim.space()
    gone, stays = space.capture("a vanishing heron"), space.capture("a staying heron")
    with member(space) as one:
        assert len(one.good("kb_search", query="heron")["results"]) == 2
        space.file_of(gone["id"]).unlink()  # the index believes an absence only two seconds later
        hits = one.good("kb_search", query="heron")["results"]
        assert [hit["document_id"] for hit in hits] == [stays["id"]]
        assert one.refused("kb_get", id=gone["id"]) == "NOT_FOUND"


def test_a_search_without_an_encoder_says_so(tmp_path):
    with running(tmp_path) as rim:
        space = rim.space()
        space.capture("the lonely heron")
        rim.world.app.embedder.close()
        with member(space) as one:
            told = one.good("kb_search", query="heron")
        assert (len(told["results"]), told["mode"]) == (1, "text")
        assert told["degraded"]


# kb_get

LONG = "".join(f"## Chapter {n}\n\n{'words of the chapter ' * 40}\n\n" for n in range(30))


def test_a_document_is_read_by_id_and_by_path(one, space):
    made = space[0].capture("# Alpha\n\nbody\r\nof it", namespace="sub", metadata={"project": "x"}, source="cli")
    told = one.good("kb_get", id=made["id"])
    assert told["content"] == "# Alpha\n\nbody\r\nof it"
    assert (told["source_path"], told["namespace"], told["source"]) == ("sub/Alpha.md", "sub", "cli")
    assert (told["metadata"], told["version"]) == ({"project": "x"}, 1)
    assert (told["start_line"], told["end_line"], told["total_lines"]) == (1, 4, 4)
    assert (told["next_line"], told["outline"]) == (None, [])
    assert one.good("kb_get", source_path="sub/Alpha.md") == told
    for given in ({}, {"id": made["id"], "source_path": "sub/Alpha.md"}):
        assert one.refused("kb_get", **given) == "INVALID_ARGUMENT"
    for given in ({"id": "nope"}, {"source_path": "Alpha.md"}, {"source_path": "../default/x.md"}):
        assert one.refused("kb_get", **given) == "NOT_FOUND"


def test_a_long_document_is_cut_at_a_line_and_read_on(one, space):
    id = space[0].capture(LONG)["id"]
    told = one.good("kb_get", id=id)
    assert counted(told["content"]) <= 2_000
    assert told["content"].endswith("\n")
    assert told["next_line"] == told["end_line"] + 1
    assert [heading["heading"] for heading in told["outline"]] == [f"## Chapter {n}" for n in range(30)]
    assert LONG.splitlines()[told["outline"][7]["line"] - 1] == "## Chapter 7"
    parts = [told["content"]]
    while told["next_line"]:
        told = one.good("kb_get", id=id, start_line=told["next_line"])
        assert told["outline"] == []
        parts.append(told["content"])
    assert "".join(parts) == LONG
    assert one.good("kb_get", id=id, max_tokens=50_000)["content"] == LONG


def test_a_section_or_a_range_is_read(one, space):
    id = space[0].capture(LONG)["id"]
    told = one.good("kb_get", id=id, heading="chapter 3")
    assert told["content"].startswith("## Chapter 3\n")
    assert "Chapter 4" not in told["content"]
    assert told["next_line"] is None
    part = one.good("kb_get", id=id, heading="Chapter 3", max_tokens=100)
    rest_of_it = one.good("kb_get", id=id, heading="Chapter 3", start_line=part["next_line"], max_tokens=500)
    assert part["content"] + rest_of_it["content"] == told["content"]
    told = one.good("kb_get", id=id, start_line=5, end_line=6)
    assert told["content"] == "".join(LONG.splitlines(keepends=True)[4:6])
    code, error = one.ask("kb_get", id=id, heading="Chaptre 3")
    assert (code, "Chapter 3" in error["message"]) == ("NOT_FOUND", True)
    assert "Chapter 3" in error["details"]["headings"]
    for given in ({"start_line": 10_000}, {"start_line": 5, "end_line": 4}, {"max_tokens": 1}, {"start_line": 0}):
        assert one.refused("kb_get", id=id, **given) == "INVALID_ARGUMENT"


def test_what_is_read_over_rest_is_the_same(rim):
    space = rim.space()
    id = space.capture(LONG)["id"]
    with member(space) as one:
        for given in ({}, {"heading": "Chapter 3"}, {"start_line": 4, "end_line": 9}, {"max_tokens": 300}):
            assert rest(space, "GET", f"/documents/{id}", params=given) == (200, one.good("kb_get", id=id, **given))
        sent = {"query": "chapter words", "top_n": 3, "tags_match": "any"}
        assert rest(space, "POST", "/search", json=sent) == (200, one.good("kb_search", **sent))
    for query in ("heading=", "max_tokens=1", "start_line=x", "colour=1", "start_line=1&start_line=2"):
        code, told = rest(space, "GET", f"/documents/{id}?{query}")
        assert (code, told["error"]["code"]) == (400, "INVALID_ARGUMENT"), query
    assert rest(space, "GET", "/documents/nope")[0] == 404


# Jobs


def ended(one, job_id, **wanted):
    """The job, once it has ended."""
    found = []

    def over():
        (job,) = one.good("kb_jobs", job_id=job_id)["jobs"]
        found[:] = [job]
        return job["status"] in ("done", "failed")

    until(over)
    assert {name: found[0][name] for name in wanted} == wanted, found[0]
    return found[0]


def test_a_note_is_queued_and_becomes_a_document(one):
    told = one.good(
        "kb_addnote", text="# Heat pump\n\nThe filter is due.", title="Pump", tags=["home"], collection="memory"
    )
    assert set(told) == {"job_id", "status"}
    job = ended(one, told["job_id"], status="done", kind="note", error=None, progress=1.0)
    whole = one.good("kb_get", id=job["document_id"])
    assert (whole["title"], whole["collection"], whole["tags"]) == ("Pump", "memory", ["home"])
    assert whole["content"] == "# Heat pump\n\nThe filter is due."
    (hit,) = one.good("kb_search", query="filter", collection="memory")["results"]
    assert hit["document_id"] == job["document_id"]
    again = one.good("kb_addnote", text="# Heat pump\n\nThe filter is due.", tags=["more"], collection="memory")
    assert ended(one, again["job_id"])["document_id"] == job["document_id"]
    assert set(one.good("kb_get", id=job["document_id"])["tags"]) == {"home", "more"}


def test_a_collection_is_named_by_a_tag_too_and_an_unknown_one_is_refused(one):
    told = one.good("kb_addnote", text="by a tag", tags=["collection:workspace", "x"])
    whole = one.good("kb_get", id=ended(one, told["job_id"])["document_id"])
    assert (whole["collection"], whole["tags"]) == ("workspace", ["x"])
    for given in ({"collection": "memeory"}, {"tags": ["collection:memeory"]}):
        code, error = one.ask("kb_addnote", text="never", **given)
        assert code == "INVALID_ARGUMENT"
        assert "workspace" in error["message"]
    assert [job["title"] for job in one.good("kb_jobs")["jobs"]] == ["by a tag"]


def test_jobs_are_listed_the_latest_first_and_by_status(one):
    ids = [one.good("kb_addnote", text=f"note number {n}")["job_id"] for n in range(3)]
    for id in ids:
        ended(one, id, status="done")
    assert [job["job_id"] for job in one.good("kb_jobs")["jobs"]] == ids[::-1]
    assert [job["job_id"] for job in one.good("kb_jobs", limit=1)["jobs"]] == ids[:1:-1]
    assert len(one.good("kb_jobs", status="done")["jobs"]) == 3
    assert one.good("kb_jobs", status="failed")["jobs"] == []
    assert one.refused("kb_jobs", job_id="0" * 32) == "NOT_FOUND"
    for given in ({"status": "late"}, {"limit": 0}, {"limit": 201}, {"job_id": ""}):
        assert one.refused("kb_jobs", **given) == "INVALID_ARGUMENT"


def test_a_job_is_told_to_its_own_key_in_its_own_workspace_alone(rim):
    space, other = rim.space(), rim.space()
    with member(space) as one:
        job = one.good("kb_addnote", text="the word is xqjobzy")["job_id"]
        ended(one, job)
        upload = one.good("kb_upload_start", filename="a.md", total_size=3)["upload_id"]
    for key, workspace in (("full", space.name), (other.name, other.name)):
        with agent(rim, key=key, workspace=workspace) as two:
            assert two.good("kb_jobs")["jobs"] == []
            for tool, mine, nobodys in (
                ("kb_jobs", {"job_id": job}, {"job_id": "0" * 32}),
                ("kb_upload_chunk", {"upload_id": upload}, {"upload_id": "0" * 36}),
                ("kb_upload_finish", {"upload_id": upload}, {"upload_id": "0" * 36}),
            ):
                more = {"data": "YWJj", "chunk_index": 0} if tool == "kb_upload_chunk" else {}
                forbidden, missing = two.ask(tool, **mine, **more), two.ask(tool, **nobodys, **more)
                assert forbidden[0] == missing[0] == "NOT_FOUND"
                told = json.dumps(forbidden).replace(*mine.values(), "ID")
                assert told == json.dumps(missing).replace(*nobodys.values(), "ID")
        answer = rim.rest("GET", f"/api/v1/jobs/{job}", key=key, headers={"X-Memory-Workspace": workspace})
        assert answer.status_code == 404


# Uploads


def base64_of(data, kind):
    made = (urlsafe_b64encode if "url" in kind else b64encode)(data).decode()
    return made.rstrip("=") if "bare" in kind else made


@pytest.mark.parametrize("kind", ["standard", "url", "standard, bare", "url, bare"])
def test_a_file_is_uploaded_in_three_steps_in_any_order(rim, kind):
    space = rim.space()
    data = ("# Report\n\nThe heron stands. ÿþ ~~~ ???\n\n" * 40).encode()
    with member(space) as one:
        begun = one.good(
            "kb_upload_start", filename="report.md", total_size=len(data), tags=["birds"], collection="workspace"
        )
        assert begun["chunk_bytes"] == 1_048_576
        id = begun["upload_id"]
        pieces = [data[at : at + 500] for at in range(0, len(data), 500)]
        for index in (*reversed(range(len(pieces))), 1):
            sent = {"data": base64_of(pieces[index], kind), "chunk_index": index}
            told = one.good("kb_upload_chunk", upload_id=id, **sent)
        assert (told["received_bytes"], told["total_size"], told["chunks"]) == (len(data), len(data), len(pieces))
        made = one.good("kb_upload_finish", upload_id=id)
        assert one.good("kb_upload_finish", upload_id=id)["job_id"] == made["job_id"]
        job = ended(one, made["job_id"], status="done", kind="file", title="report.md")
        whole = one.good("kb_get", id=job["document_id"], max_tokens=50_000)
        assert (whole["doc_type"], whole["collection"]) == ("file", "workspace")
        assert "birds" in whole["tags"]
        assert whole["content"].count("The heron stands.") == 40
        by_note, by_file = (one.good("kb_get", source_path=f"Files/report.md{end}") for end in (".md", ""))
        assert by_note["document_id"] == by_file["document_id"] == job["document_id"]
        assert [hit["doc_type"] for hit in one.good("kb_search", query="heron", doc_type="file")["results"]] == ["file"]


def test_what_can_not_be_a_chunk_is_refused_and_what_is_missing_is_told(rim):
    with member(rim.space()) as one:
        id = one.good("kb_upload_start", filename="a.txt", total_size=6)["upload_id"]
        for data in ("!!!!", "Y", "YWJj=", "YQ==YQ==", "é", ""):
            assert one.refused("kb_upload_chunk", upload_id=id, data=data, chunk_index=0) == "INVALID_ARGUMENT", data
        for index in (-1, 6, 10**9):
            assert one.refused("kb_upload_chunk", upload_id=id, data="YWJj", chunk_index=index) == "INVALID_ARGUMENT"
        one.good("kb_upload_chunk", upload_id=id, data="YWJj", chunk_index=1)
        code, error = one.ask("kb_upload_finish", upload_id=id)
        assert (code, error["details"]["missing"]) == ("INVALID_ARGUMENT", [0])
        large = "QUFB" * 1_100_000  # as the guard takes it no more
        assert one.ask("kb_upload_chunk", upload_id=id, data=large[: 4 * 800_000], chunk_index=0)[0] in (
            "RESOURCE_EXHAUSTED",
            "INVALID_ARGUMENT",
        )
        for given in (
            {"filename": "", "total_size": 1},
            {"filename": "a.md", "total_size": 0},
            {"filename": "..", "total_size": 1},
            {"filename": "a.md", "total_size": 1, "sha256": "xyz"},
            {"filename": "a.md", "total_size": 1, "collection": "nowhere"},
        ):
            assert one.refused("kb_upload_start", **given) == "INVALID_ARGUMENT", given
        assert one.refused("kb_upload_start", filename="a.md", total_size=2**40) == "RESOURCE_EXHAUSTED"


# kb_status


def test_the_status_counts_what_is_in_the_workspace_and_nothing_else(rim):
    space, other = rim.space(), rim.space()
    for n in range(4):
        other.capture(f"elsewhere {n}")
    space.capture("one")
    space.capture("two")
    with member(space) as one:
        ended(one, one.good("kb_addnote", text="three", collection="memory")["job_id"])
        told = one.good("kb_status")
    assert told["workspace"] == space.name
    assert told["documents"] == {
        "total": 3,
        "by_type": {"note": 3, "file": 0, "entity": 0},
        "by_collection": {"documents": 2, "memory": 1},
    }
    assert told["chunks"] == 3
    assert told["index"] == {"ready": True, "words_only": 0}
    assert (told["model"]["dimensions"], told["model"]["state"]) == (64, "ready")
    assert told["queue"] == {"queued": 0, "running": 0, "done": 1, "failed": 0}
    assert told["collections"] == ["documents", "memory", "workspace"]
    assert told["degraded"] == []
    assert rest(space, "GET", "/status") == (200, told)


def test_the_status_tells_a_model_by_name_and_not_where_it_is():
    assert called(Bundled()) == "all-MiniLM-L6-v2 (fp32)"
    assert called(Local("/home/owner/models/e5-small/")) == "e5-small"
    assert called(Local("intfloat/e5-small")) == "e5-small"
    assert called(Endpoint("http://secret:4711/v1", "nomic-embed-text")) == "nomic-embed-text"
