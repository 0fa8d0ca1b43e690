"""What nobody gave of a note follows its text on every path that changes it, over the wire; what somebody gave stays."""

from __future__ import annotations

import json

import pytest

from syncd.cli.main import run_command
from syncd.daemon.control_socket import ControlServer
from tests.support.live_server import running
from tests.support.mcp_agent import member
from tests.support.until import until

ZEBRA = "Zebra migration across the Serengeti plain."
TAX = "Tax forms are due in April."


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


@pytest.fixture(scope="module")
def commands(rim):
    """The commands of the vault's owner, in this process."""
    server = ControlServer(rim.world.state, rim.world.app.operations)
    server.start()
    places = ["--vault", str(rim.world.vault), "--state", str(rim.world.state)]
    yield lambda name, *words: run_command([name, *words, *places])
    server.stop()


class Writer:
    """An agent and an owner in a workspace of their own: they make a note, and change it on one of the paths."""

    def __init__(self, path, space, one, commands):
        self.path, self.space, self.one, self.commands = path, space, one, commands

    def make(self, text, **given):
        if self.path == "memory.save":
            return self.one.good("memory.save", namespace="default", content=text, **given)["memo_id"]
        metadata = given.pop("metadata", {}) | given
        return self.space.capture(text, metadata=metadata)["id"]

    def change(self, id, text, **given):
        match self.path:
            case "kb_update_note":
                self.one.good("kb_update_note", id=id, text=text, **given)
            case "PATCH":
                answer = self.space.rest("PATCH", f"/api/v1/notes/{id}", json={"text": text, **given})
                assert answer.status_code == 200, answer.text
            case "memory.save":
                metadata = {"metadata": {"tags": given.pop("tags")}} if "tags" in given else {}
                self.one.good("memory.save", namespace="default", memo_id=id, content=text, **metadata, **given)
            case "updatenote":
                words = ["--title", given["title"]] if "title" in given else []
                words += [word for tag in given.get("tags", ()) for word in ("--tag", tag)]
                assert self.commands("updatenote", id, text, *words) == 0

    def read(self, id):
        return self.one.good("kb_get", id=id)

    def found(self, query, **where):
        return [hit["document_id"] for hit in self.one.good("kb_search", query=query, mode="text", **where)["results"]]


@pytest.fixture(params=["kb_update_note", "PATCH", "memory.save", "updatenote"])
def writer(request, rim, commands):
    space = rim.space()
    with member(space) as one:
        yield Writer(request.param, space, one, commands)


def summary(writer, id):
    return writer.space.tools.get(id).record.summary


def test_what_nobody_gave_follows_the_text_and_the_file_keeps_its_name(writer):
    id = writer.make(ZEBRA)
    before, file = writer.read(id), writer.space.file_of(id)
    assert (before["title"], "serengeti" in before["tags"], summary(writer, id)) == (ZEBRA[:-1], True, ZEBRA)
    writer.change(id, TAX)
    after = writer.read(id)
    assert (after["title"], summary(writer, id)) == (TAX[:-1], TAX)
    assert not set(after["tags"]) & set(before["tags"])
    assert "tax-form" in after["tags"]
    assert (writer.found("zebra"), writer.found("tax"), writer.found("April forms")) == ([], [id], [id])
    assert (writer.found("due", tags=["serengeti"]), writer.found("due", tags=["tax-form"])) == ([], [id])
    assert writer.space.file_of(id) == file
    assert f"title: {TAX[:-1]}\n" in file.read_text()
    writer.change(id, ZEBRA)
    again = writer.read(id)
    assert (again["title"], again["tags"]) == (before["title"], before["tags"])
    assert ("title:" in file.read_text()) is (file.stem != again["title"]), (
        "a property says what the file's name does not"
    )


def test_what_the_caller_gave_stays(writer):
    id = writer.make(ZEBRA, title="Safari", metadata={"tags": ["africa"]})
    writer.change(id, TAX)
    after = writer.read(id)
    assert (after["title"], after["tags"], summary(writer, id)) == ("Safari", ["africa"], TAX)


def test_what_the_caller_gives_later_stays_even_if_it_is_what_was_there(writer):
    id = writer.make(ZEBRA)
    before = writer.read(id)
    writer.change(id, ZEBRA, title=before["title"], tags=before["tags"])
    writer.change(id, TAX)
    after = writer.read(id)
    assert (after["title"], after["tags"]) == (before["title"], before["tags"])


def test_what_a_person_changed_by_hand_stays(writer):
    id = writer.make(ZEBRA)
    file = writer.space.file_of(id)
    text = file.read_text()
    assert "  - serengeti\n" in text
    untitled = text.replace(f"title: {ZEBRA[:-1]}\n", "")
    file.write_text(
        untitled.replace("  - serengeti\n", "  - stripes\n").replace("created_at", "title: Mine\ncreated_at")
    )
    until(lambda: writer.read(id)["version"] == 2)
    before = writer.read(id)
    assert (before["title"], "stripes" in before["tags"]) == ("Mine", True)
    writer.change(id, TAX)
    after = writer.read(id)
    assert (after["title"], after["tags"], summary(writer, id)) == ("Mine", before["tags"], TAX)


def test_a_note_that_had_to_take_another_name_follows_its_text_too(writer):
    first = writer.make(ZEBRA, metadata={"n": 1})
    second = writer.make(f"{ZEBRA}\n\nThe second herd.")
    assert writer.read(second)["title"] == ZEBRA[:-1]
    writer.change(second, TAX)
    assert (writer.read(second)["title"], writer.read(first)["title"]) == (TAX[:-1], ZEBRA[:-1])


def test_a_title_that_a_memo_loses_is_that_of_its_text(rim):
    with member(rim.space()) as one:
        id = one.good("memory.save", namespace="default", content=ZEBRA, title="Safari")["memo_id"]
        for _ in range(2):
            told = one.good("memory.save", namespace="default", memo_id=id, content=TAX, metadata={"title": None})
            assert (told["title"], told["version"]) == (TAX[:-1], 2)
        assert json.dumps(one.good("kb_search", query="safari", mode="text")["results"]) == "[]"
