"""Uploads and dropped files in a running daemon: real converter, real watcher, real queue."""

from __future__ import annotations

import shutil
import zipfile

import pytest

from index.model import Query
from tests.support.world import World, until

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def docx(path, text):
    """A small Word file, as its format says."""
    body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
        f'ContentType="{DOCX}.main+xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f"<w:document {space}>{body}</w:document>",
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as file:
        for name, part in parts.items():
            file.writestr(name, part)


def found(world, text):
    return [hit.record for hit in world.app.agent_access.workspace("default").search(Query(text)).hits]


@pytest.mark.slow
def test_what_is_dropped_while_the_daemon_runs_is_found(world, tmp_path):
    world.write("Note.md", "mine\n")
    world.git("init", "-q")
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    with world.serving():
        queue = world.app.opened.queue
        made = tmp_path / "made.docx"
        docx(made, "The walrus sleeps on the ice")
        target = world.vault / "Captures/default/papers/Sea cows.docx"
        target.parent.mkdir()
        shutil.copy(made, target)
        world.write("Captures/default/numbers.csv", "animal,count\nwalrus,7\n")
        world.write("Captures/default/broken.pdf", b"%PDF-1.7 nothing of the kind")
        world.write("Captures/default/half.pdf.part", b"%PDF-1.7")
        until(lambda: queue.counts() == {"queued": 0, "running": 0, "done": 2, "failed": 1}, 120)
        assert {record.title for record in found(world, "walrus")} == {"Sea cows.docx", "numbers.csv"}
        (failed,) = queue.jobs(status="failed")
        assert failed.error["code"] == "INVALID_ARGUMENT"
        assert "%PDF" not in failed.error["message"]
        assert failed.title == "broken.pdf"
        target.write_bytes(b"")
        docx(target, "The narwhal wakes")
        until(lambda: found(world, "narwhal wakes")[:1] and "narwhal" in world.app.agent_access.workspace("default").read_content(found(world, "narwhal wakes")[0]), 120)  # fmt: skip
        facts = world.app.operations["status"]({}, lambda _: None)["files"]
        assert facts == {"known": 2, "waiting": 0, "unread": [], "missing": []}
    told = world.git("status", "--porcelain", "-uall").splitlines()
    assert all(line.startswith("?? Captures/") for line in (line.replace('"', "") for line in told))
    assert len(told) == 4  # a person's own files; what Memex wrote of them is committed
    committed = world.git("ls-files", "Captures").splitlines()
    assert len([path for path in committed if "/Context/" not in path]) == 2  # the context is written when it is time


def test_an_upload_goes_through_the_queue(world, tmp_path):
    staged = tmp_path / "staged"
    staged.write_text("# Plan\n\nThe walrus sleeps.\n")
    with world.serving():
        given = {"name": "plan.txt", "size": 20, "title": None, "tags": ["sea"], "collection": "memory"}
        job = world.app.opened.queue.add_file("k1", "default", given, staged)
        until(lambda: world.app.opened.queue.job(job.id).status in ("done", "failed"), 120)
        done = world.app.opened.queue.job(job.id)
        assert done.error is None
        kept = world.app.agent_access.workspace("default").get(done.document_id)
        assert (kept.record.title, kept.record.collection, kept.record.tags[0]) == ("plan.txt", "memory", "sea")
        assert "walrus" in kept.content
        assert not staged.exists()
        assert not list((world.state / "staged").iterdir())
    stored = world.vault / kept.record.file
    assert stored.read_text() == "# Plan\n\nThe walrus sleeps.\n"


def test_a_key_cannot_have_a_file_of_the_vault_read(world, tmp_path):
    world.write("Captures/default/theirs.txt", "secret walrus")
    staged = tmp_path / "staged"
    staged.write_text("my own text")
    given = {"name": "a.txt", "size": 11, "path": "Captures/default/theirs.txt"}
    job = world.app.opened.queue.add_file("k1", "default", given, staged)
    world.app.worker.drain([job.id], lambda _: None)
    kept = world.app.agent_access.workspace("default").get(world.app.opened.queue.job(job.id).document_id)
    assert "my own text" in kept.content


@pytest.mark.slow
def test_a_missing_file_is_told_where_people_and_agents_look(world):
    world.write("Captures/default/a.txt", "The walrus sleeps.")
    with world.serving():
        until(lambda: world.app.opened.queue.counts()["done"] == 1, 120)
        (world.vault / "Captures/default/a.txt").unlink()
        until(lambda: world.app.file_import.dropped.facts()["missing"] == ["Captures/default/a.txt"], 60)
        told = world.app.health.status(["default"])["defects"]
        assert [one["path"] for one in told if one["defect"].startswith("file-missing")] == [
            "Captures/default/Files/a.txt.md"
        ]
        assert any(one["defect"].startswith("file-missing") for one in world.app.health.status(None)["defects"])
        assert world.app.health.status(["work"])["defects"] == []
