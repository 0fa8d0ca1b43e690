"""syncd/documents/collection_membership.py: which collection is meant, and how a note says one alone."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from index.model import COLLECTIONS
from syncd.documents.capture_note import compose_note, properties_of, split_metadata
from syncd.documents.collection_membership import (
    CollectionName,
    NamedCollections,
    choose_collection,
    choose_latest,
    set_collection,
    tag_changes,
    tag_texts,
)
from syncd.notes.front_matter import FrontmatterError, edit, read_properties, split
from tests.support.parsed_notes import parse
from tests.support.paths import ROOT

KNOWN = (*COLLECTIONS, "recipes")


def parsed(text: str):
    return parse(text.encode(), "Captures/w/a.md", mtime_ms=0, collections=KNOWN)


def defects(text: str) -> list[str]:
    return [defect.name for defect in parsed(text).defects]


@pytest.mark.parametrize(
    ("collection", "tags", "meant"),
    [
        pytest.param(None, ["a"], (None, ("a",)), id="none is named"),
        pytest.param("memory", ["a"], ("memory", ("a",)), id="by itself"),
        pytest.param(None, ["collection:memory", "a"], ("memory", ("a",)), id="by a tag"),
        pytest.param(None, ["collection:memory", "a", "collection:workspace"], ("workspace", ("a",)), id="the last tag"),
        pytest.param("memory", ["collection:workspace"], ("memory", ()), id="itself before tags"),
        pytest.param(" Memory ", [], ("memory", ()), id="letter case does not count"),
        pytest.param(None, ["#Collection: RECIPES", " #collection:recipes"], ("recipes", ()), id="however a tag is written"),
        pytest.param(None, ["-collection:recipes", ",collection:memory"], ("memory", ()), id="as the tag that it becomes"),
        pytest.param(None, ["recollection:x", "collection", "a/collection:b"], (None, ("recollection:x", "collection", "a/collection:b")), id="no such tag"),
    ],
)  # fmt: skip
def test_a_collection_is_meant_by_itself_or_by_a_tag(collection, tags, meant):
    assert choose_collection(collection, tags, KNOWN) == meant


@pytest.mark.parametrize(
    ("collection", "tags"),
    [("memeory", []), ("", []), (None, ["collection:memeory"]), (None, ["collection:"]), ("memory", ["collection:x"]),
     (None, ["collection:x", "collection:memory"])],
)  # fmt: skip
def test_an_unknown_one_is_refused_with_those_that_are_known(collection, tags):
    with pytest.raises(InvalidArgument, match="documents, memory, workspace, recipes") as refused:
        choose_collection(collection, tags, KNOWN)
    assert refused.value.details == {"field": "collection", "collections": list(KNOWN)}


@pytest.mark.parametrize(
    ("front", "after"),
    [
        pytest.param("collection: documents # mine\ntags:\n  - a # one\n  # two\n  - collection:memory\n  - 'b'\n",
                     "collection: memory # mine\ntags:\n  - a # one\n  # two\n  - 'b'\n", id="an item of a list"),
        pytest.param('tags: [a, Collection:Memory, "b c"] # all\nx: 1\n', "tags: # all\n  - a\n  - b c\nx: 1\ncollection: memory\n", id="of [a, b]"),
        pytest.param("tags: [collection:workspace, '#collection:memory', a]\n", "tags:\n  - a\ncollection: memory\n", id="two of [a, b]"),
        pytest.param('tags: ["collection:memory", "a,b"]\n', "tags:\n  - a,b\ncollection: memory\n", id="before one with a comma"),
        pytest.param('tags: ["a,b", collection:memory]\n', "tags:\n  - a,b\ncollection: memory\n", id="behind one with a comma"),
        pytest.param("tags: [\n  a,\n  collection:memory,\n  b,\n]\n", "tags:\n  - a\n  - b\ncollection: memory\n", id="of one on several lines"),
        pytest.param("tags: a, collection:memory  b # c\n", "tags: a, b # c\ncollection: memory\n", id="a word of a text"),
        pytest.param("tags: a collection:memory\n", "tags: a\ncollection: memory\n", id="the last word"),
        pytest.param("tags: collection:memory\nx: y\n", "x: y\ncollection: memory\n", id="the only tag"),
        pytest.param("tags:\n- collection:memory\n- collection:workspace\nx: y\n", "x: y\ncollection: memory\n", id="all items"),
        pytest.param("tags: [collection:memory]\nx: y\n", "x: y\ncollection: memory\n", id="all of [a, b]"),
        pytest.param("Tags: [a, collection:memory]\nCOLLECTION: workspace\n", "Tags:\n  - a\nCOLLECTION: memory\n", id="in any letter case"),
        pytest.param("tags: [a, collection:typo, collection:memory]\n", "tags:\n  - a\n  - collection:typo\ncollection: memory\n", id="but no unknown name"),
        pytest.param("collection: [workspace, memory]\ntags: [a]\n", "collection: memory\ntags: [a]\n", id="a list of names"),
        pytest.param("collection: ' Memory '\ntags: [collection:documents]\n", "collection: ' Memory '\n", id="what says so stays"),
        pytest.param("x: 1\n", "x: 1\ncollection: memory\n", id="nothing was said"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_note_says_one_alone_and_all_else_stays(front, after, newline):
    text, wanted = (f"\ufeff---\n{inner}---\n\nbody\n" for inner in (front, after))
    text, wanted = (one.replace("\n", newline) for one in (text, wanted))
    assert set_collection(text, "memory", KNOWN) == wanted
    assert set_collection(wanted, "memory", KNOWN) == wanted
    assert (parsed(wanted).collection, "two-collections" in defects(wanted)) == ("memory", False)


def test_properties_in_braces_are_left_alone():
    with pytest.raises(FrontmatterError):
        set_collection("---\n{collection: memory, tags: [collection:workspace]}\n---\n", "memory", KNOWN)


NAMES = st.sampled_from([*KNOWN, "Memory", "typo", ""])
TAGS = st.one_of(st.sampled_from(["a", "b/c", "日本", "#d", "'e'", '"f g"', "7"]), NAMES.map("collection:{}".format), NAMES.map("'#Collection:{}'".format))  # fmt: skip
FREE = st.sampled_from(["# a comment", "x: 1", "y:  'two' # why", "", "z:\n  - 1\n  - collection:memory"])


@st.composite
def notes(draw):
    own = draw(
        st.none() | NAMES.map("collection: {} # own".format) | st.lists(NAMES, max_size=3).map("collection: {}".format)
    )
    tags = draw(st.lists(TAGS, max_size=5))
    kind = draw(st.sampled_from(["block", "flow", "text", "none"]))
    between = draw(st.sampled_from([" ", ", ", ","]))
    plain = [tag.strip("'\"") for tag in tags if " " not in tag and not tag.strip("'\"").startswith("#")]
    told = {
        "block": "Tags:\n" + "".join(f"  - {tag} # {n}\n" for n, tag in enumerate(tags)),
        "flow": f"tags: [{', '.join(tags)}]\n",
        "text": f"tags: {between.join(plain)}\n",
        "none": "",
    }[kind]
    lines = [line + "\n" for line in draw(st.lists(FREE, unique=True, max_size=4))]
    parts = draw(st.permutations([told, "" if own is None else f"{own}\n", *lines]))
    return "---\n" + "".join(parts) + "---\nbody"


def others(text: str) -> list[str]:
    """The lines of a note that say neither tags nor collection."""
    front, body = split(text)
    kept, inside = [], False
    for line in front.splitlines():
        if re.match(r"(?i)(tags|collection):", line):
            inside = True
        elif not (inside and line.startswith("  - ")):
            inside = False
            kept.append(line)
    return [*kept, body]


@given(notes(), st.sampled_from(KNOWN))
def test_whatever_a_note_says_it_is_in_one_known_collection_and_can_be_put_into_any(text, wanted):
    before = parsed(text)
    assert before.collection in KNOWN
    if not before.writable:
        return
    after = set_collection(text, wanted, KNOWN)
    document = parsed(after)
    assert document.collection == wanted
    assert "two-collections" not in defects(after)
    assert document.tags == before.tags
    assert others(after) == others(text)
    assert set_collection(after, wanted, KNOWN) == after


@given(notes(), st.lists(st.sampled_from(["a", "b", "Ü"]), unique=True), st.none() | st.sampled_from(KNOWN))
def test_other_tags_move_a_note_only_if_they_name_a_collection(text, tags, wanted):
    before = parsed(text)
    if not before.writable:
        return
    changes = tag_changes(split(text)[0], tags, wanted)
    after = edit(text, changes)
    document = parsed(after)
    assert document.collection == (wanted or before.collection)
    assert list(document.tags) == tags
    assert others(after) == others(text)
    assert tag_changes(split(after)[0], tags, wanted) == {}


PIECES = st.sampled_from(
    [
        "collection:",
        "Collection",
        ":",
        "memory",
        "recipes",
        "typo",
        "#",
        "-",
        ",",
        " ",
        "\u2028",
        "\u200b",
        "İ",
        "a",
        "/",
    ]
)


@given(st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=4), st.none() | st.sampled_from(KNOWN))
def test_whatever_tags_are_given_the_note_is_where_it_was_meant_to_be(tags, collection):
    _, _, kept = split_metadata({"tags": tags})
    try:
        meant, plain = choose_collection(collection, kept, KNOWN)
    except InvalidArgument:
        return
    assert choose_collection(None, plain, KNOWN) == (None, plain)
    own = properties_of(id="a", created_at=0, source=None, collection=meant or "documents", tags=plain, metadata={})
    document = parsed(compose_note(own, "body"))
    assert document.collection == (meant or "documents")
    assert collection in (None, meant)
    assert not [tag for tag in document.tags if tag.casefold().startswith("collection:")]
    assert not {"two-collections", "unknown-collection"} & {defect.name for defect in document.defects}


OWN = {name: CollectionName(name, tag=False) for name in KNOWN}
TAG = {name: CollectionName(name, tag=True) for name in KNOWN}


@pytest.mark.parametrize(
    ("mentions", "before", "chosen"),
    [
        pytest.param([TAG["memory"], OWN["documents"]], NamedCollections.only("documents"), "memory", id="a tag is added"),
        pytest.param([OWN["workspace"], TAG["memory"]], NamedCollections.only("memory"), "workspace", id="the property changes"),
        pytest.param([OWN["workspace"], TAG["memory"]], None, "memory", id="nobody knows: the last"),
        pytest.param([OWN["workspace"], TAG["memory"]], NamedCollections.only("recipes"), "memory", id="both are new: the last"),
        pytest.param([OWN["documents"], TAG["memory"]], NamedCollections(frozenset({OWN["documents"], TAG["memory"]}), "memory"), "memory", id="nothing changed"),
        pytest.param([OWN["memory"], TAG["memory"], TAG["workspace"]], NamedCollections(frozenset({OWN["documents"], TAG["memory"], TAG["workspace"]}), "workspace"), "memory",
                     id="the property comes to say what a tag says"),
        pytest.param([OWN["documents"], TAG["memory"]], NamedCollections(frozenset({OWN["documents"], TAG["memory"], TAG["workspace"]}), "workspace"), "memory",
                     id="what was set last is taken back"),
    ],
)  # fmt: skip
def test_of_several_the_one_that_was_set_last_counts(mentions, before, chosen):
    assert choose_latest(mentions, before) == NamedCollections(frozenset(mentions), chosen)


def test_tags_are_read_from_lists_and_texts():
    assert tag_texts(["a", "#b", 7, None, {"c": 1}, " "]) == ["a", "b", "7"]
    assert tag_texts("a, #b  c") == ["a", "b", "c"]
    assert tag_texts(None) == tag_texts("") == []


def test_a_persons_own_list_of_names_counts_too():
    assert parsed("---\ncollection: [memory]\n---\n").collection == "memory"
    assert defects("---\ncollection: [memory, typo]\n---\n") == ["unknown-collection"]
    assert read_properties("---\ncollection: [memory]\n---\n") == {"collection": ["memory"]}


@pytest.mark.slow
def test_what_is_indexed_is_read_with_the_collections_that_are_known():
    """Those that read a note for something else need not know them."""
    unaware = set()
    for file in (ROOT / "syncd").rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id == "parse":
                unaware |= set() if "collections" in {one.arg for one in call.keywords} else {file.name}
    assert unaware == {"backfill.py", "link_updates.py", "node_summaries.py"}
