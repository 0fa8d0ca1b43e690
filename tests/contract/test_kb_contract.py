"""The nine tools of the family kb as their seed has them, over MCP and REST on real stores; and the wall between workspaces."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode

import pytest
from jsonschema import Draft202012Validator

from index.encoders.settings import BundledSettings, EndpointSettings, LocalSettings, model_name
from mcp_server.tools.families import FAMILIES
from tests.support.answer_schemas import KB, KB_REST, differences
from tests.support.live_server import client, run, running
from tests.support.mcp_agent import agent, member
from tests.support.token_count import counted
from tests.support.world import until

DIALECTS = ("legacy", "2026-07-28")
READS = {"kb_search", "kb_get", "kb_status", "kb_jobs"}


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


# What a tool does is tried in the newer dialect, and in both in the long run; what the dialects change has tests of its own.
@pytest.fixture(
    params=[pytest.param(mode, marks=[] if mode == DIALECTS[-1] else pytest.mark.slow) for mode in DIALECTS]
)
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
    until(lambda: space.rim.world.app.opened.builds.scopes["captures"].index.record_at(full) is not None)


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


def test_sections_below_one_long_heading_are_read_by_the_headings_of_their_hits(one, space):
    body = "".join(
        f"## Section {name}\n\n{'It is due in May. ' * 100} A {name}wort.\n\n" for name in ("filter", "pump")
    )
    written(space[0], "Long.md", f"# {'A long heading ' * 10}\n\n{body}")
    for name in ("filter", "pump"):
        (hit,) = one.good("kb_search", query=f"{name}wort")["results"]
        assert len(hit["heading"]) == 120
        section = one.good("kb_get", id=hit["document_id"], heading=hit["heading"])
        assert section["content"].startswith(f"## Section {name}\n")


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


def test_a_tag_is_found_by_the_text_with_which_it_was_stored(one, space):
    for tag in ("machine learning x", "R & D", "c, sharp"):
        made = space[0].capture(f"an apple of {tag}", metadata={"tags": [tag]})
        for tool in ("kb_search", "semantic_search"):
            found = one.good(tool, query="apple", tags=[tag])["results"]
            assert [hit["tags"] for hit in found] == [made["tags"]], tool


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
        {"query": "x", "scope": "everything"},
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
        rim.world.app.opened.embedder.close()
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


@pytest.mark.parametrize("ids", [("user-prefs", "user-goals", "project_x"), ("6F1C1C52-5D5B", "7F1C1C52-5D5B", "R")])
def test_documents_with_one_title_are_read_at_the_addresses_that_are_listed(one, space, ids):
    for number, id in enumerate(ids, 2):
        written(space[0], f"Plan {number}.md", f"---\nid: {id}\ntitle: Plan\n---\ntext of {id}\n")
    listed = rest(space[0], "GET", "/documents")[1]["documents"]
    assert len({document["source_path"] for document in listed}) == len(ids)
    for document in listed:
        read = one.good("kb_get", source_path=document["source_path"])
        assert read["document_id"] == document["document_id"], document["source_path"]


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
    first, last = part["start_line"], rest_of_it["end_line"]
    for outside in ({"start_line": last + 1}, {"end_line": first - 1}):
        code, error = one.ask("kb_get", id=id, heading="Chapter 3", **outside)
        assert (code, f"the section has the lines {first} to {last}" in error["message"]) == ("INVALID_ARGUMENT", True)
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
        code, told = rest(space, "POST", "/search", json=sent)
        assert all(hit.pop("url").startswith("obsidian://open?vault=") for hit in told["results"])
        assert (code, told) == (200, one.good("kb_search", **sent))
    for query in ("heading=", "max_tokens=1", "start_line=x", "colour=1", "start_line=1&start_line=2"):
        code, told = rest(space, "GET", f"/documents/{id}?{query}")
        assert (code, told["error"]["code"]) == (400, "INVALID_ARGUMENT"), query
    assert rest(space, "GET", "/documents/nope")[0] == 404


def test_a_document_is_found_by_its_path_over_rest_too(rim):
    space, other = rim.space(), rim.space()
    made = space.capture("# Alpha\n\nOne.", namespace="sub", metadata={"tags": ["x"]})
    with member(space) as one:
        path = one.good("kb_get", id=made["id"])["source_path"]

    def found(at, **params):
        code, told = rest(at, "GET", "/documents", params=params)
        assert (code, told["next_cursor"]) == (200, None)
        return [document["document_id"] for document in told["documents"]]

    assert found(space, source_path=path) == [made["id"]]
    assert found(space, source_path=path, tags="x", type="note") == [made["id"]]
    assert found(space, source_path=path, tags="y") == found(space, source_path="Alpha.md") == []
    assert found(other, source_path=path) == found(other, source_path=f"../{space.name}/{path}") == []
    assert rest(space, "GET", "/documents?source_path=")[0] == 400


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
    assert set(told) == {"job_id", "status", "suspicious"}
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


def test_jobs_are_paged_through_by_the_cursor(rim):
    space = rim.space()
    with member(space) as one:
        ids = [one.good("kb_addnote", text=f"note number {n}")["job_id"] for n in range(5)]
        seen, cursor = [], {}
        while cursor is not None:
            told = one.good("kb_jobs", limit=2, **cursor)
            assert len(told["jobs"]) == min(2, 5 - len(seen))
            seen += [job["job_id"] for job in told["jobs"]]
            cursor = {"cursor": told["next_cursor"]} if told["next_cursor"] else None
        assert seen == ids[::-1]
        assert one.good("kb_jobs", job_id=ids[0])["next_cursor"] is None
        assert one.refused("kb_jobs", cursor="nobody's") == "INVALID_ARGUMENT"
    _, told = rest(space, "GET", "/jobs", params={"limit": 3, "cursor": ids[4]})
    assert ([job["job_id"] for job in told["jobs"]], told["next_cursor"]) == (ids[3:0:-1], ids[1])
    with member(rim.space()) as other:
        assert other.refused("kb_jobs", cursor=ids[0]) == "INVALID_ARGUMENT"


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
    data = ("Report\n\nThe heron stands. ÿþ ~~~ ???\n\n" * 40).encode()
    with member(space) as one:
        begun = one.good(
            "kb_upload_start", filename="report.txt", total_size=len(data), tags=["birds"], collection="workspace"
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
        job = ended(one, made["job_id"], status="done", kind="file", title="report.txt")
        whole = one.good("kb_get", id=job["document_id"], max_tokens=50_000)
        assert (whole["doc_type"], whole["collection"]) == ("file", "workspace")
        assert "birds" in whole["tags"]
        assert whole["content"].count("The heron stands.") == 40
        by_note, by_file = (one.good("kb_get", source_path=f"Files/report.txt{end}") for end in (".md", ""))
        assert by_note["document_id"] == by_file["document_id"] == job["document_id"]
        (hit,) = one.good("kb_search", query="heron", doc_type="file")["results"]
        assert (hit["title"], hit["source_path"]) == ("report.txt", "Files/report.txt.md")


def test_a_file_is_known_by_the_name_it_was_given_whatever_its_title_and_where_it_had_to_go(rim):
    space, other = rim.space(), rim.space()
    for place in (other, space):
        with member(place) as one:
            begun = one.good("kb_upload_start", filename="plan.txt", total_size=9, title="The plan of the year")
            one.good("kb_upload_chunk", upload_id=begun["upload_id"], chunk_index=0, data=base64_of(b"the plan\n", ""))
            job = ended(one, one.good("kb_upload_finish", upload_id=begun["upload_id"])["job_id"], status="done")
            (hit,) = one.good("kb_search", query="plan")["results"]
            assert (hit["title"], hit["source_path"]) == ("The plan of the year", "Files/plan.txt.md")
            assert one.good("kb_get", source_path="Files/plan.txt")["document_id"] == job["document_id"]
    assert sorted(path.name for path in (space.folder / "Files").iterdir()) == ["plan 2.txt", "plan 2.txt.md"]


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
        _, error = one.ask("kb_upload_start", filename="a.md", total_size=1, sha256="xyz")
        assert error["message"] == "sha256: must be the 64 hexadecimal digits of a SHA-256 digest"
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
    assert model_name(BundledSettings()) == "all-MiniLM-L6-v2 (fp32)"
    assert model_name(LocalSettings("/home/owner/models/e5-small/")) == "e5-small"
    assert model_name(LocalSettings("intfloat/e5-small")) == "e5-small"
    assert model_name(EndpointSettings("http://secret:4711/v1", "nomic-embed-text")) == "nomic-embed-text"


# kb_update_note, documents and tags


def test_a_note_is_changed_in_place(one, space):
    made = space[0].capture("# Pump\n\nThe filter is due in May.", metadata={"tags": ["home"]})
    told = one.good("kb_update_note", id=made["id"], text="The filter is due in June.", version=1)
    assert (told["document_id"], told["changed"], told["version"]) == (made["id"], True, 2)
    assert told["updated_at"] > told["created_at"]
    whole = one.good("kb_get", id=made["id"])
    assert (whole["content"], whole["tags"], whole["version"]) == ("The filter is due in June.", ["home"], 2)
    assert whole["created_at"] == told["created_at"]
    assert one.good("kb_search", query="June", mode="text")["results"][0]["document_id"] == made["id"]
    assert one.good("kb_search", query="May", mode="text")["results"] == []
    again = one.good("kb_update_note", id=made["id"], text="The filter is due in June.")
    assert (again["changed"], again["version"], again["updated_at"]) == (False, 2, told["updated_at"])
    code, error = one.ask("kb_update_note", id=made["id"], text="x", version=1)
    assert (code, error["details"]["version"]) == ("CONFLICT", 2)
    more = {"title": "Heat pump", "tags": ["a", "b"], "collection": "memory"}
    one.good("kb_update_note", id=made["id"], text="The filter is due in June.", **more)
    whole = one.good("kb_get", id=made["id"])
    assert (whole["title"], whole["tags"], whole["collection"]) == ("Heat pump", ["a", "b"], "memory")
    assert one.refused("kb_update_note", id="nope", text="x") == "NOT_FOUND"
    assert one.refused("kb_update_note", id=made["id"], text="x", collection="memeory") == "INVALID_ARGUMENT"
    assert one.refused("kb_update_note", id=made["id"], text="") == "INVALID_ARGUMENT"


def test_what_is_no_note_is_not_changed_as_one(one, space):
    written(
        space[0], "Entities/Walrus.md", "---\ntype: entity\nentity_type: animal\n---\n## Observations\n- a walrus\n"
    )
    (hit,) = one.good("kb_search", query="walrus", doc_type="entity")["results"]
    assert one.refused("kb_update_note", id=hit["document_id"], text="x") == "INVALID_ARGUMENT"


def test_a_note_is_changed_over_rest_by_what_path_and_body_say(rim):
    space = rim.space()
    id = space.capture("before")["id"]
    code, told = rest(space, "PATCH", f"/notes/{id}", json={"text": "after", "version": 1})
    assert (code, told["document_id"], told["version"]) == (200, id, 2)
    code, told = rest(space, "PATCH", f"/notes/{id}", json={"text": "later", "version": 1})
    assert (code, told["error"]["code"], told["error"]["details"]["version"]) == (409, "CONFLICT", 2)
    for body in ({"text": "x", "id": id}, {"text": "x", "colour": 1}, {}, {"text": None}, {"text": 1}, []):
        code, told = rest(space, "PATCH", f"/notes/{id}", json=body)
        assert (code, told["error"]["code"]) == (400, "INVALID_ARGUMENT"), body
    for raw in (b"", b"{", b"nan", b'{"text": "\\ud800"}', b"[" * 100_000):
        answer = space.rest("PATCH", f"/api/v1/notes/{id}", content=raw, headers={"content-type": "application/json"})
        assert answer.status_code == 400, raw[:20]
    for method, path in (("PATCH", f"/notes/{id}"), ("PUT", f"/documents/{id}/tags"), ("POST", "/search")):
        answer = space.rest(method, f"/api/v1{path}", content=b"text=x", headers={"content-type": "text/plain"})
        assert answer.status_code == 415
    assert space.rest("GET", f"/api/v1/documents/{id}").json()["content"] == "after"


def test_tags_are_set_over_rest_and_move_a_document_to_a_collection(rim):
    space = rim.space()
    id = space.capture("tagged", metadata={"tags": ["old"]})["id"]
    code, told = rest(space, "PUT", f"/documents/{id}/tags", json={"tags": ["new", "collection:workspace"]})
    assert (code, told["tags"], told["collection"], told["changed"], told["version"]) == (
        200, ["new"], "workspace", True, 2,
    )  # fmt: skip
    code, told = rest(space, "PUT", f"/documents/{id}/tags", json={"tags": ["new"]})
    assert (code, told["collection"], told["changed"], told["version"]) == (200, "workspace", False, 2)
    code, told = rest(space, "PUT", f"/documents/{id}/tags", json={"tags": [], "version": 1})
    assert (code, told["error"]["code"]) == (409, "CONFLICT")
    for body in ({"tags": ["collection:memeory"]}, {"tags": ["#"]}, {"tags": "new"}, {}):
        assert rest(space, "PUT", f"/documents/{id}/tags", json=body)[0] == 400, body
    assert rest(space, "PUT", "/documents/nope/tags", json={"tags": []})[0] == 404


def test_documents_are_listed_by_their_last_change_page_by_page(rim):
    space = rim.space()
    ids = [space.capture(f"number {n}", metadata={"tags": ["even" if n % 2 == 0 else "odd"]})["id"] for n in range(5)]
    rest(space, "PATCH", f"/notes/{ids[1]}", json={"text": "number one", "collection": "memory"})
    order = [ids[1], *(ids[n] for n in (4, 3, 2, 0))]
    code, told = rest(space, "GET", "/documents")
    assert (code, [one["document_id"] for one in told["documents"]], told["next_cursor"]) == (200, order, None)
    assert "content" not in told["documents"][0]
    seen, cursor = [], {}
    while cursor is not None:
        _, told = rest(space, "GET", "/documents", params={"limit": 2, **cursor})
        seen += [one["document_id"] for one in told["documents"]]
        cursor = {"cursor": told["next_cursor"]} if told["next_cursor"] else None
    assert seen == order
    for query, wanted in (
        ("tags=even", [4, 2, 0]),
        ("tags=even&tags=odd", []),
        ("collection=memory", [1]),
        ("type=note&limit=1", [1]),
        ("type=file", []),
    ):
        _, told = rest(space, "GET", f"/documents?{query}")
        assert [one["document_id"] for one in told["documents"]] == [ids[n] for n in wanted], query
    for query in ("limit=0", "limit=201", "type=folder", "collection=memeory", "cursor=x", "colour=1", "tags=%23"):
        code, told = rest(space, "GET", f"/documents?{query}")
        assert (code, told["error"]["code"]) == (400, "INVALID_ARGUMENT"), query


# REST


def test_what_rest_answers_is_as_its_description_and_the_seed_have_it(rim):
    space = rim.space()
    id = space.capture("described")["id"]
    described = space.rest("GET", "/openapi.json").json()
    job = rest(space, "POST", "/jobs", json={"text": "queued"})[1]["job_id"]
    for method, path, sent in (
        ("GET", "/documents", {}),
        ("GET", "/documents/{id}", {}),
        ("GET", "/jobs", {}),
        ("GET", "/jobs/{id}", {}),
        ("PUT", "/documents/{id}/tags", {"json": {"tags": ["x"]}}),
        ("POST", "/search", {"json": {"query": "described"}}),
        ("PATCH", "/notes/{id}", {"json": {"text": "described anew"}}),
        ("GET", "/status", {}),
    ):
        code, told = rest(space, method, path.replace("{id}", job if "jobs" in path else id), **sent)
        operation = described["paths"][f"/api/v1{path}"][method.lower()]
        answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert code == 200
        Draft202012Validator(answer).validate(told)
        name = operation["operationId"]
        Draft202012Validator((KB | KB_REST)[name]).validate(told)


def test_a_note_is_queued_over_rest_with_202_and_its_job_is_told(rim):
    space = rim.space()
    code, told = rest(space, "POST", "/jobs", json={"text": "by rest", "tags": ["x"], "collection": "memory"})
    assert (code, set(told)) == (202, {"job_id", "status", "suspicious"})
    path = f"/jobs/{told['job_id']}"
    until(lambda: rest(space, "GET", path)[1]["status"] == "done")
    job = rest(space, "GET", path)[1]
    assert rest(space, "GET", "/jobs", params={"status": "done"})[1] == {
        "jobs": [job],
        "next_cursor": None,
        "suspicious": [],
    }
    assert rest(space, "GET", f"/documents/{job['document_id']}")[1]["collection"] == "memory"


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/api/v1/jobs", "GET, HEAD, POST"),
        ("PUT", "/api/v1/notes/x", "PATCH"),
        ("GET", "/api/v1/notes/x", "PATCH"),
        ("POST", "/api/v1/documents/x/tags", "PUT"),
        ("PATCH", "/api/v1/documents/x", "GET, HEAD"),
        ("TRACE", "/api/v1/status", "GET, HEAD"),
        ("OPTIONS", "/api/v1/search", "POST"),
        ("GET", "/capture", "POST"),
    ],
)
@pytest.mark.parametrize("key", ["full", None])
def test_a_method_that_is_not_served_is_told_which_are(rim, method, path, allow, key):
    answer = rim.rest(method, path, key=key, **({"json": {}} if method in ("POST", "PUT", "PATCH") else {}))
    assert (answer.status_code, answer.headers["allow"]) == (405, allow)
    assert answer.json()["error"]["code"] == "INVALID_ARGUMENT"


# The wall between workspaces, and keys


def everything(id="x", job="x", upload="x"):
    """Every tool of the family with arguments that could work."""
    return {
        "kb_search": {"query": "x"},
        "kb_addnote": {"text": "x"},
        "kb_upload_start": {"filename": "x.md", "total_size": 1},
        "kb_upload_chunk": {"upload_id": upload, "data": "eA==", "chunk_index": 0},
        "kb_upload_finish": {"upload_id": upload},
        "kb_update_note": {"id": id, "text": "y"},
        "kb_get": {"id": id},
        "kb_status": {},
        "kb_jobs": {},
    }


@pytest.mark.parametrize("mode", DIALECTS)
def test_a_key_does_what_its_scopes_and_workspaces_allow(rim, mode):
    before = rim.files()
    for key, lacks in (("reader", "write"), ("writer", "read")):
        with agent(rim, key=key, mode=mode) as one:
            for tool, given in everything().items():
                if (tool in READS) == (lacks == "read"):
                    assert one.refused(tool, **given) == "PERMISSION_DENIED", (key, tool)
    for key, workspace in (("work", "secret"), ("full", "no such space"), ("gone", "nowhere"), ("full", "Reports")):
        with agent(rim, key=key, workspace=workspace, mode=mode) as one:
            told = {json.dumps(one.ask(tool, **given)[1]) for tool, given in everything().items()}
            assert len(told) == 1
            assert "no such workspace" in told.pop()
    assert rim.files() == before


def test_nothing_of_another_workspace_is_told(rim):
    mine, theirs = rim.space(), rim.space()
    secret = theirs.capture("# Quokka plan\n\nthe word is xqotherzy", metadata={"tags": ["xqtagzy"]})["id"]
    with member(theirs) as two:
        job = two.good("kb_addnote", text="queued xqjobzy")["job_id"]
    unknown = "0" * 8 + secret[8:]
    heard = []
    with member(mine) as one:
        for mode in ("hybrid", "vector", "text"):
            heard += [
                one.good("kb_search", query="quokka xqotherzy", mode=mode, top_n=50, **more)
                for more in ({}, {"tags": ["xqtagzy"]}, {"tags": ["xqtagzy"], "tags_match": "any"})
            ]
        for tool, name in (("kb_get", "id"), ("kb_update_note", "id"), ("kb_jobs", "job_id")):
            more = {"text": "x"} if tool == "kb_update_note" else {}
            own = job if name == "job_id" else secret
            forbidden, missing = one.ask(tool, **{name: own}, **more), one.ask(tool, **{name: unknown}, **more)
            assert forbidden[0] == missing[0] == "NOT_FOUND"
            assert json.dumps(forbidden).replace(own, "ID") == json.dumps(missing).replace(unknown, "ID")
        for path in ("Quokka plan.md", f"../{theirs.name}/Quokka plan.md"):
            assert one.refused("kb_get", source_path=path) == "NOT_FOUND"
        heard += [one.good("kb_status"), one.good("kb_jobs"), rest(mine, "GET", "/documents")]
    for method, path, sent in (
        ("GET", f"/documents/{secret}", {}),
        ("PUT", f"/documents/{secret}/tags", {"json": {"tags": []}}),
        ("PATCH", f"/notes/{secret}", {"json": {"text": "x"}}),
        ("GET", f"/jobs/{job}", {}),
    ):
        code, told = rest(mine, method, path, **sent)
        assert code == 404
        heard.append(told)
    assert not [word for word in ("xqotherzy", "xqtagzy", "xqjobzy", "Quokka") if word in json.dumps(heard)]
    assert heard[9]["documents"]["total"] == 0
    assert heard[10] == {"jobs": [], "next_cursor": None, "suspicious": []}
    assert heard[11][1]["documents"] == []


@pytest.mark.parametrize("mode", DIALECTS)
def test_prompts_name_the_tools_of_the_family_where_no_other_stands_for_them(rim, mode):
    space = rim.space()

    async def asked(path):
        async with client(rim, key=space.name, mode=mode, path=path) as mcp:
            given = {"recall": {"question": "who?"}, "capture-session": {}, "consolidate": {}}
            told = [await mcp.get_prompt(name, arguments) for name, arguments in given.items()]
            return [one.messages[0].content.text for one in told], mcp.instructions

    texts, instructions = run(asked("/mcp/kb"))
    for text, tool in zip(texts, ("kb_search", "kb_addnote", "kb_update_note"), strict=True):
        assert tool in text
        assert "semantic_search" not in text
        steps = [line for line in text.splitlines() if line[:1].isdigit()]
        assert [line.partition(".")[0] for line in steps] == [str(n) for n in range(1, len(steps) + 1)]
    assert "kb_" not in "".join(run(asked("/mcp"))[0])
    assert mode != "legacy" or "kb_jobs" in instructions
