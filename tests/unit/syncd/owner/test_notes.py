"""The owner's search: what it leaves out of the vault unless asked, and how it marks what a newer note replaces."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from dataclasses import replace
from datetime import datetime
from random import Random
from urllib.parse import quote

import pytest

from index.model import Query
from index.search.hybrid_search import POOLS
from mcp_server.operations.operation import OperationRunner
from syncd.app import App
from syncd.settings.settings import VaultSettings
from tests.support.fakes import fake_embedder
from tests.support.generated_secrets import MAKERS
from tests.support.world import World

SETTINGS = {
    "templates.json": {"folder": "Templates"},
    "daily-notes.json": {"folder": "Daily", "template": "Plans/Day"},
    "app.json": {"userIgnoreFilters": ["Old/", "/\\.raw\\.md$/", "/(broken/", "Captures/"]},
}
LEFT_OUT = ["Captures/Reports/2026 Consolidation.md", "Old/a.md", "Plans/Day.md", "Templates/Video.md", "x.raw.md"]
SHOWN = [
    "Captures/Archive/default/Aside.md",
    "Captures/default/Heron.md",
    "Daily/2026-11-23.md",
    "Elsewhere.md",
    "Plain.md",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("search"))
    for name, settings in SETTINGS.items():
        made.write(f".obsidian/{name}", json.dumps(settings))
    for path in (*LEFT_OUT, *SHOWN):
        made.write(path, f"a heron at the weir, in {path}\n")
    made.write("Templates/Video.md", "---\ncreated: {{date}}\n---\na heron at the weir, as a template\n")
    made.write("Elsewhere.md", "---\ncreated: {{date}}\n---\na template in no folder of such\n")
    made.run()
    yield made
    made.close()


def search(world, **given):
    return world.app.operations["search"]({"query": "heron weir", "scope": "all", **given}, lambda _: None)


def paths(answer):
    return sorted(hit["path"] for hit in answer["hits"])


def test_templates_excluded_files_and_reports_are_left_out_and_that_is_told(world):
    for scope in ("all", "vault"):
        shown = [path for path in SHOWN if scope == "all" or path != "Captures/default/Heron.md"]
        answer = search(world, scope=scope)
        assert (paths(answer), answer["left_out"]) == (shown, LEFT_OUT)
        answer = search(world, scope=scope, hidden=True)
        assert (paths(answer), answer["left_out"]) == (sorted((*LEFT_OUT, *shown)), [])


@pytest.mark.parametrize("scope", ["all", "vault"])
def test_only_notes_that_would_be_among_the_hits_count_as_left_out(world, scope):
    hits = [hit["path"] for hit in search(world, scope=scope, hidden=True)["hits"]]
    left_out = search(world, scope=scope, limit=1)["left_out"]
    first = next(n for n, path in enumerate(hits) if path not in LEFT_OUT)
    assert set(left_out) <= set(hits[: len(left_out) + first + 1])
    assert len(left_out) < len(LEFT_OUT)


def test_others_take_the_places_of_what_is_left_out(world):
    assert paths(search(world, scope="vault", limit=4)) == [path for path in SHOWN if "default/Heron" not in path]


def test_the_inbox_and_agents_never_lose_a_note_to_the_settings_of_obsidian(world):
    assert paths(search(world, scope="captures")) == ["Captures/default/Heron.md"]
    hits = world.app.agent_access.workspace("default").search(Query("heron weir")).hits
    assert [hit.record.path for hit in hits] == ["Captures/default/Heron.md"]


def test_a_template_is_no_defect_in_its_folder_alone(world):
    status = world.app.operations["status"]({}, lambda _: None)
    assert {one["path"] for one in status["defects"]} == {"Elsewhere.md"}
    file = world.write(".obsidian/templates.json", json.dumps({"folder": "/"}))  # the root is no folder of templates
    status = world.app.operations["status"]({}, lambda _: None)
    assert {one["path"] for one in status["defects"]} == {"Elsewhere.md", "Templates/Video.md"}
    file.write_text(json.dumps(SETTINGS["templates.json"]))


def test_a_replaced_capture_is_marked_and_stands_below_the_end_of_its_chain(world):
    def capture(name, text, newer=""):
        by = f'superseded_by: "[[{newer}]]"\n' if newer else ""
        world.write(f"Captures/default/{name}.md", f"---\nid: {name}\n{by}---\n{text}\n")

    capture("First", "the otter gauge reads otter gauge", "Second")
    capture("Second", "the otter gauge", "Third")
    capture("Third", "somewhere there is an otter with a gauge, among many other words that are said here")
    capture("Round", "a newt", "Trip")
    capture("Trip", "a newt", "Round")
    capture("Lost", "a lone vole", "Nowhere")
    capture("Moved", "a shrew of the inbox", "Shrew")
    world.write("Shrew.md", "the shrew as the owner took it over, at length and with many more words")
    world.run()
    for mode in ("hybrid", "text"):
        hits = search(world, query="otter gauge", mode=mode)["hits"]
        assert [hit["id"] for hit in hits[:3]] == ["Third", "Second", "First"]
        assert [(hit["stale"], hit["superseded_by"]) for hit in hits[:3]] == [
            (False, None), (True, "Third"), (True, "Third"),
        ]  # fmt: skip
        assert {hit["successor"] for hit in hits[1:3]} == {"Captures/default/Third.md"}
        assert [hit["path"] for hit in search(world, query="shrew", mode=mode)["hits"][:2]] == [
            "Shrew.md",
            "Captures/default/Moved.md",
        ]
    newts = {hit["id"]: hit["superseded_by"] for hit in search(world, query="newt")["hits"] if hit["stale"]}
    assert {"Round": "Trip", "Trip": "Round"}.items() <= newts.items()
    (lost,) = [hit for hit in search(world, query="lone vole")["hits"] if hit["id"] == "Lost"]
    assert (lost["stale"], lost["superseded_by"], lost["successor"]) == (True, None, None)
    space = world.app.agent_access.workspace("default")
    led = {name: space.successor(space.record(name)) for name in ("First", "Second", "Third", "Moved")}
    assert led == {"First": "Third", "Second": "Third", "Third": None, "Moved": None}
    (world.vault / "Captures/default/Third.md").unlink()
    world.run()
    assert space.successor(space.record("First")) == "Second", "the end that still exists"
    assert Counter(hit["stale"] for hit in search(world, query="otter gauge", limit=2)["hits"])[True] == 2


def test_a_smaller_limit_gives_the_beginning_of_a_larger_one_although_a_superseded_note_has_half_its_score(tmp_path):
    world = World(tmp_path)
    for number in range(6):
        by = "superseded_by: '[[N0]]'\n" if number == 2 else ""
        section = f"## Part\n\n{'heron weir ' * (12 - number)}{'and other words of the bank ' * 60}\n\n"
        world.write(f"Captures/default/N{number}.md", f"---\nid: N{number}\n{by}---\n{section * 14}")
    world.run()
    shown = [[hit["id"] for hit in search(world, scope="captures", limit=limit)["hits"]] for limit in range(1, 7)]
    assert "N2" in shown[2]
    assert shown == [shown[-1][:limit] for limit in range(1, 7)]
    world.close()


def test_a_note_has_the_url_at_which_obsidian_opens_it(tmp_path):
    world = World(tmp_path)
    named = replace(world.app.settings, vault=VaultSettings(path=world.vault, name="My notes"))
    world.app.close()
    world.app = App(named, embedder=fake_embedder(world.encoder))
    try:
        world.write("Projects/Heron 2.md", "# Heron\n\nA station on sunlight.\n")
        world.run()
        ask = world.app.operations
        (hit,) = ask["search"]({"query": "sunlight", "scope": "vault"}, None)["hits"]
        assert hit["url"] == "obsidian://open?vault=My%20notes&file=Projects%2FHeron%202.md"
        made = ask["capture"]({"content": "# Heron 2\n\nA capture.", "workspace": "default"}, None)
        assert made["url"].endswith(quote(made["path"], safe=""))
        assert datetime.fromisoformat(made["created_at_iso"]).timestamp() * 1000 == made["created_at"]
        runner = OperationRunner(world.app.agent_access, world.app.settings)
        token = MAKERS["npm-token"](Random(1))
        assert runner._note_url("default", f"{token}.md") == ""
        for vault in (
            VaultSettings(path=world.vault, name=token),
            VaultSettings(path=world.vault / token),
            VaultSettings(path=world.vault, inbox=token),
        ):
            spoken = OperationRunner(world.app.agent_access, replace(named, vault=vault))
            assert spoken._note_url("default", "a/B.md") == "", "all of the URL is looked at"
        assert (
            runner._note_url("default", "a/B.md")
            == "obsidian://open?vault=My%20notes&file=Captures%2Fdefault%2Fa%2FB.md"
        )
    finally:
        world.close()


@pytest.mark.parametrize(
    ("folder", "below"),
    [
        ("Daily", "Daily/"),
        ("/Daily/", "Daily/"),
        ("Captures", "Captures/"),
        ("Captures/default", "Captures/default/"),
        ("", ""),
    ],
)
def test_a_folder_restricts_a_search(world, folder, below):
    shown = paths(search(world, folder=folder, limit=50))
    assert shown
    assert shown == [path for path in paths(search(world, limit=50)) if path.startswith(below)]


@pytest.mark.parametrize("folder", ["Dail", "Old", "Missing", "..", "/"])
def test_a_folder_without_shown_notes_has_no_hits(world, folder):
    assert paths(search(world, folder=folder)) == ([] if folder != "/" else paths(search(world)))


def test_a_capture_goes_into_a_namespace_in_whatever_unicode_form_it_is_named(tmp_path):
    world = World(tmp_path)
    capture = world.app.operations["capture"]
    folders = {
        capture({"content": f"The heron {number}.", "namespace": namespace}, lambda _: None)["path"].rpartition("/")[0]
        for number, namespace in enumerate(("Cafe\u0301", "Caf\u00e9"))
    }
    assert folders == {"Captures/default/Caf\u00e9"}
    world.close()


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_note_is_found_by_its_path_and_its_source_in_whatever_unicode_form_they_are_named(tmp_path, form):
    world = World(tmp_path)
    folders = ("Cafe\u0301", "Captures/default/Cafe\u0301", "Captures/Cafe\u0301")
    for folder in folders:
        world.write(f"{folder}/n.md", "---\nsource: Cafe\u0301\n---\nA heron at the weir.\n")
    world.run()
    name = unicodedata.normalize(form, "Caf\u00e9")
    for folder in folders:
        asked = folder.replace("Cafe\u0301", name)
        assert world.app.operations["get"]({"id": f"{asked}/n"}, lambda _: None)["path"] == f"{folder}/n.md"
    assert paths(search(world, source=name)) == sorted(f"{folder}/n.md" for folder in folders)
    assert paths(search(world, scope="captures", workspace=name)) == ["Captures/Cafe\u0301/n.md"]
    world.close()


def test_the_owner_reads_a_node_with_the_links_of_its_file(tmp_path):
    world = World(tmp_path)
    world.write("People/Ada.md", "a person\n")
    world.write("Captures/default/Entities/Ada 2.md", "---\ntype: entity\nentity_type: person\nname: Ada\n---\n")
    body = "## Relations\n- led_by:: [[Ada 2|Ada]]\n"
    world.write("Captures/default/Entities/Weir.md", f"---\ntype: entity\nentity_type: place\n---\n{body}")
    world.run()
    note = world.app.operations["get"]({"id": "Captures/default/Entities/Weir.md", "links": True}, lambda _: None)
    assert note["content"] == body
    assert [(link["target"], link["path"]) for link in note["links"]] == [
        ("Ada 2", "Captures/default/Entities/Ada 2.md")
    ]
    world.close()


def test_a_folder_does_not_depend_on_the_rank_of_its_notes(tmp_path):
    made = World(tmp_path)
    for number in range(60):
        made.write(f"Many/{number}.md", "a heron at the weir, a heron at the weir\n")
    made.write("Few/one.md", "once, long ago, and in many other words, somebody saw a heron\n")
    made.run()
    assert paths(search(made, folder="Few", limit=1)) == ["Few/one.md"]
    made.close()


@pytest.mark.slow
def test_any_number_of_better_notes_that_are_left_out_hides_no_other(tmp_path):
    made = World(tmp_path)
    made.write(".obsidian/app.json", json.dumps({"userIgnoreFilters": ["/^Many/"]}))
    for number in range(POOLS[-1] + 20):
        made.write(f"Many/{number}.md", "a heron at the weir, a heron at the weir\n")
    made.write("Few/one.md", "once, long ago, and in many other words, somebody saw a heron at a weir\n")
    made.write("Few/two.md", "once, long ago, and in many other words, somebody saw a heron\n")
    made.run()
    for limit in (1, 2, 10):
        answer = search(made, scope="vault", limit=limit)
        assert [hit["path"] for hit in answer["hits"]] == ["Few/one.md", "Few/two.md"][:limit]
        assert len(answer["left_out"]) >= limit
    assert paths(search(made, scope="vault", folder="Many")) == []
    made.close()


def test_the_folders_are_those_that_hold_notes(world):
    listed = world.app.operations["folders"]({}, lambda _: None)
    assert listed == sorted(listed)
    assert {"Captures", "Captures/default", "Daily", "Templates"} <= set(listed)
    assert ".obsidian" not in listed
