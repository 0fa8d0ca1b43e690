"""No write of an agent makes a file that coding agents take for their instructions, whatever the title, over the wire."""

from __future__ import annotations

import base64

import pytest

from syncd.vault.instruction_files import is_instruction_stem
from tests.support.live_server import running
from tests.support.mcp_agent import member
from tests.support.until import until

# A name and a hidden one; which names are recognized is in unit/syncd/vault/test_instruction_files.py.
TITLES = ["AGENTS.md", ".cursorrules"]
MORE = ["CLAUDE", "x.prompt", "claude", "Agents.Override", "SKILL", "GEMINI.MD", "copilot-instructions"]


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def names_in(space):
    """The files of a workspace, without their last ending."""
    files = [file for file in space.folder.rglob("*") if file.is_file()]
    assert files
    assert not any(part.startswith(".") for file in files for part in file.relative_to(space.folder).parts)
    return {file.name.rpartition(".")[0] for file in files}


def uploaded(agent, filename, data):
    begun = agent.good("kb_upload_start", filename=filename, total_size=len(data))["upload_id"]
    agent.good("kb_upload_chunk", upload_id=begun, chunk_index=0, data=base64.b64encode(data).decode())
    job = agent.good("kb_upload_finish", upload_id=begun)["job_id"]
    until(lambda: agent.good("kb_jobs", job_id=job)["jobs"][0]["status"] in ("done", "failed"))
    (ended,) = agent.good("kb_jobs", job_id=job)["jobs"]
    assert ended["status"] == "done", ended


@pytest.mark.parametrize("title", [*TITLES, *(pytest.param(title, marks=pytest.mark.slow) for title in MORE)])
def test_no_family_writes_an_instruction_file(rim, title):
    space = rim.space()
    with member(space) as agent:
        made = agent.good("capture_thought", content=f"orders one {title}", metadata={"title": title})
        agent.good("capture_thought", content=f"# {title}\n\norders two")
        agent.good("memory.save", content=f"orders three {title}", title=title, namespace="memos")
        agent.good("create_entities", entities=[{"name": title, "entity_type": "order", "observations": ["four"]}])
        uploaded(agent, f"{title}.md", b"orders five")
        uploaded(agent, f"{title}.txt", b"orders six")
        whole = agent.good("get_thought", id=made["id"])
        assert whole["title"] == title, "a title stays as it was given"
        (node,) = agent.good("open_nodes", names=[title])["entities"]
        assert node["name"] == title
        assert agent.good("kb_get", id=made["id"])["source_path"].endswith(".md")
    stems = names_in(space)
    assert not [stem for stem in stems if is_instruction_stem(stem)]


def test_the_name_gets_a_harmless_suffix(rim):
    space = rim.space()
    space.capture("orders", metadata={"title": "Qwen"})
    space.capture("more orders", metadata={"title": "Qwen"})
    with member(space) as agent:
        paths = {hit["source_path"] for hit in agent.good("kb_search", query="orders")["results"]}
    assert sorted(names_in(space)) == ["Qwen note", "Qwen note 2"]
    assert "Qwen note.md" in paths
    assert "Qwen note 2.md" not in paths, "the number tells of another note"


def test_a_namespace_is_a_folder_and_may_be_called_after_an_agent(rim):
    space = rim.space()
    space.capture("by one agent", namespace="claude")
    assert (space.folder / "claude").is_dir()
    for namespace in ("CLAUDE.md", ".claude", "x/.cursor/rules", ".github", "AGENTS.MD/x"):
        answer = space.rest("POST", "/capture", json={"content": "x", "namespace": namespace})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_ARGUMENT"), namespace
