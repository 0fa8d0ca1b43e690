"""REST over real HTTP: each route with normal, empty, unknown, repeated, extreme and hostile input."""

import itertools
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from openapi_spec_validator import validate

from index.model import COLLECTIONS
from index.timings import now_ms
from syncd.workspaces.api_keys import SCOPES
from tests.documents.page_blocks import blocks
from tests.support.live_server import CRASH, running, unlisted
from tests.support.paths import ROOT
from tests.support.sample_files import pdf
from tests.support.world import until


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


@pytest.fixture
def work(rim):
    """A workspace of this test's own, and the key that is bound to it."""
    return rim.space()


def error(answer):
    shown = answer.json()["error"]
    assert set(shown) == {"code", "message", "retryable", "details"}
    assert "Traceback" not in answer.text
    assert str(ROOT) not in answer.text
    assert "/tmp" not in answer.text
    return shown["code"]


def test_a_capture_says_what_became_of_it(rim, work):
    told = work.capture("# Alpha\n\nbody", source="voice", metadata={"project": "x", "tags": ["a"], "title": "T"})
    assert set(told) == {
        *("id", "created", "content_hash", "title", "tags", "summary", "chunks", "created_at", "updated_at"),
        *("created_at_iso", "updated_at_iso", "path", "url", "warnings", "suspicious"),
    }
    assert told["created"] is True
    assert told["title"] == "T"
    assert told["tags"] == ["a"]
    assert told["chunks"] == 1
    assert told["created_at"] > 1_600_000_000_000
    assert told["updated_at"] is None


def test_the_same_content_is_the_same_note(rim, work):
    first, again = work.capture("twice"), work.capture("twice")
    assert again["id"] == first["id"]
    assert again["created"] is False
    assert again["updated_at"] > first["created_at"]


@pytest.mark.parametrize(
    "content",
    [
        "x",
        " ",
        "\n",
        "a\r\nb\r",
        "\x00",
        "\ufeff---\nid: 1\n---\n",
        "日本語 🎉 e\u0301",
        "\u202e\u200b\x1b[31m",
        "\ud7ff\ue000\U0010ffff",
    ],
    ids=ascii,
)
def test_what_comes_back_is_what_went_in(rim, work, content):
    told = work.capture(content)
    found = work.rest("GET", f"/thought/{told['id']}").json()
    assert found["content"] == content
    assert [part["ordinal"] for part in found["chunks"]] == list(range(len(found["chunks"])))


def test_a_search_answers_with_the_seeds_fields(rim, work):
    told = work.capture("the quick brown fox", metadata={"project": "zoo"}, source="cli")
    found = work.rest("POST", "/search", json={"query": "quick fox"}).json()
    assert set(found) == {"results", "mode", "degraded", "suspicious"}
    (hit,) = found["results"]
    assert hit["document_id"] == told["id"]
    assert hit["chunk_content"] == hit["document_content"] == "the quick brown fox"
    assert hit["metadata"] == {"project": "zoo"}
    assert hit["source"] == "cli"
    assert 0 < hit["score"] <= 1
    assert hit["document_truncated"] is False
    assert {"tags", "summary", "created_at", "updated_at", "title", "heading", "collection", "namespace"} < set(hit)


def test_without_an_encoder_search_answers_from_words_and_says_so_and_captures_are_refused(tmp_path):
    with running(tmp_path) as rim:
        space = rim.space()
        told = space.capture("the lonely heron")
        rim.world.app.opened.embedder.close()
        before = rim.files()
        found = space.rest("POST", "/search", json={"query": "heron"}).json()
        assert [hit["document_id"] for hit in found["results"]] == [told["id"]]
        assert found["mode"] == "text"
        assert found["degraded"]
        refused = space.rest("POST", "/capture", json={"content": "never seen"})
        assert (refused.status_code, error(refused)) == (503, "UNAVAILABLE")
        assert rim.files() == before
        health = rim.rest("GET", "/healthz", key=None)
        assert health.status_code == 200
        assert health.json()["status"] == "degraded"
        assert "encoder" in health.json()["degraded"][0]


def test_long_documents_share_the_budget_and_full_lifts_it(rim, work):
    for at in range(5):
        work.capture(f"{'before ' * 600}\n\nneedle number {at}\n\n{'after ' * 600}")
    work.capture("needle, short")
    ask = {"query": "needle"}
    hits = work.rest("POST", "/search", json=ask).json()["results"]
    assert sum(len(hit["document_content"]) for hit in hits) <= 8_000
    assert len(hits) == 6
    for hit in hits:
        assert hit["chunk_content"] in hit["document_content"]
        assert hit["document_truncated"] is (hit["chunk_content"] != "needle, short")
    full = work.rest("POST", "/search", json=ask | {"detail": "full"}).json()["results"]
    assert all(not hit["document_truncated"] for hit in full)
    assert max(len(hit["document_content"]) for hit in full) > 7_000


def test_filters_reach_the_index(rim, work):
    work.capture("apple one", metadata={"tags": ["red"]}, source="s1")
    second = work.capture("apple two", metadata={"tags": ["red", "big"]}, source="s2", namespace="sub")

    def ids(**given):
        hits = work.rest("POST", "/search", json={"query": "apple", **given}).json()["results"]
        return [hit["document_id"] for hit in hits]

    assert len(ids()) == 2
    for given in (
        {"tags": ["red", "big"]},
        {"tags": '["big"]'},
        {"source": "s2"},
        {"namespace": "sub"},
        {"since": second["created_at"]},
    ):
        assert ids(**given) == [second["id"]], given
    assert second["id"] not in ids(until=second["created_at"])
    assert ids(collection="memory") == []
    assert len(ids(top_k=1)) == 1
    assert len(ids(tags=None, source=None, top_k="5")) == 2


def test_a_note_whose_file_has_just_gone_is_left_out(rim, work):
    told = work.capture("vanishing")
    stays = work.capture("staying")
    work.file_of(told["id"]).unlink()  # the index believes an absence only two seconds later
    found = work.rest("POST", "/search", json={"query": "vanishing"}).json()["results"]
    assert [hit["document_id"] for hit in found] == [stays["id"]]
    assert [note["id"] for note in work.rest("GET", "/thoughts").json()["results"]] == [stays["id"]]
    answer = work.rest("GET", f"/thought/{told['id']}")
    assert (answer.status_code, error(answer)) == (404, "NOT_FOUND")


def test_a_note_that_became_something_else_takes_no_other_note_with_it(rim, work):
    told, stays = work.capture("turning"), work.capture("staying")
    file = work.file_of(told["id"])
    file.unlink()
    file.mkdir()
    answer = work.rest("POST", "/search", json={"query": "turning"})
    assert answer.status_code == 200, answer.text
    assert [hit["document_id"] for hit in answer.json()["results"]] == [stays["id"]]
    assert any("can't be read" in why for why in answer.json()["degraded"])
    assert [note["id"] for note in work.rest("GET", "/thoughts").json()["results"]] == [stays["id"]]


def test_a_note_edited_by_hand_is_found_anew(rim, work):
    told = work.capture("the old wording")
    file = work.file_of(told["id"])
    file.write_text(file.read_text().replace("old wording", "new phrase"))
    until(lambda: work.rest("GET", f"/thought/{told['id']}").json()["chunks"][0]["content"] == "the new phrase")
    assert work.rest("GET", f"/thought/{told['id']}").json()["content"] == "the new phrase"


def test_deleting_removes_it_everywhere(rim, work):
    told = work.capture("doomed")
    answer = work.rest("DELETE", f"/thought/{told['id']}")
    assert answer.status_code == 200
    assert answer.json() == {"id": told["id"], "deleted": True, "title": "doomed", "suspicious": []}
    for method in ("GET", "DELETE"):
        answer = work.rest(method, f"/thought/{told['id']}")
        assert (answer.status_code, error(answer)) == (404, "NOT_FOUND")
    assert work.rest("GET", "/thoughts").json()["results"] == []


def test_the_whole_corpus_can_be_walked_in_batches(rim, work):
    with work.clock(itertools.count(1_700_000_000_000).__next__):
        made = [work.capture(f"note {at}")["id"] for at in range(23)]
    seen, before, batches = [], None, 0
    while True:
        query = {"limit": 5} | ({"before": before} if before else {})
        batch = work.rest("GET", "/thoughts", params=query).json()
        seen += [note["id"] for note in batch["results"]]
        batches += 1
        before = batch["next_before"]
        if before is None:
            break
        assert before == batch["results"][-1]["created_at"]
    assert seen == made[::-1]
    assert batches == 5


def test_walking_loses_nothing_when_notes_share_a_millisecond(rim, work):
    with work.clock(lambda: 1_700_000_000_000):
        made = {work.capture(f"same {at}")["id"] for at in range(7)}
    made |= {work.capture(f"other {at}")["id"] for at in range(2)}
    seen, before = [], None
    while True:
        query = {"limit": 3} | ({"before": before} if before else {})
        batch = work.rest("GET", "/thoughts", params=query).json()
        seen += [note["id"] for note in batch["results"]]
        if (before := batch["next_before"]) is None:
            break
    assert len(seen) == len(set(seen))
    assert set(seen) == made


def test_a_list_is_concise_and_whole_on_request(rim, work):
    work.capture("y" * 9_000)
    work.capture("short")
    short, long = work.rest("GET", "/thoughts").json()["results"]
    assert short["content"] == "short"
    assert not short["content_truncated"]
    assert len(long["content"]) == 8_000 - 5
    assert long["content_truncated"]
    long = work.rest("GET", "/thoughts?detail=full").json()["results"][1]
    assert len(long["content"]) == 9_000
    assert not long["content_truncated"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/capture", {}, "content"),
        ("/capture", {"content": ""}, "content"),
        ("/capture", {"content": None}, "content"),
        ("/capture", {"content": 5}, "content"),
        ("/capture", {"content": "x", "colour": 1}, "colour"),
        ("/capture", {"content": "x", "metadata": []}, "metadata"),
        ("/capture", {"content": "x", "metadata": {"a": "b" * 40_000}}, "metadata"),
        ("/capture", {"content": "x", "metadata": {"id": "mine"}}, "id"),
        ("/capture", {"content": "x", "source": "s" * 501}, "source"),
        ("/search", {"query": ""}, "query"),
        ("/search", {"query": "q" * 2_001}, "query"),
        ("/search", {"query": " \n"}, "query"),
        ("/search", {"query": "q", "since": 5, "until": 5}, "since"),
        ("/search", {"query": "q", "tags": ["#"]}, "tags"),
        ("/search", {"query": "q", "top_k": 0}, "top_k"),
        ("/search", {"query": "q", "top_k": -1}, "top_k"),
        ("/search", {"query": "q", "top_k": 10**9}, "top_k"),
        ("/search", {"query": "q", "top_k": True}, "top_k"),
        ("/search", {"query": "q", "top_k": 1.5}, "top_k"),
        ("/search", {"query": "q", "mode": "magic"}, "mode"),
        ("/search", {"query": "q", "collection": "secrets"}, "collection"),
        ("/search", {"query": "q", "tags": "plain"}, "tags"),
        ("/search", {"query": "q", "tags": ["t"] * 21}, "tags"),
        ("/search", {"query": "q", "tags": [""]}, "tags"),
        ("/search", {"query": "q", "since": "yesterday"}, "since"),
        ("/search", {"query": "q", "until": 10**17}, "until"),
        ("/search", {"query": "q", "workspace": "secret"}, "workspace"),
        ("/search", [1], "body"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_value_is_named_but_not_repeated(rim, path, body, field):
    answer = rim.rest("POST", path, json=body)
    assert (answer.status_code, error(answer)) == (400, "INVALID_ARGUMENT")
    assert field in answer.json()["error"]["message"]
    assert len(answer.content) < 1_000


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"content": "\\ud800"}',
        b'{"content": "x", "metadata": {"a": NaN}}',
        b'{"content": "x", "metadata": {"a": ' + b"9" * 5_000 + b"}}",
        b"[" * 100_000,
        b'{"content": "x", "metadata": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}",
        b'{"content": "x"}{"content": "y"}',
    ],
    ids=lambda raw: ascii(raw[:30]),
)
def test_what_is_no_json_is_refused(rim, raw):
    answer = rim.rest("POST", "/capture", content=raw, headers={"content-type": "application/json"})
    assert (answer.status_code, error(answer)) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "limit=1&limit=2", "before=soon", "colour=1", "before=nan"]
)
def test_a_wrong_parameter_is_refused(rim, query):
    answer = rim.rest("GET", f"/thoughts?{query}")
    assert (answer.status_code, error(answer)) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    "unknown", ["nope", "..%2f..%2fetc%2fpasswd", "%00", "'%20OR%201=1--", "%F0%9F%8E%89", "a" * 200]
)
def test_an_unknown_id_is_not_found(rim, unknown):
    answer = rim.rest("GET", f"/thought/{unknown}")
    assert (answer.status_code, error(answer)) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/capture", 405),
        ("PUT", "/capture", 405),
        ("TRACE", "/capture", 405),
        ("OPTIONS", "/capture", 405),
        ("POST", "/thoughts", 405),
        ("GET", "/docs", 404),
        ("GET", "/thought/", 404),
        ("GET", "/thought/a/b", 404),
    ],
)
def test_what_is_not_served_is_refused_in_the_same_shape(rim, method, path, status):
    answer = rim.rest(method, path, **({"json": {}} if method == "POST" else {}))
    assert answer.status_code == status
    assert error(answer) == ("NOT_FOUND" if status == 404 else "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("path", "sent"),
    [("/search", {"query": f"where is the {CRASH}"}), ("/capture", {"content": f"this is the {CRASH}"})],
)
def test_a_crash_tells_nothing(rim, work, path, sent):
    answer = work.rest("POST", path, json=sent)
    assert (answer.status_code, error(answer)) == (503, "UNAVAILABLE")
    assert "secret" not in answer.text
    assert "home" not in answer.text
    assert list(work.folder.iterdir()) == []


def test_text_that_is_no_unicode_does_not_take_the_answer_with_it(rim, work):
    (work.folder / "t\ufffd.md").write_bytes(b'---\nk: ["v\\udcfe", 1, caf\xe9]\ntitle: "t\\ud800"\n---\nodd caf\xe9\n')
    until(lambda: work.rest("GET", "/thoughts").json()["results"])
    (note,) = work.rest("GET", "/thoughts").json()["results"]
    assert note["content"] == "odd caf\ufffd\n"
    for answer in (work.rest("GET", f"/thought/{note['id']}"), work.rest("POST", "/search", json={"query": "odd"})):
        assert answer.status_code == 200
        assert answer.content.decode()


def test_health_is_told_to_anybody_and_paths_only_to_those_who_may_see_them(tmp_path):
    def fill(world):
        for path in ("Diary/Mine.md", "Captures/Reports/Bad.md", "Captures/work/Bad.md", "Captures/secret/Bad.md"):
            world.write(path, "---\nbroken: [\n---\n")
        (world.vault / "Captures/work/Link.md").symlink_to("Bad.md")  # not indexed, and so a defect too

    with running(tmp_path, fill=fill) as rim:
        assert rim.rest("GET", "/healthz", key=None).json() == {"status": "ok", "degraded": []}

        def paths(key):
            state = rim.rest("GET", "/readyz", key=key).json()
            told = {"ready", "degraded"} | ({"pending", "captures", "defects"} if key else set())
            assert set(state) == told | ({"vault", "generation"} if key == "owner" else set())
            assert state["ready"] is True
            assert not key or state["captures"]["documents"] == (1 if key in ("work", "bound") else 2)
            assert key != "owner" or state["vault"]["documents"] == 2
            return {one["path"] for one in state.get("defects", ())}

        _, rim.secrets["bound"] = rim.agent_access.keys.create(
            "bound", workspaces=("work",), scopes=SCOPES, now=now_ms()
        )
        assert paths(None) == set()
        assert paths("bound") == paths("work"), "an admin of one workspace is not the vault's owner"
        assert paths("work") == {"Captures/work/Bad.md", "Captures/work/Link.md"}
        assert paths("full") == paths("work") | {"Captures/secret/Bad.md"}
        assert paths("owner") == paths("full") | {"Diary/Mine.md", "Captures/Reports/Bad.md"}


def test_what_happens_outside_the_inbox_moves_no_number_that_others_are_told(tmp_path):
    with running(tmp_path) as rim:
        space = rim.space()
        space.capture("a note")
        rim.world.settled()
        before = [rim.rest("GET", "/readyz", key=key).json() for key in (None, space.name, "full")]
        own = rim.rest("GET", "/readyz", key="owner").json()
        rim.world.write("Diary/Mine.md", "dear diary\n")
        rim.world.app.opened.sync.hint(["Diary/Mine.md"])
        until(lambda: rim.rest("GET", "/readyz", key="owner").json()["vault"]["documents"] > own["vault"]["documents"])
        rim.world.settled()
        assert [rim.rest("GET", "/readyz", key=key).json() for key in (None, space.name, "full")] == before
        assert rim.rest("GET", "/readyz", key="owner").json()["generation"] > own["generation"]


def test_what_another_workspace_does_moves_nothing_that_a_key_or_nobody_is_told(tmp_path):
    with running(tmp_path) as rim:
        mine, other = rim.space(), rim.space()
        mine.capture("a note of mine")
        other.capture("a note of theirs")
        rim.world.settled()

        def told():
            """All that each health route and status answers, headers too."""
            time.sleep(1.1)  # what was told before is given for a second
            asked = [(path, key) for path in ("/healthz", "/readyz") for key in (None, mine.name)]
            answers = [rim.rest("GET", path, key=key) for path, key in [*asked, ("/api/v1/status", mine.name)]]
            changing = ("date", "x-request-id")
            return [
                (one.status_code, one.text, {name: of for name, of in one.headers.items() if name not in changing})
                for one in answers
            ]

        before = told()
        theirs = [rim.rest("GET", "/readyz", key=key).json() for key in (other.name, "full")]
        for number in range(3):
            other.capture(f"{number} of theirs")
        (other.folder / "Broken.md").write_text("---\nbroken: [\n---\n")
        job = other.rest("POST", "/api/v1/jobs", files={"file": ("a.pdf", b"%PDF-nothing")}).json()["job_id"]
        until(lambda: rim.world.app.opened.queue.job(job).status == "failed")
        rim.world.settled()
        assert told() == before
        assert rim.rest("GET", "/readyz", key="full").json()["captures"]["documents"] >= 4 + 2
        after = [rim.rest("GET", "/readyz", key=key).json() for key in (other.name, "full")]
        assert [
            a["captures"]["documents"] - b["captures"]["documents"] for a, b in zip(after, theirs, strict=True)
        ] == [4] * 2


def test_a_vault_that_is_gone_is_told_without_its_path(tmp_path):
    with running(tmp_path) as rim:
        space = rim.space()
        told = space.capture("still in the index")
        rim.world.vault.rename(tmp_path / "elsewhere")
        rim.world.app.opened.sync.request_listing()
        until(lambda: any("vault" in one for one in rim.rest("GET", "/healthz", key=None).json()["degraded"]))
        answers = [
            rim.rest("GET", "/healthz", key=None),
            *(rim.rest("GET", "/readyz", key=key) for key in (None, space.name, "full")),
            space.rest("GET", f"/thought/{told['id']}"),
            space.rest("POST", "/capture", json={"content": "lost?"}),
        ]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 503, 503]
        for answer in answers:
            assert str(tmp_path) not in answer.text
            assert tmp_path.name not in answer.text
        (tmp_path / "elsewhere").rename(rim.world.vault)
        until(lambda: space.rest("GET", f"/thought/{told['id']}").status_code == 200)


def test_a_daemon_is_not_ready_before_the_first_listing(tmp_path):
    with unlisted(tmp_path) as rim:
        for key in (None, "work", "owner"):
            answer = rim.rest("GET", "/readyz", key=key)
            assert (answer.status_code, answer.json()["ready"]) == (503, False)
        assert rim.rest("GET", "/healthz", key=None).status_code == 200


def test_the_description_is_valid_openapi_and_names_every_route(rim):
    described = rim.rest("GET", "/openapi.json").json()
    validate(described)
    assert set(described["paths"]) == {
        "/capture",
        "/search",
        "/thought/{id}",
        "/thoughts",
        "/context",
        "/api/v1/search",
        "/api/v1/jobs",
        "/api/v1/jobs/{id}",
        "/api/v1/documents",
        "/api/v1/documents/{id}/tags",
        "/api/v1/notes/{id}",
        "/api/v1/status",
        "/api/v1/documents/{id}",
        "/healthz",
        "/readyz",
        "/hooks/git",
        "/metrics",
    }
    assert set(described["paths"]["/thought/{id}"]) == {"get", "delete"}
    assert (
        "title"
        in described["paths"]["/search"]["post"]["responses"]["200"]["content"]["application/json"]["schema"][
            "properties"
        ]["results"]["items"]["properties"]
    )
    assert json.dumps(described).count("$defs") == 0


@pytest.mark.slow
def test_twenty_clients_at_once_lose_and_double_nothing(rim, work):
    def client(number):
        ids = [work.capture(f"client {number} note {turn}")["id"] for turn in range(5)]
        shared = work.capture("shared by all")["id"]
        hits = work.rest("POST", "/search", json={"query": f"client {number} note"}).json()["results"]
        return ids, shared, len(hits)

    with ThreadPoolExecutor(20) as pool:
        told = list(pool.map(client, range(20)))
    ids = [note for made, _, _ in told for note in made]
    assert len(set(ids)) == 100
    assert len({shared for _, shared, _ in told}) == 1
    assert len(list(work.folder.iterdir())) == len(work.tools.recent(500)) == 101


def test_an_unknown_collection_is_refused_with_those_that_are_known(rim, work):
    told = work.rest("POST", "/search", json={"query": "q", "collection": "docs"}).json()["error"]
    assert "documents, memory, workspace" in told["message"]
    assert told["details"]["collections"] == list(COLLECTIONS)
    told = work.rest("POST", "/capture", json={"content": "x", "metadata": {"tags": ["collection:docs"]}})
    assert (told.status_code, told.json()["error"]["details"]["collections"]) == (400, list(COLLECTIONS))
    assert list(work.folder.iterdir()) == []


def run_here(page):
    """The blocks of a page whose mark names this file."""
    return [block for block in blocks(ROOT / page) if block.mark == "run by tests/contract/test_rest.py"]


@pytest.mark.parametrize("page", ["docs/rest.md", "docs/guides/files.md"])
def test_the_upload_of_the_page_works_as_it_stands(rim, work, tmp_path, page):
    (tmp_path / "report.pdf").write_bytes(pdf(["The heat pump was serviced in May."]))
    command = run_here(page)[-1].text.replace('"$API', f'"{rim.url}').replace("http://127.0.0.1:8765", rim.url)
    command = command.replace("$KEY", rim.secrets[work.name]).replace("Bearer KEY", f"Bearer {rim.secrets[work.name]}")
    shown = subprocess.run(["sh", "-euc", command], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    job = json.loads(shown)["job_id"]
    done = until(lambda: (row := work.rest("GET", f"/api/v1/jobs/{job}").json())["status"] == "done" and row)
    assert "heating" in work.rest("GET", f"/api/v1/documents/{done['document_id']}").json()["tags"]


def test_the_lines_of_the_page_work_as_they_stand(rim, work):
    lines = run_here("docs/rest.md")[0].text
    lines = lines.replace("YOUR_KEY", rim.secrets[work.name]).replace("http://127.0.0.1:8765", rim.url)
    script = "\n".join(
        f"{line}{'; echo' if line.startswith(('post /', 'curl')) else ''}" for line in lines.splitlines()
    )
    shown = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True).stdout
    made, found, listed, whole, gone, health = map(json.loads, shown.splitlines())
    assert made["title"] == "Heat pump"
    assert made["tags"] == ["home"]
    assert found["results"][0]["document_id"] == listed["results"][0]["id"] == whole["id"] == made["id"]
    assert whole["content"] == "# Heat pump\n\nThe filter is due in May."
    assert gone["deleted"] is True
    assert health["status"] == "ok"
    assert list(work.folder.iterdir()) == []
