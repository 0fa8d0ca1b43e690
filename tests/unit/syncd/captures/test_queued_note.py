"""Queued notes on a real vault: what each becomes, and what is refused before it is queued."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument, NotFound, ResourceExhausted, Unavailable
from syncd.history.audit_log import Author, acting_as
from tests.support.world import World, until


@pytest.fixture
def world(tmp_path):
    one = World(tmp_path)
    yield one
    one.close()


def done(world, *jobs):
    """The documents of these jobs, carried out here and now."""
    world.app.worker.drain([job.id for job in jobs], lambda _: None)
    ended = [world.app.opened.queue.job(job.id) for job in jobs]
    assert [job.status for job in ended] == ["done"] * len(jobs), [job.error for job in ended]
    return [world.app.agent_access.workspace(job.workspace).get(job.document_id) for job in ended]


def home(world, name="default"):
    return world.app.agent_access.workspace(name)


def test_a_queued_note_becomes_a_document_of_the_id_it_was_promised(world):
    text = "# Curlews\r\n\u2028 they probe, exactly so "
    job = home(world).add_note(
        text, key="k1", title="On curlews", tags=["#bird", "long bill"], namespace="shore", source="claude"
    )
    assert (job.status, job.document_id, job.progress, job.title) == ("queued", None, 0.0, "On curlews")
    (kept,) = done(world, job)
    record = kept.record
    assert kept.content == text
    assert record.id == job.planned
    assert (record.title, record.namespace, record.source, record.collection) == (
        "On curlews",
        "shore",
        "claude",
        "documents",
    )
    assert set(record.tags) >= {"bird", "long-bill"}
    assert record.created_at == job.created_at
    ended = home(world).job("k1", job.id)
    assert (ended.document_id, ended.progress, ended.error) == (record.id, 1.0, None)
    assert "text" not in ended.given
    assert world.found("probe") == [record.path]


def test_who_queued_a_note_is_its_author_in_the_log(world):
    author = Author("mcp", "kb_addnote", "abc", "claude", "r1")
    with acting_as(author):
        job = home(world).add_note("a knot in the surf", key="abc")
    world.reopen()
    (kept,) = done(world, job)
    (entry,) = world.app.opened.audit.find(10, id=kept.record.id)
    assert (entry.surface, entry.tool, entry.key, entry.name, entry.request) == tuple(
        getattr(author, name) for name in ("surface", "tool", "key", "name", "request")
    )


def test_a_text_that_is_held_is_that_document_and_gets_the_tags_it_lacks(world):
    first, again = (
        home(world).add_note("the same dunlin", key=key, tags=tags) for key, tags in (("a", ["x"]), ("b", ["X", "y"]))
    )
    one, two = done(world, first, again)
    assert one.record.id == two.record.id == first.planned
    assert [tag for tag in two.record.tags if tag in "xyXY"] == ["x", "y"]
    assert (two.record.version, two.record.updated_at is None) == (2, False)
    before = (world.vault / two.record.path).read_bytes()
    (three,) = done(world, home(world).add_note("the same dunlin", key="c", tags=["y"]))
    assert three.record.id == first.planned
    assert (world.vault / two.record.path).read_bytes() == before, "it lacked nothing"


def test_the_same_text_elsewhere_is_another_document(world):
    world.app.agent_access.create_workspace("work")
    places = [("default", {}), ("default", {"namespace": "b"}), ("default", {"collection": "memory"}), ("work", {})]
    kept = done(world, *(home(world, name).add_note("a sanderling", key="k", **more) for name, more in places))
    assert len({one.record.id for one in kept}) == 4


def test_a_text_that_was_edited_a_moment_ago_is_not_held_any_more(world):
    (first,) = done(world, home(world).add_note("a turnstone", key="k"))
    file = world.vault / first.record.path
    file.write_bytes(file.read_bytes().replace(b"a turnstone", b"a plover"))
    (second,) = done(world, home(world).add_note("a turnstone", key="k"))
    assert second.record.id != first.record.id
    assert second.content == "a turnstone"


def test_a_note_whose_properties_a_person_broke_gets_no_tags_and_the_job_says_so(world):
    (first,) = done(world, home(world).add_note("a ruff", key="k"))
    file = world.vault / first.record.path
    file.write_bytes(file.read_bytes().replace(b"created_at:", b"by: one\nby: another\ncreated_at:"))
    world.run()
    job = home(world).add_note("a ruff", key="k", tags=["new"])
    world.app.worker.drain([job.id], lambda _: None)
    ended = world.app.opened.queue.job(job.id)
    assert (ended.status, ended.error["code"]) == ("failed", "CONFLICT")
    assert "properties" in ended.error["message"]
    assert b"new" not in file.read_bytes()
    assert len(list((world.vault / "Captures/default").glob("*.md"))) == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"text": ""}, InvalidArgument),
        ({"text": "x" * 1_000_001}, ResourceExhausted),
        ({"text": "\ud800"}, InvalidArgument),
        ({"namespace": "../up"}, InvalidArgument),
        ({"namespace": "Files"}, InvalidArgument),
        ({"namespace": "a/Zed.MD"}, InvalidArgument),
        ({"source": "a\nb"}, InvalidArgument),
        ({"title": "a\ud800"}, InvalidArgument),
    ],
)
def test_what_could_not_be_made_is_refused_before_it_is_queued(world, given, error):
    with pytest.raises(error):
        home(world).add_note(**({"text": "t", "key": "k"} | given))
    assert world.app.opened.queue.jobs() == []


def test_a_job_whose_workspace_was_deleted_fails_with_not_found(world):
    world.app.agent_access.create_workspace("brief")
    job = home(world, "brief").add_note("too late", key="k")
    world.app.agent_access.delete_workspace("brief")
    world.app.worker.drain([job.id], lambda _: None)
    ended = world.app.opened.queue.job(job.id)
    assert (ended.status, ended.error["code"]) == ("failed", "NOT_FOUND")
    assert not (world.vault / "Captures/brief").exists()


def test_jobs_of_another_key_or_workspace_are_as_if_they_were_not_there(world):
    world.app.agent_access.create_workspace("work")
    job = home(world).add_note("mine", key="a")
    told = []
    for name, key, id in (("default", "b", job.id), ("work", "a", job.id), ("default", "a", "0" * 32)):
        with pytest.raises(NotFound) as refused:
            home(world, name).job(key, id)
        told.append(refused.value.message.replace(id, "ID"))
    assert len(set(told)) == 1
    assert [one.id for one in home(world).jobs("a")] == [job.id]
    assert home(world).jobs("b") == home(world, "work").jobs("a") == []


def test_a_ledger_that_can_t_be_written_does_not_keep_the_daemon_from_starting(world, monkeypatch):
    job = home(world).add_note("a greenshank", key="k")
    world.app.opened.queue.begin(job.id)

    def full(*_):
        raise Unavailable("the ledger could not be written (disk full); nothing was changed")

    monkeypatch.setattr("syncd.jobs.queue.Queue.postpone", full)
    world.reopen()
    assert world.app.opened.queue.job(job.id).status == "running"
    monkeypatch.undo()
    world.reopen()
    assert world.app.opened.queue.job(job.id).status == "queued"


def test_a_daemon_carries_out_what_is_queued_at_once_and_what_was_queued_before(world):
    early = home(world).add_note("before the start, an avocet", key="a")
    world.reopen()
    with world.serving():
        until(lambda: world.app.opened.queue.job(early.id).status == "done")
        late = home(world).add_note("after the start, a godwit", key="b")
        until(lambda: world.app.opened.queue.job(late.id).status == "done")
        assert len(world.found("avocet godwit")) == 2
