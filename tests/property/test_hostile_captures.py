"""Captures that try to promote themselves: by every tool that writes, marks in every place, shape and disguise.

None of it moves a note, changes a file of the vault proper or breaks what comes after."""

from __future__ import annotations

import json
import time
from base64 import b64encode

import pytest

from syncd.documents.owner_marks import read_marks
from syncd.notes.front_matter import decode
from tests.support.live_server import running
from tests.support.mcp_agent import member
from tests.support.world import until

PROPER = {
    "Home.md": "[[Captures/default/x]] [[Promoted]] [[Note]]\n",
    "Notes/Note.md": "---\nid: n1\npromote: true\n---\nA note of the vault.\n",
    "Board.canvas": '{"nodes":[{"id":"1","type":"file","file":"Notes/Note.md"}],"edges":[]}',
    ".obsidian/app.json": '{"newLinkFormat":"relative"}',
}
FRONT = "---\npromote: true\npromote_to: Notes\n---\n"
TEXTS = [
    "promote: true",
    f"{FRONT}body",
    f"\n{FRONT}body",
    f"\ufeff{FRONT}body",
    f"text\n\n{FRONT}body",
    FRONT.replace("\n", "\r\n"),
    FRONT.replace("\n", "\r"),
    "---\n---\npromote: true\n---\n",
    "...\n---\npromote: true\n---\n",
    "---\npromote: true\n...\n",
    f"```yaml\n{FRONT}```\n",
    f"```\nnever closed\n{FRONT}",
    f"~~~\n```\n~~~\n{FRONT}```\n",
    f"%%\n{FRONT}%%",
    f"<!--\n{FRONT}-->",
    "promote:: true\n[promote:: true]\n(promote_to:: Notes)",
    "- [x] accept ^p-0123456789abcdef\n- [x] promote",
    "promo\u200bte: true\n\u202eeurt :etomorp\u202c",
    "---\n!!python/object/apply:os.system ['true']: promote\n---\n",
    "---\na: &x {promote: true}\n<<: *x\n---\n",
    "---\npromote: false\npromote: true\n---\n",
    "---\n? promote\n: true\n---\n",
    "---\n\"promote\": true\n'promote': true\nPROMOTE: true\n---\n",
    '---\n"\\u0070romote": true\n---\n',
    "---\n{promote: true}\n---\n",
    '---\n{"promote": true}\n---\n',
    "[[../../Home]] [[/Notes/Note]] ![[Home]] [x](../../Home.md) [y](<../../../etc/passwd>)",
    "![[Captures/Review.base]] ![[Captures/Reports/Report]]",
    "\x00\x1b[2Jpromote: true\x07",
    "[[" + "a" * 100_000 + "]]",
    "[x](" + "b/" * 50_000 + "c.md)",
    "[[Note]] " * 10_000,
    "[a](Note.md) " * 8_000,
    "[" * 50_000,
    "![[" * 30_000,
]
LONG = next(at for at, text in enumerate(TEXTS) if len(text) > 10_000)
KEYS = [
    "promote", "Promote", "PROMOTE", " promote", "promote ", "promote_to", "review", "promoted_at", "superseded_by", "suggested_folder",
    "promote_problem", "promo\u200bte", "\u202epromote", "promote\u2060", "ｐｒｏｍｏｔｅ", "pr\u043emote", "promote\n", "x\npromote: true\ny",
    "x\r\npromote: true\r\ny", "x\u2028promote", "promote: true #", '"promote"', "'promote'", "? promote", "<<", "&a promote", "*a", "!!bool promote",
    "---", "---\npromote", "id", "__proto__", "promote\x85", "\ufeffpromote", "promot\u0065\u0301",
]  # fmt: skip
VALUES = [
    True,
    "true",
    "true\npromote: true",
    "x\n---\npromote: true\n---\n",
    ["a", "\npromote: true"],
    {"promote": True},
    "\u202etrue",
    "*a",
    "!!bool true",
]
NAMES = [
    "../../Home",
    "..\\..\\Home",
    "/Home",
    "Notes/Note",
    "Home.md",
    "promote: true",
    "x\npromote: true",
    "CON",
    "a" * 300,
    "\u202egnp.md",
    "Review.base",
]


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    def fill(world):
        for path, text in PROPER.items():
            world.write(path, text)
        world.init_git("Ann")
        world.git("add", "-A")
        world.git("commit", "-qm", "mine")

    with running(tmp_path_factory.mktemp("hostile"), fill=fill) as served:
        yield served


@pytest.fixture
def one(rim):
    space = rim.space()
    with member(space) as made:
        yield made
    unharmed(rim, space)


def unharmed(rim, space):
    """After all jobs: no capture has moved or is marked, nothing of the vault proper is changed, and the daemon is well."""
    app = rim.world.app
    until(lambda: len(app.opened.sync.pending_paths) == 0, 60)
    before = rim.files()
    own = f"Captures/{space.name}/"
    for work in (app.services.marked_captures.run, app.services.manual_moves.run, app.services.commits.flush):
        work()
    after = rim.files()
    assert {path for path in before if path.startswith(own)} == {path for path in after if path.startswith(own)}
    for path, text in PROPER.items():
        assert after[path] == text.encode(), path
    assert not [path for path in after if path.startswith("Notes/") and path != "Notes/Note.md"]
    assert app.services.waiting.find_captures(lambda said: said.promote) == []
    for path, raw in after.items():
        if path.startswith(own) and path.endswith(".md"):
            found = read_marks(decode(raw))
            assert not found.promote, path
            assert (found.promote_to, found.review, found.superseded_by) == (None, None, None), path
            assert app.opened.builds.scopes["captures"].index.record_at(path) is not None, "it is found"
    assert app.opened.ledger.query("SELECT * FROM promotions") == []
    assert rim.rest("GET", "/api/v1/status").status_code == 200


def asked(one, tool, **given):
    """What a tool tells of something odd: it is done, or refused in so many words; it never fails."""
    code, told = one.ask(tool, **given)
    assert code in ("ok", "INVALID_ARGUMENT", "CONFLICT", "RESOURCE_EXHAUSTED", "NOT_FOUND"), (
        tool,
        str(given)[:200],
        told,
    )
    return told if code == "ok" else None


def done(one, id):
    def over():
        (job,) = one.good("kb_jobs", job_id=id)["jobs"]
        return job["status"] in ("done", "failed") and job

    until(over, 60)
    return over()


def test_texts_that_are_captured(one):
    assert all(asked(one, "capture_thought", content=text) for text in TEXTS[:LONG])


@pytest.mark.slow
def test_texts_of_nothing_but_links(one):
    assert all(asked(one, "capture_thought", content=text) for text in TEXTS[LONG:])


@pytest.mark.slow
def test_metadata_of_captures_and_memos(one):
    for key in KEYS:
        for value in VALUES[:2] if key != "promote" else VALUES:
            asked(one, "capture_thought", content=f"{key!a} {value!a}", metadata={key: value})
            asked(one, "memory.save", content=f"memo {key!a} {value!a}", metadata={key: value})
    for value in VALUES:
        asked(one, "capture_thought", content=f"value {value!a}", metadata={"own": value})
    for key in ("promote", "Promote", "PROMOTE", "promote_to", "review", "superseded_by"):
        told = asked(one, "capture_thought", content=f"told {key}", metadata={key: True})
        assert told is None or key not in json.dumps(one.good("get_thought", id=told["id"])["metadata"])


@pytest.mark.slow
def test_names_and_small_fields(one):
    for name in NAMES:
        asked(one, "capture_thought", content=f"name {name!a}", metadata={"title": name, "tags": [name]}, source=name)
        asked(one, "capture_thought", content=f"space {name!a}", namespace=name)
        asked(one, "kb_addnote", text=f"{FRONT}{name!a}", title=name, tags=[name])
        asked(one, "kb_addnote", text=f"collection {name!a}", collection=name)
        asked(one, "memory.save", content=f"memo {name!a}", title=name)
        asked(one, "memory.save", content=f"memo id {name!a}", memo_id=name)


@pytest.mark.slow
def test_memos_and_their_relations(one):
    for text in TEXTS:
        asked(one, "memory.save", content=text)
    first, other = (one.good("memory.save", content=f"memo {n}")["memo_id"] for n in "ab")
    for text in (*NAMES, *TEXTS[:26]):
        asked(one, "memory.relation.save", sourceMemoId=first, targetMemoId=other, tag=text[:100], reason=text[:1_000])


@pytest.mark.slow
def test_nodes_and_what_is_said_of_them(one):
    for number, text in enumerate((*TEXTS, *NAMES)):
        entity = {"name": text[:200], "entity_type": text[:100], "observations": [text[:8_000]], "tags": [text[:50]]}
        asked(one, "create_entities", entities=[entity])
        one.good("create_entities", entities=[{"name": f"node {number}", "entity_type": "thing"}])
        for said in (text, f"{FRONT}{text[:100]}"):
            asked(one, "add_observations", observations=[{"entity_name": f"node {number}", "contents": [said]}])
        asked(one, "set_summary", name=f"node {number}", summary=text[:1_000])
        asked(one, "set_tags", name=f"node {number}", tags=[text[:50]])
        relation = {"from_entity": f"node {number}", "to_entity": "node 0", "relation_type": text[:100]}
        asked(one, "create_relations", relations=[relation])


@pytest.mark.slow
def test_notes_of_the_knowledge_base_and_their_new_texts(one):
    jobs = [told["job_id"] for text in TEXTS if (told := asked(one, "kb_addnote", text=text))]
    ended = [done(one, id) for id in jobs]
    made = [job["document_id"] for job in ended if job["status"] == "done"]
    assert len(made) >= len(TEXTS) - 3
    for id, text in zip(made, reversed(TEXTS), strict=False):
        asked(one, "kb_update_note", id=id, text=text)
        asked(one, "set_document_tags", id=id, tags=["promote: true", "x\npromote: true"])


@pytest.mark.slow
def test_uploaded_notes_with_properties_of_their_own(one):
    begun = time.monotonic()
    for number, text in enumerate((*TEXTS, *(f"---\n{key}: true\n---\nbody" for key in KEYS))):
        data = text.encode()
        told = asked(one, "kb_upload_start", filename=f"n{number}.md", total_size=len(data))
        for index in range(0, len(data), 900_000):
            piece = b64encode(data[index : index + 900_000]).decode()
            one.good("kb_upload_chunk", upload_id=told["upload_id"], chunk_index=index // 900_000, data=piece)
        done(one, one.good("kb_upload_finish", upload_id=told["upload_id"])["job_id"])
    assert time.monotonic() - begun < 300


def test_a_person_s_own_mark_in_the_midst_of_all_that_counts(rim):
    """That the jobs do run: what the tests above hold would else be held by any daemon."""
    space = rim.space()
    with member(space) as one:
        made = one.good("capture_thought", content=FRONT)
    file = space.file_of(made["id"])
    file.write_text(file.read_text().replace("---\n", "---\npromote: true\n", 1))
    until(lambda: not file.exists(), 60)
    (note,) = [path for path in rim.files() if path.startswith("Notes/") and path != "Notes/Note.md"]
    assert rim.files()[note].decode().endswith(f"---\n{FRONT}"), "its text is as it was"
