"""The graph by command: every operation, over the owner's door, on real notes."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import xml.etree.ElementTree as ET

import pytest

from index.errors import Conflict
from syncd.cli.graph.memory_json import write_file
from syncd.cli.main import run_command
from tests.support.known_vault import make_default_vault
from tests.support.mermaid import valid
from tests.support.world import World, answering


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A vault whose owner's door is open."""
    (tmp_path / "state").mkdir(mode=0o700)
    world = World(tmp_path)
    (world.vault / "Captures/work").mkdir()
    world.run()
    make_default_vault(monkeypatch, tmp_path / "home", world.vault, world.state)
    with answering(world):
        yield world


@pytest.fixture
def said(capfd):
    """Run a command: what it printed, once it went well."""

    def run(*words, fails=0):
        capfd.readouterr()
        assert run_command(list(words)) == fails, capfd.readouterr().err
        out, err = capfd.readouterr()
        return err if fails else out

    return run


def told(said, *words):
    return json.loads(said(*words, "--json"))


@pytest.fixture
def ada(world, said):
    """A little graph."""
    said(
        "node",
        "add",
        "Ada Lovelace",
        "--type",
        "person",
        "-o",
        "Wrote the first algorithm",
        "-o",
        "Born in 1815",
        "--tag",
        "math",
    )
    said("node", "add", "Charles Babbage", "-t", "person", "-s", "Drew the engines.")
    said("node", "add", "Analytical Engine", "-t", "machine", "-o", "Was never built")
    said("node", "add", "Lonely", "-t", "idea")
    said("relation", "add", "Ada Lovelace", "collaborated_with", "Charles Babbage")
    said("relation", "add", "Charles Babbage", "designed", "Analytical Engine")


def test_a_node_is_made_shown_listed_and_removed(world, said, ada):
    note = world.vault / "Captures/default/Entities/Ada Lovelace.md"
    assert "- Wrote the first algorithm ^o1\n- Born in 1815 ^o2\n" in note.read_text()
    shown = said("node", "show", "ada lovelace")
    assert shown.startswith("Ada Lovelace  (person)  #math\n   1  Wrote the first algorithm\n   2  Born in 1815\n")
    assert "Captures/default/Entities/Ada Lovelace.md, changed " in shown
    assert shown.endswith("Ada Lovelace —collaborated_with→ Charles Babbage\n")
    (one,) = told(said, "node", "show", "Ada Lovelace")["entities"]
    assert one["observations"] == [
        {"ordinal": 1, "content": "Wrote the first algorithm"},
        {"ordinal": 2, "content": "Born in 1815"},
    ]
    assert [one["name"] for one in told(said, "node", "list")] == [
        "Ada Lovelace",
        "Analytical Engine",
        "Charles Babbage",
        "Lonely",
    ]
    assert [one["name"] for one in told(said, "node", "list", "--type", "Person")] == [
        "Ada Lovelace",
        "Charles Babbage",
    ]
    assert [one["name"] for one in told(said, "node", "list", "--tag", "math", "--days", "3")] == ["Ada Lovelace"]
    assert said("node", "list", "-t", "nothing") == "no entities\n"
    assert "Drew the engines." in said("node", "list")
    ids = {one["name"]: one["id"] for one in told(said, "node", "list")}
    *removed, back = said("node", "remove", "--yes", "Charles Babbage", "Lonely").splitlines()
    assert removed == [
        f"deleted {name}  Captures/default/Entities/{name}.md  {ids[name]}" for name in ("Charles Babbage", "Lonely")
    ]
    assert "collaborated_with" not in note.read_text()
    assert told(said, "relation", "list") == []
    said("undo", "--yes", back.removeprefix("to undo this: memex undo "))
    assert "collaborated_with" in note.read_text()
    assert {one["name"]: one["id"] for one in told(said, "node", "list")} == ids


def test_observations_are_added_replaced_and_forgotten(world, said, ada, monkeypatch):
    note = world.vault / "Captures/default/Entities/Ada Lovelace.md"
    assert (
        said("node", "observe", "Ada Lovelace", "Liked horses", "Two\nlines")
        == "   3  Liked horses\n   4  Two\n      lines\n"
    )
    assert said("node", "forget", "Ada Lovelace", "2", "4") == "deleted 2, 4\n"
    assert "no fact 2" in said("node", "forget", "Ada Lovelace", "2", fails=4)
    assert "no fact 2" in said("node", "replace", "Ada Lovelace", "2", "x", fails=4)
    assert said("node", "replace", "Ada Lovelace", "3", "Lost at horses") == "   3  Lost at horses\n"
    read, write = os.pipe()
    os.write(write, b"from stdin\n")
    os.close(write)
    with os.fdopen(read) as given:
        monkeypatch.setattr("sys.stdin", given)
        assert said("node", "observe", "Ada Lovelace") == "   5  from stdin\n"
    assert re.findall(r"\^o\d", note.read_text()) == ["^o1", "^o3", "^o5"]


def test_summary_and_tags_are_set(said, ada):
    assert said("node", "summary", "Ada Lovelace", "A mathematician.") == "Ada Lovelace: A mathematician.\n"
    assert said("node", "tag", "Ada Lovelace", "poet", "math") == "Ada Lovelace: #poet #math\n"
    assert said("node", "tag", "Ada Lovelace") == "Ada Lovelace: no tags\n"
    (one,) = told(said, "node", "list", "-t", "person", "--limit", "1")
    assert (one["summary"], one["tags"], one["observation_count"], one["relations"]) == ("A mathematician.", [], 2, 1)


def test_a_renamed_node_keeps_its_file_its_links_and_its_old_name(world, said, ada):
    assert said("node", "rename", "Charles Babbage", "Babbage: the engineer") == (
        "renamed Charles Babbage to Babbage: the engineer\n"
    )
    assert told(said, "relation", "list", "Ada Lovelace") == [
        {"from": "Ada Lovelace", "to": "Babbage: the engineer", "relation_type": "collaborated_with"}
    ]
    (one,) = told(said, "node", "show", "charles babbage")["entities"]
    assert (one["name"], one["path"]) == ("Babbage: the engineer", "Captures/default/Entities/Charles Babbage.md")
    before = world.dump()
    world.run()
    assert world.dump() == before
    said("node", "rename", "Babbage: the engineer", "C. B.")
    (one,) = told(said, "node", "show", "Babbage: the engineer")["entities"]
    assert one["name"] == "C. B."
    assert "an entity 'Ada Lovelace' already exists" in said("node", "rename", "C. B.", "ADA  lovelace", fails=5)
    said("node", "rename", "C. B.", "Charles Babbage")
    assert "name:" not in (world.vault / one["path"]).read_text()


def test_relations_are_made_listed_renamed_and_removed(said, ada):
    assert said("relation", "add", "Ada Lovelace", "collaborated_with", "Charles Babbage").endswith(
        "(existed already)\n"
    )
    assert said("relation", "rename", "ada lovelace", "collaborated_with", "charles babbage", "worked with") == (
        "Ada Lovelace —worked with→ Charles Babbage\n"
    )
    assert len(told(said, "relation", "list", "Charles Babbage")) == 2
    assert len(told(said, "relation", "list", "Charles Babbage", "Ada Lovelace")) == 1
    assert [one["to"] for one in told(said, "relation", "list", "--type", "designed")] == ["Analytical Engine"]
    assert said("relation", "remove", "Ada Lovelace", "worked with", "Charles Babbage").startswith(
        "deleted Ada Lovelace"
    )
    assert "has no relation" in said("relation", "remove", "Ada Lovelace", "worked with", "Charles Babbage", fails=4)
    assert said("relation", "list", "Ada Lovelace") == "no relations\n"


def test_what_is_not_there_is_told_with_what_is_much_like_it(said, ada):
    assert "no entity 'Ada Lovelase' in workspace 'default'; closest: 'Ada Lovelace'" in said(
        "node", "show", "Ada Lovelase", fails=4
    )
    assert "`memex node list` names them" in said("graph", "zzz", fails=4)
    assert "no entity 'Ada Lovelace' in workspace 'work'" in said("node", "show", "Ada Lovelace", "-w", "work", fails=4)
    assert "no workspace 'nowhere'" in said("node", "list", "-w", "nowhere", fails=4)
    taken = said("node", "add", "Ada  LOVELACE", "-t", "person", fails=5)
    assert "these entities already exist: 'Ada Lovelace'" in taken
    assert "add_observations" not in taken  # a tool's name tells a person nothing
    assert "closest" not in said("node", "show", " ", fails=4)
    assert "an observation must have at least one character" in said("node", "observe", "Ada Lovelace", " ", fails=2)


def test_a_list_that_is_cut_says_so(ada, capfd):
    assert run_command(["node", "list", "--limit", "4"]) == 0
    assert capfd.readouterr().err == ""
    assert run_command(["node", "list", "--limit", "3", "--json"]) == 0
    out, err = capfd.readouterr()
    assert len(json.loads(out)) == 3
    assert err == "memex: there are more entities; this list ends after 3; to list more: --limit\n"


def test_a_node_that_was_written_without_a_type_is_shown_without(world, said):
    world.write("Captures/default/Entities/By hand.md", "## Observations\n- one fact\n")
    world.run()
    assert said("node", "show", "By hand").startswith("By hand\n   1  one fact\n")
    assert said("node", "search", "--mode", "text", "fact").split("\n")[0].endswith("  By hand")
    assert "  By hand\n" in said("graph", "--report")


@pytest.mark.slow
def test_without_a_daemon_and_an_index_the_vault_is_indexed_first(tmp_path, monkeypatch, capfd):
    (tmp_path / "vault/Captures/default/Entities").mkdir(parents=True)
    (tmp_path / "vault/Captures/default/Entities/Ada.md").write_text("## Observations\n- one\n")
    monkeypatch.setenv("MEMEX_STATE", str(tmp_path / "state"))
    assert run_command(["init", "--yes", str(tmp_path / "vault")]) == 0
    capfd.readouterr()
    assert run_command(["node", "list"]) == 0
    out, err = capfd.readouterr()
    assert ("Ada" in out, "not indexed yet" in err) == (True, True)


def test_a_neighbourhood_is_shown_in_every_form(world, said, ada, tmp_path):
    shown = said("graph", "Ada Lovelace", "--depth", "2")
    assert ("Analytical Engine" in shown, "Lonely" in shown) == (True, False)
    assert told(said, "graph", "Ada Lovelace") == json.loads(said("graph", "Ada Lovelace", "-f", "json"))
    assert said("graph", "Ada Lovelace", "--format", "mermaid") == (
        '```mermaid\nflowchart LR\n    n0["Ada Lovelace"]\n    n1["Charles Babbage"]\n    class n0,n1 internal-link;\n'
        '    n0 -->|"collaborated_with"| n1\n```\n'
    )
    file = world.vault / "Ada.canvas"
    assert said("graph", "Ada Lovelace", "-d", "2", "-o", str(file)) == f"{file}\n"
    notes = {path.relative_to(world.vault).as_posix() for path in world.vault.rglob("*.md")}
    board = valid(file.read_text(), notes)
    assert [node.get("file", node.get("label")) for node in board["nodes"]] == [
        "Around Ada Lovelace",
        "Captures/default/Entities/Ada Lovelace.md",
        "Captures/default/Entities/Charles Babbage.md",
        "Captures/default/Entities/Analytical Engine.md",
    ]
    assert {edge["label"] for edge in board["edges"]} == {"collaborated_with", "designed"}
    assert "exists" in said("graph", "Lonely", "-o", str(file), fails=5)
    missing = world.vault / "Missing"
    assert f"no such folder: {missing}; make it, or choose another folder\n" in said(
        "graph", "Lonely", "-o", str(missing / "Lonely.canvas"), fails=4
    )
    said("graph", "Lonely", "-o", str(file), "--force")
    assert len(valid(file.read_text(), notes)["nodes"]) == 2
    root = ET.fromstring(said("graph", "--format", "graphml"))
    assert len(list(root.iter("{http://graphml.graphdrawing.org/xmlns}edge"))) == 2
    assert world.git("init", "-q") == ""
    assert [path for path in world.git("status", "--short").splitlines() if ".memex" in path] == []


def test_the_whole_graph_a_way_and_what_wants_attention_are_shown(said, ada):
    whole = told(said, "graph", "--limit", "2")
    assert ([one["name"] for one in whole["nodes"]], whole["truncated"]) == (["Charles Babbage", "Ada Lovelace"], True)
    way = told(said, "graph", "--path", "Ada Lovelace", "analytical engine")
    assert way["path"] == ["Ada Lovelace", "Charles Babbage", "Analytical Engine"]
    assert said("graph", "--path", "Analytical Engine", "Ada Lovelace") == (
        "Charles Babbage —designed→ Analytical Engine\nAda Lovelace —collaborated_with→ Charles Babbage\n"
    )
    assert "no path leads" in said("graph", "--path", "Lonely", "Ada Lovelace")
    assert said("graph", "--path", "Lonely", "Lonely").startswith("Lonely")
    assert [one["name"] for one in told(said, "graph", "--orphans")] == ["Lonely"]
    assert '"Lonely"' in said("graph", "--orphans", "--format", "mermaid")
    assert "choose only one of" in said("graph", "Lonely", "--orphans", fails=2)


def test_text_of_a_note_can_t_steer_the_terminal(world, said):
    name = "\u202eevil\U000e0041 name"
    world.write(
        "Captures/default/Entities/Evil.md",
        f'---\ntype: entity\nentity_type: "a\\e[31mb"\nname: "{name}"\n---\n## Observations\n- x \x1b[2J ^o1\n',
    )
    world.run()
    for words in (["node", "list"], ["node", "show", "Evil"], ["graph"], ["graph", "Evil"]):
        shown = said(*words)
        assert "\\u{202e}evil\\u{e0041} name" in shown
        assert not re.search("[\x1b\u202e\U000e0041]", shown)


def test_nodes_are_found_by_what_is_known_of_them(world, said, ada):
    (hit, *_) = told(said, "node", "search", "--mode", "text", "algorithm")
    assert (hit["name"], hit["ordinal"], hit["matched_observation"], hit["matched_perspective"]) == (
        "Ada Lovelace", 1, "Wrote the first algorithm", None
    )  # fmt: skip
    assert "Ada Lovelace  (person)\n   1  Wrote the first algorithm" in said(
        "node", "search", "--mode", "text", "algorithm"
    )
    assert said("node", "search", "--mode", "text", "zzzz") == "nothing found\n"
    (own,) = told(said, "node", "search", "--in", "Ada Lovelace", "--mode", "text", "born")
    assert own["ordinal"] == 2
    meant = told(said, "node", "search", "who", "wrote", "the", "first", "algorithm")
    assert (meant[0]["name"], isinstance(meant[0]["matched_perspective"], str)) == ("Ada Lovelace", True)
    assert "[" + meant[0]["matched_perspective"] + "]" in said("node", "search", "who wrote the first algorithm")
    assert told(said, "node", "search", "-w", "work", "algorithm") == []


def test_a_removed_perspective_leaves_no_share_of_embedded_facts_to_print(world, said, ada):
    shown = said("perspective", "remove", "temporal")
    assert "technical" in shown
    assert "temporal" not in shown
    assert "%" not in shown
    assert "of the facts in default are embedded" in said("perspective", "list")


def test_gaps_pairs_and_owed_summaries_are_listed(world, said, ada):
    said("node", "observe", "Lonely", "Thought of by Ada Lovelace, and by Ada Lovelace alone")
    assert told(said, "graph", "--gaps") == [
        {"node": "Lonely", "referenced_name": "Ada Lovelace", "reference_count": 2}
    ]
    assert "Lonely  Ada Lovelace  2" in said("graph", "--gaps")
    assert said("graph", "--gaps", "-w", "work") == "no gaps\n"
    said("node", "add", "Twin", "-t", "person", "-o", "Wrote the first algorithm", "-o", "Born in 1815")
    (pair, *_) = told(said, "graph", "--similar", "--min-score", "0.1")
    assert ({pair["node_a"], pair["node_b"]}, pair["similarity"] > 0.1) == ({"Ada Lovelace", "Twin"}, True)
    assert "Twin" in said("graph", "--similar", "--min-score", "0.1")
    assert said("graph", "--similar", "-w", "work") == "no similar pairs\n"
    owed = told(said, "graph", "--pending")
    assert {one["name"] for one in owed} == {"Ada Lovelace", "Analytical Engine", "Lonely", "Twin"}
    assert "never" in said("graph", "--pending")
    assert "a list and can't be drawn" in said("graph", "--gaps", "--format", "canvas", fails=2)


def test_the_graph_is_told_in_numbers_and_in_a_report(world, said, ada):
    assert told(said, "graph", "--stats") == {
        "node_count": 4, "observation_count": 3, "relation_count": 2, "embedding_coverage": 1.0, "workspace": "default"
    }  # fmt: skip
    assert said("graph", "--stats").splitlines() == [
        "entities   4", "facts      3", "relations  2", "embedded   100%"
    ]  # fmt: skip
    shown = said("graph", "--report")
    for part in ("Summaries to write\n", "  Ada Lovelace: ", "Without a relation\n  Lonely  (idea)", "created, "):
        assert part in shown
    report = told(said, "graph", "--report")
    assert report["event_summary"]["creates"] == 4
    assert report["of"]["orphaned_nodes"] == len(report["orphaned_nodes"]) == 1
    empty = said("graph", "--report", "-w", "work")
    assert empty.startswith("Since ")


def test_an_entity_to_remove_is_looked_up_before_the_confirmation(ada, said, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stdin in (Terminal("y\n"), io.StringIO()):  # also where nobody can be asked
        monkeypatch.setattr(sys, "stdin", stdin)
        assert "no entity 'Nope'" in said("node", "remove", "Ada Lovelace", "Nope", fails=4)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    asked = said("node", "remove", "ada lovelace", "Lonely", fails=130)
    assert asked.startswith(
        "Delete Ada Lovelace (Captures/default/Entities/Ada Lovelace.md), Lonely (Captures/default/Entities/Lonely.md), "
        "and all relations to them? [y/N]: "
    )
    assert "Ada Lovelace" in said("node", "list")


@pytest.mark.parametrize("form", ["table", "mermaid", "graphml"])
def test_a_format_that_is_not_json_is_refused_with_json_unless_it_goes_to_a_file(ada, said, tmp_path, form):
    refused = json.loads(said("graph", "--format", form, "--json", fails=2))
    assert refused["error"]["message"] == f"--format {form} is not JSON: leave out --json, or use --format json"
    file = str(tmp_path / "drawing.md")
    assert told(said, "graph", "--format", form, "--output", file) == {"file": file}
    assert told(said, "graph", "--format", "canvas")["nodes"]


def test_a_list_honours_the_limit_and_says_that_there_is_more(world, said, capfd):
    for name in ("Ann", "Ben", "Cem"):
        said("node", "add", name, "-t", "person", "-o", "Knows Ann, Ben and Cem")
    for report, rows in (("orphans", "entities"), ("gaps", "gaps"), ("pending", "entities"), ("similar", "pairs")):
        words = ["graph", f"--{report}", "--limit", "1", *(["--min-score", "0"] if report == "similar" else [])]
        capfd.readouterr()
        assert run_command([*words, "--json"]) == 0
        out, err = capfd.readouterr()
        assert (len(json.loads(out)), f"there are more {rows}; this list ends after 1" in err) == (1, True), report
    said("graph", "--orphans", "--limit", "3")
    assert "there are more" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["graph", "--depth", "2"], "--depth needs NAME"),
        (["graph", "--gaps", "--min-score", "0.5"], "--min-score needs --similar"),
        (["graph", "--force"], "--force needs --output"),
        (["graph", "--stats", "--limit", "3"], "--limit has no effect"),
        (["export", "--force"], "--force needs --output"),
    ],
)
def test_an_option_without_effect_is_refused(world, said, words, reason):
    assert reason in said(*words, fails=2)


def test_a_file_that_appears_while_the_export_runs_is_kept(tmp_path):
    target = tmp_path / "graph.json"

    class Content(io.BytesIO):
        def read(self, *size):
            target.write_text("mine")
            return super().read(*size)

    with pytest.raises(Conflict, match="exists"):
        write_file(target, Content(b"exported"), force=False)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("graph.json", "mine")]
    assert write_file(target, "exported", force=True).read_text() == "exported"
