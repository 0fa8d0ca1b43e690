"""A secret that a caller gives as a name or an id: refused, or kept in notes alone, and in nothing that goes elsewhere."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
from random import Random

import pytest

from index.errors import InvalidArgument
from syncd.history.digest_chain import format_line
from syncd.telemetry.log import LogFormatter
from tests.support.generated_secrets import MAKERS
from tests.support.live_server import client, run, running
from tests.support.world import until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
KINDS = ("github-token", "stripe-key", "npm-token")
# Of each kind one that can be an id, which has 64 characters at most.
SECRETS = [next(secret for n in range(99) if len(secret := MAKERS[kind](Random(n))) <= 64) for kind in KINDS]


class Lines(logging.Handler):
    """What the daemon's log says, as the journal gets it."""

    def __init__(self):
        super().__init__()
        self.setFormatter(LogFormatter(structured=True, prefixed=False))
        self.lines = []

    def emit(self, record):
        self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rim")
    (folder / "vault").mkdir()
    git = ["git", "-C", str(folder / "vault"), "-c", "user.name=Tester", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run([*git, *command], check=True)
    log = logging.getLogger()
    lines, level = Lines(), log.level
    log.addHandler(lines)
    log.setLevel(logging.DEBUG)
    try:
        with running(folder) as served:
            served.log = lines
            yield served
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


def call(rim, space, name, **arguments):
    """The answer of one tool, as text, and whether it is an error."""

    async def work():
        async with client(rim, key=space.name, X_Memory_Workspace=space.name) as mcp:
            return await mcp.call_tool(name, arguments)

    answer = run(work())
    return answer.content[0].text, answer.is_error


@pytest.mark.parametrize("secret", SECRETS, ids=KINDS)
def test_a_name_that_others_read_is_refused_when_it_is_a_secret(rim, secret):
    space, before = rim.space(), rim.files()
    form = {"files": {"file": (f"{secret}.md", b"text", "text/markdown")}}
    answers = [
        call(rim, space, "memory.save", content="x", memo_id=secret)[0],
        call(rim, space, "memory.save", content="x", namespace=secret)[0],
        call(rim, space, "kb_upload_start", filename=f"{secret}.pdf", total_size=3)[0],
        space.rest("POST", "/api/v1/jobs", **form).text,
    ]
    for answer in answers:
        assert json.loads(answer)["error"]["code"] == "INVALID_ARGUMENT", answer
        assert "seems to hold a secret" in answer, answer
        assert secret not in answer
    for operation, given in (
        ("workspace.create", {"name": secret}),
        ("key.create", {"name": secret, "workspaces": [space.name]}),
    ):
        with pytest.raises(InvalidArgument, match="seems to hold a secret"):
            rim.world.app.operations[operation](given, lambda _: None)
    assert rim.files() == before


def test_a_namespace_or_workspace_that_is_there_keeps_a_name_that_looks_like_a_secret(rim):
    space, name = rim.space(), f"token={'9f86d081884c7d659a2f'}"
    assert "seems to hold a secret" in call(rim, space, "memory.save", content="x", namespace=name)[0]
    (space.folder / name).mkdir()  # as its owner makes one
    text, is_error = call(rim, space, "memory.save", content="x", namespace=name)
    assert not is_error, text
    assert list((space.folder / name).glob("*.md"))
    (space.folder.parent / name).mkdir()
    assert rim.agent_access.create_workspace(name)


@pytest.mark.parametrize("secret", SECRETS, ids=KINDS)
def test_no_answer_about_what_is_not_there_repeats_a_secret(rim, secret):
    space = rim.space()
    answers = [
        *(space.rest("GET", f"/{route}/{secret}").text for route in ("thoughts", "api/v1/jobs", "api/v1/documents", secret)),
        *(call(rim, space, name, **given)[0] for name, given in (
            ("get_thought", {"id": secret}), ("delete_thought", {"id": secret}), ("kb_get", {"id": secret}),
            ("memory.delete", {"memo_id": secret}), ("open_nodes", {"names": [secret]}),
            ("kb_upload_finish", {"upload_id": secret}), ("memory.save", {"content": "x", "memo_id": "a", "namespace": f"../{secret}"}),
            ("add_observations", {"observations": [{"entity_name": secret, "contents": ["x"]}]}),
        )),
    ]  # fmt: skip
    assert [answer for answer in answers if secret in answer and '"error"' in answer] == []


def test_a_secret_in_a_note_or_in_a_name_of_the_owner_s_stays_there(rim):
    space = rim.space()
    space.capture("A note without a secret, which is committed.")
    for secret in SECRETS:
        space.capture(f"# {secret}\n\nthe title is the secret")
        assert not call(rim, space, "kb_addnote", text="a note", title=secret)[1]
        assert not call(rim, space, "memory.save", content="a memo", title=secret)[1]
        nodes = [{"name": secret, "entity_type": "thing", "observations": ["is a node"]}]
        assert not call(rim, space, "create_entities", entities=nodes)[1]
        call(rim, space, "semantic_search", query=secret)
        rim.world.write(f"Captures/{space.name}/{secret}.md", f"---\nid: {secret}\n---\nThe owner named this note.\n")
    until(lambda: not {"queued", "running"} & {job.status for job in rim.world.app.opened.queue.jobs()})
    rim.world.settled()
    rim.world.run()
    opened = rim.world.app.opened
    for secret in SECRETS:  # the owner's own note, which an agent now changes
        answer, failed = call(rim, space, "kb_update_note", id=secret, text=f"changed by an agent, {len(secret)}")
        assert not failed, answer
        assert opened.audit.last_entry(f"Captures/{space.name}/{secret}.md").tool == "kb_update_note"
        assert {entry.id for entry in opened.audit.entries_about(id=secret)} == {secret}
    rim.world.app.services.commits.commit_pending(0.0)
    ask = {
        name: rim.world.app.operations[name]({"limit": 1000}, lambda _: None) for name in ("audit.list", "queue.list")
    }
    shown = {
        "audit export": "\n".join(map(format_line, opened.audit.entries())),
        **{name: json.dumps(answer) for name, answer in ask.items()},
        "kb_jobs": call(rim, space, "kb_jobs")[0],
        "REST jobs": space.rest("GET", "/api/v1/jobs").text,
        "metrics": rim.rest("GET", "/metrics", key="owner").text,
        "Git": rim.world.git("log", "-p", "--format=%an %s %b", "--all"),
        "the log": "\n".join(rim.log.lines),
        "file names": "\n".join(path for path in rim.files() if path.split("/")[-1][:-3] not in SECRETS),
    }
    leaks = {where: secret for where, text in shown.items() for secret in SECRETS if secret in text}
    assert leaks == {}
    assert shown["Git"].count("Memex-Agent") > 0
    assert "[github-token " in shown["audit export"]
    assert len({entry.path for entry in opened.audit.find(-1, masked=True) if entry.tool == "kb_update_note"}) == 3
    verified = rim.world.app.operations["audit.verify"]({"files": True}, lambda _: None)
    assert (verified["broken"], verified["changed"], verified["gone"]) == (0, [], [])


def test_an_agent_s_change_of_a_note_with_a_secret_name_can_be_undone(rim):
    space, secret = rim.space(), MAKERS["github-token"](Random(9))
    path = f"Captures/{space.name}/{secret}.md"
    file = rim.world.write(path, "---\nid: undone\n---\nAs the owner wrote it.\n")
    rim.world.run()
    was = file.read_bytes()
    assert not call(rim, space, "kb_update_note", id="undone", text="changed by an agent")[1]
    entries, last = rim.world.app.services.undo.writes_of_call("undone")
    done, _ = rim.world.app.services.undo.carry_out(
        rim.world.app.services.undo.plan(entries, last=last), lambda *_: None
    )
    assert [step.path for step in done] == [path]
    assert file.read_bytes() == was
