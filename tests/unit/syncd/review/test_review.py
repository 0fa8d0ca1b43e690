"""syncd/review/review.py: the table and the suggestions, on a real vault."""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager
from dataclasses import replace

import pytest

from index.errors import MemexError
from index.process_memory import one_large_text
from index.scope.reader import Reader
from syncd.cli.notes.review import table
from syncd.notes.front_matter import read_properties, split
from syncd.review import review
from syncd.review.bases_table import compose_table
from syncd.review.reviewed_captures import ReviewedCaptures
from syncd.review.suggestions import Suggestions
from syncd.settings.automation import ReviewSettings
from syncd.state import named_values
from tests.support.index_dump import dump_catalog, dump_store
from tests.support.obsidian_bases import Base, Note
from tests.support.world import PROMPT, World

SOUP = "Simmer leeks and potatoes in vegetable stock until soft, then blend the soup and season with nutmeg and salt."
RECIPES = {
    "Recipes/Leek soup.md": f"---\ntags: [recipe, soup]\n---\n{SOUP}\n",
    "Recipes/Onion soup.md": "---\ntags: [recipe, soup]\n---\nBrown onions slowly, add stock and simmer the soup with salt.\n",
    "Recipes/Bread.md": "---\ntags: [recipe]\n---\nKnead flour, water and salt, let the dough rise and bake the bread.\n",
    "Projects/Heron.md": "---\ntags: [project]\naliases: [Project Heron]\n---\nA water level station that runs on solar power.\n",
    "Projects/Heron radio.md": "---\ntags: [project]\n---\nThe radio of the station sends water levels on solar power.\n",
    "Daily/2026-11-01.md": "Simmered leeks and potatoes in stock.\n",
    "Daily/2026-11-02.md": "Nothing but soup with salt and stock.\n",
    "Templates/Recipe.md": "---\ntags: [recipe]\n---\nSimmer stock, season with salt.\n",
    "Captures/Reports/2026-11-20 Report.md": f"{SOUP}\n",
}


@contextmanager
def kitchen(folder, **sections):
    world = World(folder, **sections)
    for path, text in RECIPES.items():
        world.write(path, text)
    try:
        yield world
    finally:
        world.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with kitchen(tmp_path_factory.mktemp("review")) as world:
        world.run()
        yield world


@pytest.fixture
def world(shared):
    """One vault for all tests that leave the vault proper alone; each has an inbox of its own."""
    yield shared
    for file in [*(shared.vault / "Captures/default").rglob("*.md"), shared.vault / "Captures/Review.base"]:
        file.unlink(missing_ok=True)
    shared.run()
    with (ledger := shared.app.opened.ledger).transaction():
        ledger.execute("DELETE FROM departed")  # the next note with the id is another one


@pytest.fixture
def alone(tmp_path):
    with kitchen(tmp_path) as world:
        yield world


def capture(world, name, body, front=""):
    path = f"Captures/default/{name}.md"
    world.write(
        path, f"---\nid: {name.lower().replace(' ', '-')}\ncreated_at: 2026-11-20T10:00:00.000Z\n{front}---\n{body}\n"
    )
    return path


def said(world, path):
    return read_properties(split((world.vault / path).read_text())[0])


def reviewed(world):
    world.run()
    return world.app.services.review.run()


def forget_reviews(world):
    kept = ReviewedCaptures(world.app.opened.ledger)
    kept.forget(kept.read())
    world.app.services.review._moment = None


def test_a_waiting_capture_gets_its_folder_tags_similar_notes_and_a_box(world):
    path = capture(
        world, "Potato soup", "Simmer potatoes and leeks in stock, blend the soup, season with salt.", "tags: [soup]\n"
    )
    assert reviewed(world) == 1
    now = said(world, path)
    assert now["promote"] is False
    assert now["suggested_folder"] == "Recipes"
    assert now["suggested_tags"] == ["recipe"]
    assert any("Leek soup" in one for one in now["suggested_similar"])
    assert not any(one in str(now) for one in ("Daily", "2026-11-01", "Templates", "Report"))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(SOUP, "duplicate", id="the same words"),
        pytest.param(SOUP + " " + "Serve it with bread, butter, chives and a glass of cold cider on the terrace. " * 2, "supersedes", id="all of the note and more"),
        pytest.param("Simmer leeks and potatoes in vegetable stock until soft, then add cream, bay leaves, peas, corn and dill; freeze what is left over for the winter months.", "extends", id="a part of it, and more"),
    ],
)  # fmt: skip
def test_what_a_capture_is_to_a_note_is_told(world, body, kind):
    path = capture(world, "Kitchen", body)
    reviewed(world)
    assert said(world, path)["suggested_similar"][0] == f"[[Leek soup|{kind}: Leek soup]]"


def test_a_capture_with_code_that_obsidian_may_run_is_marked_and_keeps_its_bytes(world):
    body = "Soup.\n\n```dataviewjs\ndv.list()\n```\n\n<%* x %>"
    path = capture(world, "Recipe", body)
    assert reviewed(world) == 1
    assert said(world, path)["runnable_code"] == ["Dataview", "Templater"]
    assert split((world.vault / path).read_text())[1] == f"{body}\n"
    note = (world.vault / path).read_text()
    assert "      - note.runnable_code\n" in compose_table("Captures")
    world.write(path, note.replace("```dataviewjs", "```js").replace("<%*", "*"))
    assert reviewed(world) == 1
    assert "runnable_code" not in said(world, path)


def test_a_capture_with_links_to_files_or_programs_is_marked_and_keeps_its_bytes(world):
    body = "[Open](file:///opt/run.sh), [plan](obsidian://adv-uri?x) and [web](https://e.example/)"
    path = capture(world, "Recipe", body)
    assert reviewed(world) == 1
    assert said(world, path)["unsafe_links"] == ["file", "obsidian"]
    note = (world.vault / path).read_text()
    assert split(note)[1] == f"{body}\n"
    assert "      - note.unsafe_links\n" in compose_table("Captures")
    world.write(path, note.replace("file:///opt", "/opt").replace("obsidian://", ""))
    assert reviewed(world) == 1
    assert "unsafe_links" not in said(world, path)


def test_names_without_a_link_are_links_to_add(world):
    path = capture(
        world,
        "Call",
        "We talked about Project Heron and the Heron radio. [[Bread]] was on the table; `Onion soup` is code.",
    )
    reviewed(world)
    assert said(world, path)["suggested_links"] == ["[[Heron radio]]", "[[Heron]]"]


def test_a_second_run_writes_nothing_and_embeds_nothing(alone):
    world = alone
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock, blend the soup.")
    reviewed(world)
    before, calls = (world.vault / path).read_bytes(), len(world.encoder.calls)
    world.run()
    assert len(world.encoder.calls) == calls
    forget_reviews(world)
    assert world.app.services.review.run() == 0
    world.reopen()
    calls = len(world.encoder.calls)
    assert reviewed(world) == 0
    assert (world.vault / path).read_bytes() == before
    assert len(world.encoder.calls) == calls


def test_only_lines_of_its_own_are_written(world):
    front = "tags: [soup]   # mine\nodd:   'kept'\n"
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock, blend the soup.\r\n\r\n  ", front)
    before = (world.vault / path).read_bytes().splitlines(keepends=True)
    reviewed(world)
    after = (world.vault / path).read_bytes().splitlines(keepends=True)
    new = [line for line in after if line not in before]
    assert [line for line in after if line in before] == before
    assert all(line.startswith((b"promote:", b"suggested_", b"  - ")) for line in new)


def test_what_agents_read_of_the_note_stays(world):
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock, blend the soup.")
    world.run()
    index = world.app.opened.builds.scopes["captures"].index
    before = index.record_at(path)
    told = []
    world.app.agent_access.on_change(told.append)
    assert world.app.services.review.run() == 1
    after = index.record_at(path)
    assert (after.version, after.updated_at, after.metadata, after.content_hash, after.defects) == (
        before.version, before.updated_at, before.metadata, before.content_hash, before.defects,
    )  # fmt: skip
    world.run()
    assert not world.app.opened.sync.edits.paths


def test_a_note_without_a_time_of_its_own_keeps_the_one_it_had(world):
    path = world.write("Captures/default/Undated.md", f"---\nid: undated\n---\n{SOUP}\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert reviewed(world) == 1
    world.run()
    assert world.app.opened.builds.scopes["captures"].index.record("undated").created_at == 1_700_000_000_000


@pytest.mark.parametrize(
    "front",
    [
        "promote: true\n",
        "review: dismissed\n",
        "type: entity\n",
        "promoted_at: 2026-11-01\n",
        "promote: true\nPromote: false\n",
    ],
)
def test_what_is_decided_or_no_note_is_left_alone(world, front):
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock.", front)
    before = (world.vault / path).read_bytes()
    assert reviewed(world) == 0
    assert (world.vault / path).read_bytes() == before


def test_a_note_that_is_being_edited_or_a_busy_repository_waits(tmp_path):
    world = World(tmp_path, sync=replace(PROMPT, adopt_s=3600.0))
    path = capture(world, "Potato soup", "Simmer potatoes.")
    world.git("init", "-q")
    assert reviewed(world) == 0
    os.utime(world.vault / path, (1_700_000_000, 1_700_000_000))
    (world.vault / ".git/index.lock").touch()
    assert reviewed(world) == 0
    (world.vault / ".git/index.lock").unlink()
    assert reviewed(world) == 1
    world.close()


@pytest.mark.slow
def test_a_large_capture_waits_for_other_large_texts(world):
    path = capture(world, "Potato soup", "Simmer potatoes in stock.\n\n" * 20_000 + "Pancakes")
    with one_large_text:
        assert reviewed(world) == 0
    assert reviewed(world) == 1
    assert "Pancakes" not in str(said(world, path).get("suggested_links")), "only the beginning is looked through"


def test_suggestions_stay_while_they_are_as_good_and_go_when_they_are_not(alone):
    world = alone
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock, blend the soup.", "tags: [soup]\n")
    reviewed(world)
    world.write("Kitchen/Pea soup.md", "---\ntags: [soup]\n---\nSimmer peas in stock, blend the soup.\n")
    world.run()
    world.app.services.review._learnt = None
    assert reviewed(world) == 0, "the vault alone has changed"
    world.app.services.review.run_again()
    assert said(world, path)["suggested_folder"] == "Recipes"
    for note in ("Leek soup", "Onion soup", "Bread"):
        (world.vault / f"Recipes/{note}.md").unlink()
    world.run()
    world.app.services.review._learnt = None
    assert reviewed(world) == 0, "the vault alone has changed"
    world.app.services.review.run_again()
    now = said(world, path)
    assert now["suggested_folder"] == "Kitchen"
    assert "Leek soup" not in str(now)


def test_a_name_that_looks_like_a_secret_is_never_told(alone):
    world = alone
    name = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    world.write(f"Recipes/{name}.md", f"---\ntags: [recipe]\n---\n{SOUP}\n")
    path = capture(world, "Potato soup", SOUP)
    reviewed(world)
    record = world.app.opened.builds.scopes["captures"].index.record_at(path)
    assert record.defects == ()
    assert said(world, path) == {**said(world, path), "promote": False}
    assert name not in (world.vault / path).read_text()


def test_properties_without_lines_of_their_own_are_left_alone(world):
    path = world.write(
        "Captures/default/Flow.md", "---\n{id: flow, created_at: 2026-11-20T10:00:00Z}\n---\nSimmer potatoes.\n"
    )
    before = path.read_bytes()
    assert reviewed(world) == 0
    assert path.read_bytes() == before
    assert world.app.services.review._moment is not None  # nothing is left for the next run


def test_the_table_is_kept_until_a_person_changes_it(world):
    table = world.vault / "Captures/Review.base"
    reviewed(world)
    assert table.read_text() == compose_table("Captures")
    table.unlink()
    reviewed(world)
    assert table.is_file()
    table.write_text("views: []\n")
    reviewed(world)
    assert table.read_text() == "views: []\n"


def test_a_folder_at_the_place_of_the_table_is_an_error_but_captures_get_suggestions(alone):
    (alone.vault / "Captures/Review.base").mkdir()
    path = capture(alone, "Soup", SOUP)
    with pytest.raises(MemexError, match=r"Review\.base"):
        reviewed(alone)
    assert said(alone, path)["promote"] is False


def test_a_table_of_an_older_memex_is_replaced(world):
    reviewed(world)
    table = world.vault / "Captures/Review.base"
    table.write_text("views: []\n")
    named_values.write(world.app.opened.ledger, {"Review.base": hashlib.sha256(b"views: []\n").hexdigest()})
    reviewed(world)
    assert table.read_text() == compose_table("Captures")


def test_the_table_lists_what_the_daemon_says_waits(world):
    capture(world, "One", "First.")
    capture(world, "Two", "Second.", "review: dismissed\n")
    capture(world, "Three", "Third.", "promote: true\npromote_problem: there is one\n")
    world.write("Captures/default/Entities/Ada.md", "---\nid: ada\ntype: entity\n---\n")
    reviewed(world)
    files = [Note(path, said(world, path)) for path in world.app.opened.builds.scopes["captures"].index.manifest]
    rows = Base(compose_table("Captures")).rows("Waiting", files)
    waiting = world.app.services.review.list_waiting()
    assert sorted(rows) == sorted(record.path for record, _ in waiting)
    assert world.app.services.review.summary() == {"waiting": 2, "marked": 1, "problems": 1}


def test_a_run_is_bounded_and_the_next_goes_on(world, monkeypatch):
    for n in range(5):
        capture(world, f"Note {n}", f"Simmer potatoes in stock {n}.")
    world.run()
    monkeypatch.setattr(review, "RUN_S", 0.0)
    runs = 0
    while world.app.services.review.run():
        runs += 1
    assert runs == 5  # one note each


@pytest.fixture
def looks(monkeypatch):
    """The paths of the captures that are looked at for suggestions."""
    paths, update = [], review.Review._update_capture
    monkeypatch.setattr(
        review.Review, "_update_capture", lambda self, record: paths.append(record.path) or update(self, record)
    )
    return paths


def test_a_capture_is_looked_at_once_and_after_a_restart_not_again(alone, looks):
    world = alone
    soup, bread = capture(world, "Potato soup", "Simmer potatoes."), capture(world, "Loaf", "Knead flour.")
    assert reviewed(world) == 2
    assert sorted(looks) == [bread, soup]
    world.reopen()
    world.run()
    for _ in range(3):
        assert world.app.services.review.run() == 0
    assert sorted(looks) == [bread, soup]
    world.write(bread, (world.vault / bread).read_text().replace("Knead", "Knead the dough of"))
    reviewed(world)
    assert looks[2:] == [bread]


def test_suggestions_touch_no_passage_and_leave_the_index_as_one_made_anew(alone):
    world = alone
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock, blend the soup.", "tags: [soup]\n")
    world.run()
    index = world.app.opened.builds.scopes["captures"].index
    index._store.flush()
    version = index._store._run(index._store._table.version())
    assert reviewed(world) == 1
    assert not index._store.unwritten and index._store._run(index._store._table.version()) == version
    assert index.record_at(path).digest == hashlib.sha256((world.vault / path).read_bytes()).hexdigest()
    assert world.app.services.waiting.marked()[path].marks.suggested_folder == "Recipes"
    rows = dump_catalog(index.catalog), dump_store(index._store)
    assert world.app.opened.sync.run().changes == 0
    world.app.operations["index"]({"full": True}, lambda _: None)
    anew = world.app.opened.builds.scopes["captures"].index
    assert anew is not index
    assert (dump_catalog(anew.catalog), dump_store(anew._store)) == rows


def test_a_mark_of_its_owner_alone_is_no_reason_to_look(alone, looks):
    path = capture(alone, "Potato soup", "Simmer potatoes.")
    assert reviewed(alone) == 1
    alone.write(path, (alone.vault / path).read_text().replace("id: potato-soup\n", "id: potato-soup\nreview: later\n"))
    assert reviewed(alone) == 0
    assert looks == [path]


def test_at_night_the_captures_are_looked_at_for_which_the_vault_has_changed(alone, looks, monkeypatch):
    world = alone
    paths = [capture(world, f"Note {n}", f"Simmer potatoes in stock {n}.") for n in range(3)]
    reviewed(world)
    world.app.services.review.run_again()
    assert looks == paths, "nothing has changed since"
    world.write("Kitchen/Pea soup.md", "Simmer peas in stock.\n")
    world.run()
    world.app.services.review._learnt = None
    monkeypatch.setattr(review, "NIGHT_S", 0.0)
    for _ in range(3):
        world.app.services.review.run_again()
    assert sorted(looks[3:]) == paths, "one a night, as there is no time for more"
    (world.vault / paths[0]).unlink()
    world.run()
    world.app.services.review.run_again()
    assert sorted(ReviewedCaptures(world.app.opened.ledger).read()) == paths[1:]


def test_how_many_wait_is_counted_without_their_rows(world, monkeypatch):
    capture(world, "One", "First.")
    reviewed(world)
    monkeypatch.setattr(Reader, "records_at", lambda *_: pytest.fail("rows were read"))
    assert world.app.services.review.summary() == {"waiting": 1, "marked": 0, "problems": 0}


def test_off_means_off(tmp_path):
    world = World(tmp_path, review=ReviewSettings(suggest=False, table=False))
    path = capture(world, "Potato soup", "Simmer potatoes.")
    before = (world.vault / path).read_bytes()
    assert reviewed(world) == 0
    assert (world.vault / path).read_bytes() == before
    assert not (world.vault / "Captures/Review.base").exists()
    world.close()


def test_what_speaks_for_a_folder_is_told(world):
    path = capture(world, "Potato soup", "Simmer potatoes and leeks in stock.", "tags: [soup]\n")
    world.run()
    found = world.app.services.review.suggest(world.app.opened.builds.scopes["captures"].index.record_at(path))
    assert isinstance(found, Suggestions)
    assert "nearest notes" in found.folders[0].reason


def test_the_list_names_whole_ids_and_says_what_links_show():
    one = {"id": "9d22c8a5-bdf5-4544-8ed1-16225e5dc18c", "workspace": "default", "title": "Leeks", "promote": False}
    one |= {"type": "note", "problem": None, "goal": "Recipes"}
    told = table(
        {"total": 1, "waiting": [one | {"suggested_similar": ["[[Leek soup|similar: Leek soup]]"]}]}, color=False
    )
    assert one["id"] in told
    assert told.splitlines()[1].endswith("Recipes  similar: Leek soup")
    one |= {"promote": True, "problem": "a folder that can't be", "suggested_similar": None}
    assert "problem" in table({"total": 1, "waiting": [one]}, color=False)
