"""A key that is bound to a namespace: every tool, route and method either keeps to that namespace or refuses.

The matrix is made from the program's own list of operations, so a new one can't be left out of it."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from index.errors import InvalidArgument, MemexError, NotFound
from index.model import Query
from index.timings import now_ms
from mcp_server.operations.caller import CALLER, Caller, open_workspace
from mcp_server.operations.operation import OperationRunner
from mcp_server.protocol import completion, prompts, resources
from mcp_server.rest.routes import OPERATIONS as ROUTED
from mcp_server.tools.families import FAMILIES
from syncd.graph.node_request import NewNode
from tests.support.tool_arguments import ARGUMENTS
from tests.support.world import World, until

SECRET = "xqsecretzy"
OURS, THEIRS = "alpha", ("default", "beta", "alpha/deeper")
OPERATIONS = {operation.name: operation for family in FAMILIES.values() for operation in family} | ROUTED
MORE = {  # of what needs an id or is REST's alone
    "get_thought": {"id": "ID"},
    "delete_thought": {"id": "ID"},
    "kb_get": {"id": "ID"},
    "get_document": {"id": "ID"},
    "set_document_tags": {"id": "ID", "tags": ["t"]},
    "list_documents": {},
    "list_jobs": {},
    "get_job": {"id": "JOB"},
}
OR = {("source_path", "id"), ("pivot_memo_id", "query")}  # one of them is given
NAMING = (
    "id",
    "memo_id",
    "pivot_memo_id",
    "sourceMemoId",
    "targetMemoId",
    "startMemoId",
    "source_path",
    "job_id",
    "upload_id",
)


class Bound:
    """A world with the same words in several namespaces, and a caller whose key is bound to one of them."""

    def __init__(self, folder):
        self.world = World(folder)
        self.access = self.world.app.agent_access
        self.whole = self.access.workspace("default")
        self.own = self.whole.capture("Our heron stands.", namespace=OURS, metadata={"tags": ["ours"]}).record.id
        self.hidden = [
            self.whole.capture(
                f"The {SECRET} heron of {namespace}.", namespace=namespace, metadata={"tags": [SECRET], "title": SECRET}
            ).record.id
            for namespace in THEIRS
        ]
        self.whole.nodes.create([_node("Heron", SECRET)])
        self.jobs = [self.whole.add_note(f"a job {SECRET}", key="another").id]
        key, _ = self.access.keys.create("bound", workspaces=("default",), namespace=OURS, now=now_ms())
        self.caller = Caller(key, workspace="default")
        self.runner = OperationRunner(self.access, self.world.app.settings)

    def ask(self, name, arguments):
        """OK or a code, and what was told."""

        async def work():
            CALLER.set(self.caller)
            return await self.runner.call(OPERATIONS[name], self.caller, arguments)

        try:
            return "OK", asyncio.run(work()).model_dump_json()
        except MemexError as error:
            return error.code, error.message

    def files(self):
        root = self.world.vault / "Captures/default"
        kept = (file for file in root.rglob("*.md") if file.parent.name != OURS)
        return {file: file.read_bytes() for file in kept}

    def tells_nothing(self, text):
        return SECRET not in text and not any(id in text for id in (*self.hidden, *self.jobs))


def _node(name, fact):
    return NewNode(name, "bird", (fact,), None, ())


@pytest.fixture(scope="module")
def bound(tmp_path_factory):
    made = Bound(tmp_path_factory.mktemp("bound"))
    yield made
    made.world.close()


def arguments_of(name):
    """Arguments that the operation takes."""
    return MORE.get(name) or ARGUMENTS.get(name) or MORE.get(name, {})


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_keeps_to_the_namespace_or_refuses(bound, name):
    operation, before = OPERATIONS[name], bound.files()
    given = arguments_of(name)
    assert set(given) or not any(field.is_required() for field in operation.given.model_fields.values()), (
        "add arguments"
    )
    fields = {field.alias or name for name, field in operation.given.model_fields.items()}
    if operation.family == "graph":
        assert bound.ask(name, given)[0] == "PERMISSION_DENIED"
    else:
        code, told = bound.ask(name, {key: "heron" if key == "query" else value for key, value in given.items()})
        assert code in ("OK", "NOT_FOUND"), told
        assert bound.tells_nothing(told), told
    if "namespace" in fields:
        assert operation.family == "graph" or {
            bound.ask(name, given | {"namespace": other})[0] for other in THEIRS
        } == {"NOT_FOUND"}
        assert bound.ask(name, given | {"namespace": OURS})[0] in ("OK", "NOT_FOUND")
    elsewhere = (*bound.jobs, f"beta/{SECRET}.md", "Entities/Heron.md")
    for field in fields & {*NAMING}:
        for id in (*bound.hidden, *(() if name == "memory.save" else elsewhere)):  # which may give a new memo an id
            alone = {key: value for key, value in given.items() if (field, key) not in OR}
            code, told = bound.ask(name, alone | {field: id})
            listed = json.loads(told) if code == "OK" else {}  # a list of what is asked for may be empty
            empty = listed and not any(listed.get(part) for part in ("documents", "edges", "nodes"))
            assert code == ("CONFLICT" if name == "memory.save" else "NOT_FOUND") or empty, (field, id, told)
    assert bound.files() == before, "nothing outside the namespace was written"


def test_what_the_key_makes_lies_in_its_namespace_and_is_found(bound):
    _, told = bound.ask("capture_thought", {"content": "A kingfisher."})
    made = json.loads(told)["id"]
    assert bound.whole.record(made).namespace == OURS
    _, told = bound.ask("memory.save", {"content": "A wagtail."})
    assert json.loads(told)["namespace"] == OURS
    for tool in ("semantic_search", "kb_search"):
        assert made in bound.ask(tool, {"query": "kingfisher"})[1]
    assert bound.own in bound.ask("list_recent", {})[1]
    counts = json.loads(bound.ask("kb_status", {})[1])
    assert counts["documents"]["total"] == len(json.loads(bound.ask("list_documents", {})[1])["documents"])
    assert sum(counts["queue"].values()) == len(json.loads(bound.ask("list_jobs", {})[1])["jobs"])


def test_the_same_content_elsewhere_is_another_note(bound):
    _, told = bound.ask("capture_thought", {"content": f"The {SECRET} heron of beta."})
    made = json.loads(told)
    assert made["created"]
    assert made["id"] not in bound.hidden
    bound.ask("delete_thought", {"id": made["id"]})


def test_jobs_and_uploads_are_of_the_namespace(bound):
    _, told = bound.ask("kb_addnote", {"text": "queued"})
    _, begun = bound.ask("kb_upload_start", {"filename": "a.txt", "total_size": 1})
    queue = bound.whole._inbox.queue
    assert (
        queue.job(json.loads(told)["job_id"], key=bound.caller.key.id, workspace="default").given["namespace"] == OURS
    )
    upload = json.loads(begun)["upload_id"]
    bound.ask("kb_upload_chunk", {"upload_id": upload, "data": "eA==", "chunk_index": 0})
    _, told = bound.ask("kb_upload_finish", {"upload_id": upload})
    assert (
        queue.job(json.loads(told)["job_id"], key=bound.caller.key.id, workspace="default").given["namespace"] == OURS
    )


def test_prompts_resources_and_completions_keep_to_the_namespace(bound):
    texts = []
    for kind in prompts.KINDS.values():
        given = {"question": "heron"} if kind.name == "recall" else {}
        made = prompts.build_prompt(
            bound.runner, bound.caller, kind, prompts.check_arguments(kind, given), frozenset(FAMILIES)
        )
        texts.append(made.model_dump_json())
        assert "search_nodes" not in texts[-1]
    listed = resources.list_recent(bound.access, bound.caller)
    texts += [entry.model_dump_json() for entry in listed]
    assert any("heron" in text for text in texts)
    ref = {"type": "ref/resource", "uri": resources.TEMPLATE.uri_template}
    for argument, reference in (("path", ref), ("tags", {"type": "ref/prompt", "name": "recall"})):
        asked = {
            "ref": reference,
            "argument": {"name": argument, "value": ""},
            "context": {"arguments": {"workspace": "default"}},
        }
        params = completion.CompleteRequestParams.model_validate(asked)
        texts.append(completion.complete(bound.access, bound.caller, params).model_dump_json())
    assert "ours" in texts[-1]
    assert all(bound.tells_nothing(text) for text in texts), texts
    assert resources.read(bound.access, bound.caller, listed[-1].uri).content
    for path in (f"{SECRET}.md", f"beta/{SECRET}.md", f"alpha/deeper/{SECRET}.md", "Entities/Heron.md"):
        with pytest.raises(MemexError) as raised:
            resources.find_note(bound.access, bound.caller, resources.note_uri("default", path))
        assert raised.value.code == "NOT_FOUND"


def test_the_key_is_told_no_numbers_of_the_workspace(bound):
    assert bound.runner._visible_workspaces(bound.caller) == frozenset()


def test_a_node_in_the_namespace_is_read_and_not_changed(bound):
    file = bound.world.vault / "Captures/default/alpha/Entities/Gull.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("---\nid: gull\ntype: entity\nentity_type: bird\n---\n# Gull\n\n## Observations\n- flies ^o1\n")
    bound.world.run()
    assert bound.ask("get_thought", {"id": "gull"})[0] == "OK"
    before = file.read_bytes()
    for name, more in (
        ("delete_thought", {}),
        ("set_document_tags", {"tags": ["x"]}),
        ("kb_update_note", {"text": "x"}),
    ):
        assert bound.ask(name, {"id": "gull"} | more)[0] == "PERMISSION_DENIED"
    assert file.read_bytes() == before


def test_the_binding_is_kept_over_a_restart_and_a_rotation(bound):
    keys = bound.access.keys
    _, secret = keys.create("rotated", workspaces=("default",), namespace="a/b", now=now_ms())
    assert keys.authenticate(secret, now=now_ms()).namespace == "a/b"
    keys._version = -1  # read from the ledger again
    assert keys.authenticate(secret, now=now_ms()).namespace == "a/b"
    _, newer = keys.rotate("rotated", overlap_ms=0, now=now_ms())
    assert keys.authenticate(newer, now=now_ms()).namespace == "a/b"


@pytest.mark.parametrize(
    ("namespace", "scopes"), [("../x", ("read",)), ("x.md", ("read",)), ("", ("read",)), ("x", ("read", "admin"))]
)
def test_what_is_no_namespace_and_what_sees_more_is_refused(bound, namespace, scopes):
    with pytest.raises(InvalidArgument):
        bound.access.keys.create("never", workspaces=None, namespace=namespace, scopes=scopes, now=now_ms())


def test_a_folder_in_another_unicode_form_is_the_namespace_and_one_in_another_letter_case_is_not(tmp_path):
    world = World(tmp_path)
    world.write("Captures/default/Cafe\u0301/n.md", "---\nid: n1\n---\na pelican\n")
    world.write("Captures/default/caf\u00e9/n.md", "---\nid: n2\n---\na pelican\n")
    world.run()
    whole, bound = (world.app.agent_access.workspace("default", namespace) for namespace in (None, "Caf\u00e9"))
    try:
        assert [record.id for record in bound.recent()] == ["n1"]
        made = bound.capture("a heron").record
        assert made.path == "Captures/default/Cafe\u0301/a heron.md"
        assert (made.namespace, bound.get(made.id).content) == ("Caf\u00e9", "a heron")
        for form in ("Caf\u00e9", "Cafe\u0301"):
            assert bound.document_at(f"{form}/n.md").id == whole.document_at(f"{form}/n.md").id == "n1"
        with pytest.raises(NotFound):
            bound.document_at("caf\u00e9/n.md")
        for namespace in ("CAF\u00c9", "cAF\u00c9/deeper"):
            other = world.app.agent_access.workspace("default", namespace).capture("a third heron").record
            assert (other.namespace, other.path) == (
                namespace,
                f"Captures/default/{namespace}/{other.path.rpartition('/')[2]}",
            )
    finally:
        world.close()


def test_only_the_scores_of_a_key_for_the_whole_vault_depend_on_other_workspaces(tmp_path):
    world = World(tmp_path)
    access, keys = world.app.agent_access, world.app.agent_access.keys
    mine, other = access.workspace("default"), access.create_workspace("other")
    for text in ("a river", "a boat on it", "another boat", "a boat and a river and a weir"):
        mine.capture(text, namespace="n")
    callers = {
        "whole": keys.create("whole", workspaces=None, now=now_ms())[0],
        "workspace": keys.create("workspace", workspaces=("default",), now=now_ms())[0],
        "namespace": keys.create("namespace", workspaces=("default",), namespace="n", now=now_ms())[0],
    }

    def scores():
        until(
            lambda: mine.search(Query("river")) and world.app.opened.captures.index._store._table.seen.rows is not None
        )
        asked = Query("river boat", mode="text")
        return {
            name: [round(hit.score, 6) for hit in open_workspace(access, Caller(key), "default").search(asked).hits]
            for name, key in callers.items()
        }

    before = scores()
    for number in range(5):
        other.capture(f"river number {number}")
    after = scores()
    world.close()
    assert {name for name in callers if before[name] != after[name]} == {"whole"}


def test_automatic_tags_reveal_no_tag_of_another_namespace(tmp_path):
    world = World(tmp_path)
    access = world.app.agent_access
    whole, text = access.workspace("default"), "The kestrel deal was signed; Ann wrote the kestrel deal."
    for number in range(3):
        whole.capture(f"Something {number}.", namespace="beta", metadata={"tags": ["Kestrel_Deal"]})
    assert "Kestrel_Deal" in whole.capture(text, namespace=OURS).record.tags, "no key is bound to it yet"
    whole.delete(whole.recent(1)[0].id)
    key, _ = access.keys.create("bound", workspaces=("default",), namespace=OURS, now=now_ms())
    captured = open_workspace(access, Caller(key), "default").capture(text).record
    assert "kestrel-deal" in captured.tags

    bound = open_workspace(access, Caller(key), "default")
    renewed, _ = bound.update_note(captured.id, f"{text} Again.")
    assert "kestrel-deal" in renewed.tags
    file = world.write(f"Captures/default/{OURS}/Later.md", f"{text} Later.")  # it is enriched without a caller
    world.run()
    world.run()
    os.utime(file, (1_700_000_000, 1_700_000_000))
    report = world.app.operations["enrich.backfill"]({}, lambda _: None)
    world.close()
    assert [("kestrel-deal" in note["tags"]) for note in report["notes"]] == [True]
    assert set(report["vocabulary"]) == {f"default/{OURS}"}
