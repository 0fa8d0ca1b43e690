"""The graph view of a running daemon: entities, neighbourhoods, paths and reports, without JavaScript."""

from __future__ import annotations

import html
import re

import pytest

from tests.support.local_daemon import local_page


def note(kind, *relations, fact="Known."):
    lines = [f"- {kind_of}:: [[{target}]]" for kind_of, target in relations]
    return "\n".join(
        ["---", "type: entity", f"entity_type: {kind}", "created_at: 2026-11-05T10:12:33.055Z", "---", "## Observations",
         f"- {fact} ^o1" if fact else "", "", "## Relations", *lines, ""]
    )  # fmt: skip


@pytest.fixture(scope="module")
def memex(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    entities = folder / "vault/Captures/default/Entities"
    entities.mkdir(parents=True)
    for name, text in {
        "Ada": note("person", ("works_on", "Engine"), fact="She wrote about the Loom."),
        "Engine": note("project", ("part_of", "Fair")),
        "Fair": note("event"),
        "Loom": note("device"),
        "Owl <b>": note("bird"),
    }.items():
        (entities / f"{name}.md").write_text(text)
    crowd = folder / "vault/Captures/crowd/Entities"
    crowd.mkdir(parents=True)
    for number in range(205):  # a few more than are shown at once; without facts, whose vectors take seconds
        (crowd / f"Guest {number}.md").write_text(note("guest", ("guest_of", "Host"), fact=""))
    (crowd / "Host.md").write_text(note("host"))
    with local_page(folder) as running:
        yield running


@pytest.fixture(scope="module")
def browser(memex):
    return memex.browser()


def names(page):
    return [html.unescape(name) for name in re.findall(r'data-node="\d+" data-name="([^"]*)"', page)]


def relations(page):
    listed = names(page)
    found = re.findall(r'data-from="(\d+)" data-to="(\d+)" data-type="([^"]*)"', page)
    return [(listed[int(source)], kind, listed[int(target)]) for source, target, kind in found]


def test_it_begins_with_the_most_connected_entities_and_reports_what_is_missing(browser):
    page = browser.text("/graph")
    assert names(page) == ["Engine", "Ada", "Fair", "Loom", "Owl <b>"]
    assert relations(page) == [("Ada", "works_on", "Engine"), ("Engine", "part_of", "Fair")]
    orphans, gaps = page.split('id="orphans"')[1].split('id="gaps"')
    assert "Loom" in orphans
    assert "Owl &lt;b&gt;" in orphans
    assert "Ada" in gaps
    assert "Loom" in gaps


def test_a_neighbourhood_has_as_many_steps_as_chosen_and_the_facts_of_its_entity(browser):
    page = browser.text("/graph", name="ada")
    assert names(page) == ["Ada", "Engine"]
    assert "She wrote about the Loom." in page
    assert names(browser.text("/graph", name="Ada", depth=2)) == ["Ada", "Engine", "Fair"]
    assert names(browser.text("/graph", name="Ada", depth="many")) == ["Ada", "Engine"]


def test_the_path_between_two_is_in_its_order(browser):
    page = browser.text("/graph", **{"from": "Fair", "to": "Ada"})
    assert names(page) == ["Fair", "Engine", "Ada"]
    assert "2 steps" in page
    assert "No path leads" in browser.text("/graph", **{"from": "Ada", "to": "Loom"})


def test_entities_are_found_by_name(browser):
    choices = browser.text("/graph", q="en").split('id="choices"')[1].split("</section>")[0]
    assert choices.index("Engine") > 0


def test_a_name_of_no_entity_is_answered_beside_the_form(browser):
    for query in ({"name": "Adda"}, {"from": "Adda", "to": "Engine"}):
        answer = browser.get("/graph", **query)
        assert answer.status_code == 404
        assert "closest: &#39;Ada&#39;" in answer.text


def test_a_workspace_that_does_not_exist_is_named(browser):
    assert browser.get("/graph", workspace="nowhere").status_code == 404


def test_beyond_two_hundred_the_list_goes_on_when_asked(browser):
    page = browser.text("/graph", workspace="crowd", name="Host")
    assert len(names(page)) == 200
    (more,) = re.findall(r'class="button" href="([^"]*)">Show more', page)
    page = browser.text(html.unescape(more))
    assert len(names(page)) == 206
    assert "Show more" not in page


def test_a_workspace_without_entities_says_how_they_come(memex, browser):
    memex.ask("workspace.create", name="bare")
    page = browser.text("/graph", workspace="bare")
    assert "no entity yet" in page
    assert names(page) == []
    assert "Without a relation" not in page, "reports on nothing say nothing"
