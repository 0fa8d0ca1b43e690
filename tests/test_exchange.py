"""A graph as lines of JSON: what is written is read back, what is wrong is told with its place, and a second import changes nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.vertex import Edge
from syncd.exchange import MAX_LINE, Entity, records, records_of, whole, written

REFERENCE = (
    '{"type":"entity","name":"John_Smith","entityType":"person","observations":["Speaks fluent Spanish"]}\n'
    '{"type":"entity","name":"Anthropic","entityType":"organization","observations":[]}\n'
    '{"type":"relation","from":"John_Smith","to":"Anthropic","relationType":"works_at"}'
)
plain = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
names = st.text(plain, min_size=1, max_size=256).map(str.strip).filter(bool)
kinds = st.sampled_from(["person", "org chart", "作業", "🏡", "a/b", "knows_of"])
facts = (
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=300)
    .map(lambda text: text.replace("\r\n", "\n").replace("\r", "\n").strip())
    .filter(bool)
)


@st.composite
def entities(draw):
    observations = tuple(draw(st.lists(facts, max_size=5)))
    ordinals = draw(st.lists(st.integers(1, 99), min_size=len(observations), max_size=len(observations), unique=True))
    own = {
        "summary": draw(facts),
        "tags": draw(st.lists(st.sampled_from(["a", "b/c", "山"]), unique=True)),
        "created_at": "2026-11-20T14:32:05.120Z",
        "version": draw(st.integers(1, 9)),
        "metadata": {"project": draw(names)},
    }
    name = draw(names.filter(lambda text: nfc(text) == text))
    return Entity(name, draw(kinds), observations, tuple(sorted(ordinals)), own)


def nfc(text):
    import unicodedata

    return unicodedata.normalize("NFC", text)


def numbered(text):
    return enumerate(text.encode().splitlines(keepends=True), 1)


def read(text):
    return list(records(numbered(text)))


@given(entities())
def test_an_entity_is_read_back_as_it_was_written(one):
    assert read(written(one)) == [("line 1", one, [])]


def test_a_relation_is_read_back_as_it_was_written():
    for edge in (Edge("Ada", "チャールズ", "worked with"), Edge("a", "a", "🏡")):
        assert read(written(edge)) == [("line 1", edge, [])]


def test_the_file_of_the_reference_server_is_read():
    expected = [
        Entity("John_Smith", "person", ("Speaks fluent Spanish",)),
        Entity("Anthropic", "organization"),
        Edge("John_Smith", "Anthropic", "works_at"),
    ]
    for text in (REFERENCE, "\ufeff" + REFERENCE.replace("\n", "\r\n") + "\r\n\r\n"):
        assert [one for _, one, _ in read(text)] == expected
        assert not any(mistakes for _, _, mistakes in read(text))


@pytest.mark.parametrize("indent", [None, 2])
def test_the_older_form_of_one_object_is_read(indent):
    lines = [json.loads(line) for line in REFERENCE.split("\n")]
    bare = [{key: value for key, value in line.items() if key != "type"} for line in lines]
    text = json.dumps({"entities": bare[:2], "relations": bare[2:]}, indent=indent)
    assert whole(text.encode().splitlines()[0])
    assert [one for _, one, _ in records_of(text.encode())] == [one for _, one, _ in read(REFERENCE)]
    assert not whole(REFERENCE.encode().splitlines()[0])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "no JSON at character 3"),
        ("[1]", "no JSON object"),
        ("[" * 200_000, "JSON"),
        ('{"a": ' + "9" * 5000 + "}", "JSON"),
        ('{"name": "Ada"}', "no type; entity and relation are known"),
        ('{"type": "node"}', "an unknown type 'node'"),
        ('{"type": "entity", "entityType": "person"}', "name is missing"),
        ('{"type": "entity", "name": 7, "entityType": "person"}', "name is no text"),
        ('{"type": "entity", "name": "Ada"}', "entityType is missing"),
        ('{"type": "entity", "name": "A\\nb", "entityType": "person"}', "name: name must be one line"),
        ('{"type": "entity", "name": "' + "x" * 257 + '", "entityType": "person"}', "name: name must be one line"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "observations": "text"}', "observations is no list"),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "observations": ["a", 7]}',
            "observations[1] is no text",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "observations": [" "]}',
            "observations[0]: an observation",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "observations": ["a"], "ordinals": [0]}',
            "ordinals must",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "observations": ["a"], "ordinals": [1, 2]}',
            "ordinals must",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "observations": ["a", "b"], "ordinals": [2, 2]}',
            "ordinals",
        ),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "tags": "math"}', "tags must be a list of texts"),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "created_at": "yesterday"}',
            "created_at must be a time",
        ),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "version": true}', "version must be a whole number"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "id": "../x"}', "id must be an id"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"promote": true}}', "metadata must be"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"Review": 1}}', "metadata must be"),
        ('{"type": "relation", "from": "Ada", "to": "Charles"}', "relationType is missing"),
        ('{"type": "relation", "from": "Ada", "relationType": "knew"}', "to is missing"),
        ('{"type": "relation", "from": "Ada", "to": "C", "relationType": "a]]b"}', "relationType: relation type"),
    ],
)
def test_a_mistake_is_told_with_its_line(line, told):
    ((where, _, (mistake,)),) = [
        one for one in read(f'\n{line}\n{{"type":"relation","from":"a","to":"b","relationType":"c"}}') if one[2]
    ]
    assert where == mistake.where == "line 2"
    assert mistake.what.startswith(told) or told in mistake.what


def test_bytes_that_are_no_utf_8_and_lines_without_end_are_told():
    told = list(records([(1, b'{"type": "\xff"}'), (2, None), (3, b"  \r\n")]))
    assert [str(mistake) for _, _, mistakes in told for mistake in mistakes] == [
        "line 1: not UTF-8 at byte 11",
        f"line 2: longer than {MAX_LINE:,} bytes",
    ]


def test_of_an_entity_with_mistakes_the_rest_is_good():
    line = '{"type":"entity","name":"Ada","entityType":"p","observations":["a",7,"c"],"ordinals":[1,2,5],"tags":3,"version":2}'
    ((_, one, mistakes),) = read(line)
    assert one == Entity("Ada", "p", ("a", "c"), (1, 5), {"version": 2})
    assert [str(mistake) for mistake in mistakes] == [
        "line 1: observations[1] is no text",
        "line 1: tags must be a list of texts",
    ]


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_bytes_are_too_much_for_it(raw):
    for found in (records([(1, raw)]), records_of(raw)):
        for _, one, mistakes in found:
            assert one is not None or mistakes


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "name",
                        "entityType",
                        "observations",
                        "ordinals",
                        "from",
                        "to",
                        "relationType",
                        "tags",
                        "metadata",
                        "id",
                        "created_at",
                        "entities",
                        "relations",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_no_json_is_too_much_for_it(value):
    for kind in ("entity", "relation"):
        given = {**value, "type": kind} if isinstance(value, dict) else value
        for _, one, mistakes in records([(1, json.dumps(given).encode())]):
            assert one is not None or mistakes
    list(records_of(json.dumps(value).encode()))
