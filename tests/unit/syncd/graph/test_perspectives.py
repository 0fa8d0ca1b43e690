"""Perspectives of a workspace: named, kept, changed by their owner, and what the bundled model makes of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders.embedder import Embedder, EmbedSettings
from index.encoders.settings import BundledSettings
from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from index.model import Stat
from index.observations.perspectives import (
    DEFAULTS,
    MOST,
    Perspective,
    hash_perspectives,
    observation_text,
    query_text,
    validate,
)
from index.observations.similarity_baseline import SENTENCES, SimilarityBaselines
from index.scope.index import Index
from index.scope.prepared_document import fingerprint
from index.text.chunking import Sizes
from syncd.cli.graph.perspectives import table
from syncd.cli.main import run_command
from syncd.daemon.control_socket import ControlServer
from syncd.graph.perspectives import Perspectives
from syncd.state.ledger import Ledger
from tests.support.graph_samples import entity
from tests.support.world import World, until

STAT = Stat(1, 1, 1)
ADA = """---
type: entity
entity_type: person
---
## Observations
- Wrote the first published algorithm ^o1
- Corresponded with Babbage from 1833 ^o3
"""


@pytest.fixture
def perspectives(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield Perspectives(ledger)
    ledger.close()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def ask(world: World, operation: str, **given):
    return world.app.operations[f"perspective.{operation}"](given, lambda _: None)


# Names and prompts


def test_the_defaults_are_perspectives_like_any_other():
    assert [one.name for one in DEFAULTS] == ["general", "technical", "relational", "temporal", "project"]
    assert [validate(one.name, one.prompt) for one in DEFAULTS] == list(DEFAULTS)


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        pytest.param("", "x", id="no name"),
        pytest.param("Legal", "x", id="a capital"),
        pytest.param("9lives", "x", id="a digit first"),
        pytest.param("a/b", "x", id="a slash"),
        pytest.param("a\n", "x", id="a newline after it"),
        pytest.param("a" * 33, "x", id="a long name"),
        pytest.param(None, "x", id="no text"),
        pytest.param("legal", "x" * 201, id="a long prompt"),
        pytest.param("legal", "a\x1b[31mb", id="a control character"),
        pytest.param("legal", "a\u202eb", id="one that turns the line round"),
        pytest.param("legal", "\ud800", id="half a character"),
        pytest.param("legal", None, id="a prompt that is no text"),
    ],
)
def test_what_is_no_perspective_is_refused(name, prompt):
    with pytest.raises(InvalidArgument):
        validate(name, prompt)


@given(st.text(max_size=300))
def test_a_prompt_is_refused_or_one_line_of_printable_text(prompt):
    try:
        held = validate("any", prompt).prompt
    except InvalidArgument:
        return
    assert held.isprintable()
    assert held == held.strip()
    assert len(held) <= 200
    held.encode()


def test_the_prompt_stands_in_front_of_what_is_embedded_and_asked():
    assert observation_text(Perspective("legal", "law:"), "Ada", "signed it") == "law: Ada: signed it"
    assert query_text(Perspective("legal", "law:"), "who signed") == "law: who signed"
    assert query_text(Perspective("general", ""), "who signed") == "who signed"


def test_tables_are_told_apart_by_names_prompts_and_order():
    tables = [DEFAULTS, DEFAULTS[::-1], DEFAULTS[:4], (*DEFAULTS[:4], Perspective("project", "plan:"))]
    assert len({hash_perspectives(one) for one in tables}) == 4


# The table of a workspace


def test_a_workspace_begins_with_the_defaults_and_keeps_what_is_changed(perspectives, tmp_path):
    assert perspectives.of("w") == DEFAULTS
    perspectives.add("w", "legal", "  law:  ")
    perspectives.set_prompt("w", "technical", "how it works:")
    perspectives.remove("w", "temporal")
    wanted = (
        Perspective("general", ""),
        Perspective("technical", "how it works:"),
        *(DEFAULTS[2], DEFAULTS[4]),
        Perspective("legal", "law:"),
    )
    assert (perspectives.of("w"), perspectives.has_own("w")) == (wanted, True)
    assert (perspectives.of("other"), perspectives.has_own("other")) == (DEFAULTS, False)
    again = Ledger.open(tmp_path / "ledger.db")
    assert Perspectives(again).of("w") == wanted
    again.close()
    assert perspectives.reset("w") == DEFAULTS == perspectives.of("w")
    assert not perspectives.has_own("w")


def test_each_name_stands_once_and_one_perspective_stays(perspectives):
    with pytest.raises(Conflict):
        perspectives.add("w", "general", "x")
    for change in (perspectives.set_prompt, lambda *given: perspectives.remove(*given[:2])):
        with pytest.raises(NotFound, match="general, technical"):
            change("w", "legal", "x")
    for one in DEFAULTS[1:]:
        perspectives.remove("w", one.name)
    with pytest.raises(InvalidArgument, match="last"):
        perspectives.remove("w", "general")
    for n in range(MOST - 1):
        perspectives.add("w", f"p{n}", "x")
    with pytest.raises(InvalidArgument, match="at most 32"):
        perspectives.add("w", "one-more", "x")
    assert len(perspectives.of("w")) == MOST


# A change, all the way


def test_a_change_embeds_the_workspace_anew_and_nothing_else(world, tmp_path):
    world.write("Captures/default/Entities/Ada.md", ADA)
    world.write("Captures/work/Entities/Ada.md", ADA)
    world.write("Captures/default/Note.md", "a plain note\n")
    world.run()
    index = world.app.opened.builds.scopes["captures"].index
    assert ask(world, "list") == {
        "workspace": "default",
        "default": True,
        "perspectives": [{"name": one.name, "prompt": one.prompt} for one in DEFAULTS],
        "coverage": 1.0,
    }
    before = len(world.encoder.calls)
    changed = ask(world, "add", name="legal", prompt="law:")
    assert (changed["default"], changed["coverage"]) == (False, 0.0)
    told = index.find_observations("default", "algorithm", 5)
    assert [hit.ordinal for hit in told.hits] == [1], "they are found meanwhile"
    assert "2 of 2 observations" in told.degraded[0]
    world.run()
    given = sum(count for kind, _, count in world.encoder.calls[before:] if kind == "document")
    assert given - len(SENTENCES) * 6 == 2, "what the prompts add is measured; then two observations under the new one"
    assert (ask(world, "list")["coverage"], ask(world, "list", workspace="work")["coverage"]) == (1.0, 1.0)
    assert index.find_observations("default", "algorithm", 5).degraded == ()
    assert world.run().changes == 0, "once"


def test_an_index_made_anew_equals_one_whose_perspectives_changed(world):
    world.write("Captures/default/Entities/Ada.md", ADA)
    world.run()
    ask(world, "set", name="technical", prompt="works:")
    ask(world, "remove", name="general")
    world.run()
    before = world.dump()
    world.app.opened.sync.rebuild(fresh=True)
    after = world.dump()
    assert after["captures"]["observations"] == before["captures"]["observations"]
    assert {row[6] for row in after["captures"]["observations"]} == {one.name for one in DEFAULTS[1:]}
    texts = [row[-1] for row in after["captures"]["observations"] if row[-1]]
    assert len(texts) == 2, "words stand under the first one, whichever that is"


def test_a_restart_goes_on_with_what_a_change_had_begun(world):
    world.write("Captures/default/Entities/Ada.md", ADA)
    world.run()
    ask(world, "add", name="legal", prompt="law:")
    world.reopen()
    assert world.app.health.status(None)["degraded"] == [], "nothing is amiss"
    world.run()
    assert ask(world, "list")["coverage"] == 1.0


def test_the_daemon_embeds_in_the_background(world):
    world.write("Captures/default/Entities/Ada.md", ADA)
    with world.serving():
        world.settled()
        ask(world, "add", name="legal", prompt="law:")
        until(lambda: ask(world, "list")["coverage"] == 1.0)


def test_a_workspace_that_is_made_again_begins_with_the_defaults(world):
    world.app.operations["workspace.create"]({"name": "w"}, lambda _: None)
    ask(world, "add", workspace="w", name="legal", prompt="law:")
    world.app.operations["workspace.delete"]({"name": "w"}, lambda _: None)
    world.app.operations["workspace.create"]({"name": "w"}, lambda _: None)
    assert ask(world, "list", workspace="w")["default"]
    with pytest.raises(NotFound):
        ask(world, "list", workspace="nowhere")


def test_a_workspace_whose_shares_can_t_be_cleared_is_still_there(world, monkeypatch):
    world.write("Notes/Heron.md", "words\n")
    world.run()
    run, shares, vault = world.app.operations, world.app.opened.shares, world.vault / "Captures/w"
    run["workspace.create"]({"name": "w"}, lambda _: None)
    shares.add("w", ["Notes/Heron.md"])

    def fail(_):
        raise Unavailable("the ledger could not be written")

    with monkeypatch.context() as patch:
        patch.setattr(shares, "clear", fail)
        with pytest.raises(Unavailable):
            run["workspace.delete"]({"name": "w"}, lambda _: None)
    assert vault.is_dir()
    (vault / "note.md").write_text("words\n")
    with pytest.raises(InvalidArgument, match="not empty"):
        run["workspace.delete"]({"name": "w"}, lambda _: None)
    assert shares.entries_of("w") == ["Notes/Heron.md"]
    (vault / "note.md").unlink()
    run["workspace.delete"]({"name": "w"}, lambda _: None)
    assert not vault.exists()
    assert shares.entries_of("w") == []


# As people see them


def test_the_table_tells_prompts_and_how_far_it_is():
    found = {
        "workspace": "work",
        "perspectives": [{"name": "general", "prompt": ""}, {"name": "legal", "prompt": "law:\x1b[31m"}],
        "coverage": 0.25,
    }
    assert table(found, color=False).splitlines() == [
        "perspective  prompt",
        "general      (none)",
        "legal        law:\\u{1b}[31m",
        "25.0% of the facts in work are embedded under all perspectives",
    ]


def test_the_commands_ask_what_they_say(tmp_path, capsys):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    heard = []

    def answers(operation):
        def run(given, _):
            heard.append((operation, given))
            return {"workspace": given["workspace"], "default": False, "perspectives": [], "coverage": 0.5}

        return run

    names = [f"perspective.{one}" for one in ("list", "add", "set", "remove", "reset")]
    server = ControlServer(state, {name: answers(name) for name in names})
    server.start()
    try:
        for line in (
            ["list"],
            ["add", "legal", "law:"],
            ["set", "technical", "", "-w", "work"],
            ["remove", "legal"],
            ["reset"],
        ):
            assert run_command(["perspective", *line, "--state", str(state), "--vault", str(tmp_path), "--json"]) == 0
    finally:
        server.stop()
    assert heard == [
        ("perspective.list", {"workspace": "default"}),
        ("perspective.add", {"workspace": "default", "name": "legal", "prompt": "law:"}),
        ("perspective.set", {"workspace": "work", "name": "technical", "prompt": ""}),
        ("perspective.remove", {"workspace": "default", "name": "legal"}),
        ("perspective.reset", {"workspace": "default"}),
    ]
    out, err = capsys.readouterr()
    assert [json.loads(line)["coverage"] for line in out.splitlines()] == [0.5] * 5
    assert err.count("new embeddings") == 3, "a removal needs none"


# With the bundled model

FACTS = {
    "Payment gateway": ("Encrypts card numbers with AES before they are stored", "Maria maintains it since the merger"),
    "Maria": ("Reports to the head of engineering", "Moved to Lisbon in the spring of 2019"),
    "Migration": (
        "All customers shall be on the new cluster by the end of the year",
        "It slipped twice because of audits",
    ),
    "Lighthouse": ("Its lens was replaced after the storm", "The keeper lived there until it was automated"),
    "Bread": ("The dough rests overnight in the cold", "Rye needs more water than wheat"),
}
ASKED = {
    "which cipher protects credit cards": ("Payment gateway", 1),
    "where does she live now and since when": ("Maria", 2),
    "deadline for moving clients to other servers": ("Migration", 1),
    "who looks after the billing system": ("Payment gateway", 2),
    "how long does dough have to wait": ("Bread", 1),
    "glass of the tower was exchanged": ("Lighthouse", 1),
}


@pytest.fixture(scope="module")
def real(models, tmp_path_factory):
    embedder = Embedder(EmbedSettings((BundledSettings(),)), cache=models)
    embedder.start()
    assert embedder.wait(120), embedder.problem
    sizes, folder = Sizes(200, 30, 40), tmp_path_factory.mktemp("index")
    index = Index(
        "captures",
        folder,
        uri=str(folder),
        options={},
        dimensions=embedder.dimensions,
        embedder=embedder,
        sizes=sizes,
        made_by=fingerprint(embedder.identity, sizes),
    )
    nodes = [entity(f"Captures/w/Entities/{name}.md", *facts) for name, facts in FACTS.items()]
    index.commit(index.prepare([(node, STAT) for node in nodes], urgent=True))
    yield index
    index.close()
    embedder.close()


def test_paraphrases_find_their_observation_under_the_defaults(real):
    wrong = {}
    for query, (name, ordinal) in ASKED.items():
        best = real.find_observations("w", query, 3).hits[0]
        if (best.path, best.ordinal) != (f"Captures/w/Entities/{name}.md", ordinal):
            wrong[query] = best
    assert not wrong


@pytest.mark.slow
def test_no_prompt_wins_by_its_length(real):
    looks = (*DEFAULTS, Perspective("wordy", "what is to be known of all this, in every detail and at great length:"))
    there = {one.name: 0 for one in looks}
    for _, _, added in SimilarityBaselines().query_points("who looks after the billing system", looks, real._embedder):
        assert added < 0.9
    other = replace_looks(real, looks)
    for query in ASKED:
        for hit in other.find_observations("w", query, 5).hits:
            there[hit.perspective] += 1
    assert there["wordy"] < sum(there.values()) / 2


def replace_looks(index: Index, looks: tuple[Perspective, ...]) -> Index:
    index.perspectives = index._cut_and_embed.keywords["perspectives"] = lambda _: looks
    index.forget_outdated()
    nodes = [entity(f"Captures/w/Entities/{name}.md", *facts) for name, facts in FACTS.items()]
    index.commit(index.prepare([(replace(node), STAT) for node in nodes], urgent=True))
    assert index.embedded_share("w") == 1.0
    return index
