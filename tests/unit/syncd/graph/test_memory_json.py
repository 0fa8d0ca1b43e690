"""A graph as lines of JSON: what is written is read back, what is wrong is told with its place, and a second import changes nothing."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
import unicodedata

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from index.graph.vertex import Edge, name_key
from syncd.cli.main import run_command
from syncd.documents.entity_lines import LARGEST
from syncd.graph import memory_json_reader
from syncd.graph.memory_json import MAX_LINE, Entity, format_line, is_single_object, parse_lines, parse_object
from tests.support.daemon_process import daemon
from tests.support.example_counts import examples
from tests.support.world import World, answering

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
    ordinals = draw(
        st.lists(
            st.integers(1, 99) | st.just(LARGEST), min_size=len(observations), max_size=len(observations), unique=True
        )
    )
    own = {
        "summary": draw(facts),
        "tags": draw(st.lists(st.sampled_from(["a", "b/c", "山"]), unique=True)),
        "created_at": "2026-11-20T14:32:05.120Z",
        "version": draw(st.integers(1, 9)),
        "last_ordinal": max([draw(st.sampled_from([99, LARGEST])), *ordinals]),
        "collection": draw(st.sampled_from(["memory", "workspace"])),
        "metadata": {"project": draw(names)},
    }
    name = draw(names.filter(lambda text: nfc(text) == text))
    return Entity(name, draw(kinds), observations, tuple(sorted(ordinals)), own)


def nfc(text):
    return unicodedata.normalize("NFC", text)


def numbered(text):
    return enumerate(text.encode().splitlines(keepends=True), 1)


def read(text):
    return list(parse_lines(numbered(text)))


@given(entities())
def test_an_entity_is_read_back_as_it_was_written(one):
    assert read(format_line(one)) == [("line 1", one, [])]


def test_a_relation_is_read_back_as_it_was_written():
    for edge in (Edge("Ada", "チャールズ", "worked with"), Edge("a", "a", "🏡")):
        assert read(format_line(edge)) == [("line 1", edge, [])]


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
    assert is_single_object(text.encode().splitlines()[0])
    assert [one for _, one, _ in parse_object(text.encode())] == [one for _, one, _ in read(REFERENCE)]
    assert not is_single_object(REFERENCE.encode().splitlines()[0])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "invalid JSON at character 3"),
        ("[1]", "not a JSON object"),
        ("[" * 200_000, "JSON"),
        ('{"a": ' + "9" * 5000 + "}", "JSON"),
        ('{"name": "Ada"}', "the type is missing; use entity or relation"),
        ('{"type": "node"}', "unknown type 'node'"),
        ('{"type": "entity", "entityType": "person"}', "name is missing"),
        ('{"type": "entity", "name": 7, "entityType": "person"}', "name is not text"),
        ('{"type": "entity", "name": "Ada"}', "entityType is missing"),
        ('{"type": "entity", "name": "A\\nb", "entityType": "person"}', "name: name must be one line"),
        ('{"type": "entity", "name": "' + "x" * 257 + '", "entityType": "person"}', "name: name must be one line"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "observations": "text"}', "observations is not a list"),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "observations": ["a", 7]}',
            "observations[1] is not text",
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
        ('{"type": "entity", "name": "Ada", "entityType": "p", "tags": "math"}', "tags must be a list of tags"),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "created_at": "yesterday"}',
            "created_at must be a time",
        ),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "version": true}', "version must be a whole number"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "id": "../x"}', "id must be an id"),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"promote": true}}',
            "metadata: metadata key 'promote' b",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"Review": 1}}',
            "metadata: metadata key 'Review' be",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"Name": "B"}}',
            "metadata: metadata key 'Name' bel",
        ),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"a": NaN}}',
            "can't be written as properties",
        ),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "metadata": {"": 1}}', "must be 1 to 128 printable"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "metadata": [1]}', "metadata must be an object"),
        ('{"type": "entity", "name": "Ada", "entityType": "p", "tags": ["#"]}', "tags: a tag needs a letter"),
        (
            '{"type": "entity", "name": "Ada", "entityType": "p", "aliases": ["a\\nb"]}',
            "aliases: name must be one line",
        ),
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
    told = list(parse_lines([(1, b'{"type": "\xff"}'), (2, None), (3, b"  \r\n")]))
    assert [str(mistake) for _, _, mistakes in told for mistake in mistakes] == [
        "line 1: not UTF-8 at byte 11",
        f"line 2: longer than {MAX_LINE:,} bytes",
    ]


def test_of_an_entity_with_mistakes_the_rest_is_good():
    line = '{"type":"entity","name":"Ada","entityType":"p","observations":["a",7,"c"],"ordinals":[1,2,5],"tags":3,"version":2}'
    ((_, one, mistakes),) = read(line)
    assert one == Entity("Ada", "p", ("a", "c"), (1, 5), {"version": 2})
    assert [str(mistake) for mistake in mistakes] == [
        "line 1: observations[1] is not text",
        "line 1: tags must be a list of tags",
    ]


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_bytes_are_too_much_for_it(raw):
    for found in (parse_lines([(1, raw)]), parse_object(raw)):
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
        for _, one, mistakes in parse_lines([(1, json.dumps(given).encode())]):
            assert one is not None or mistakes
    list(parse_object(json.dumps(value).encode()))


# Brought into a graph, and out of it


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "state").mkdir(mode=0o700)
    world = World(tmp_path)
    world.run()
    monkeypatch.setenv("MEMEX_VAULT", str(world.vault))
    monkeypatch.setenv("MEMEX_STATE", str(world.state))
    with answering(world):
        yield world


def asking(world):
    return lambda operation, given: world.app.operations[operation](given, lambda _: None)


def brought(world, text, workspace="default", *, dry_run=False):
    """What became of a file."""
    source = io.BytesIO(text.encode())
    given = {"workspace": workspace, "dry_run": dry_run}
    return memory_json_reader.import_graph(
        source, memory_json_reader.summarize_file(source), asking(world), lambda _: None, given
    )


def exported(world, workspace="default"):
    """Entities by name and relations, as `memex export` has them."""
    ask = asking(world)
    names = [one["name"] for one in ask("node.names", {"workspace": workspace, "limit": 10_000})]
    part = ask("graph.export", {"workspace": workspace, "names": names})
    entities = [json.loads(line) for line in part["entities"]]
    return {one["name"]: one for one in entities}, [json.loads(line) for line in part["relations"]]


def plainly(entities):
    """Without what is another in every place."""
    return {name: {key: value for key, value in one.items() if key != "id"} for name, one in entities.items()}


@st.composite
def graphs(draw):
    nodes = draw(st.lists(entities(), min_size=1, max_size=5, unique_by=lambda one: name_key(one.name)))
    ends = st.sampled_from([one.name for one in nodes])
    edges = draw(
        st.lists(st.tuples(ends, ends, st.sampled_from(["knows", "作った", "part of"])), max_size=6, unique=True)
    )
    return nodes, [Edge(*one) for one in edges]


counter = iter(range(10_000))


@pytest.mark.slow
@examples(10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs())
def test_a_round_trip_loses_nothing(world, graph):
    nodes, edges = graph
    first, second = f"from {next(counter)}", f"to {next(counter)}"
    for name in (first, second):
        world.app.operations["workspace.create"]({"name": name}, lambda _: None)
    text = "\n".join(map(format_line, [*nodes, *edges]))
    told = brought(world, text, first)
    assert (told["created"], told["related"], told["left_out"]) == (len(nodes), len(edges), 0)
    out, relations = exported(world, first)
    for one in nodes:
        said = out[one.name]
        assert (said["observations"], said.get("ordinals", [])) == (list(one.observations), list(one.ordinals))
        assert {key: said[key] for key in one.properties if said.get(key)} == {
            key: value for key, value in one.properties.items() if value not in ([], 1)
        }
    assert {(one["from"], one["to"], one["relationType"]) for one in relations} == {
        (edge.source, edge.target, edge.type) for edge in edges
    }
    again = "\n".join(json.dumps(line) for line in [*out.values(), *relations])
    brought(world, again, second)
    back, related = exported(world, second)
    assert (plainly(back), related) == (plainly(out), relations)
    for workspace in (first, second):
        before = world.dump()
        told = brought(world, again, workspace)
        assert (told["created"], told["changed"], told["observations"], told["related"]) == (0, 0, 0, 0)
        assert (told["unchanged"], told["existed"]) == (len(nodes), len(edges))
        assert world.dump() == before
    world.run()
    assert exported(world, second)[0] == back


def test_in_another_vault_even_the_ids_are_the_same(world, tmp_path):
    brought(world, REFERENCE)
    out, relations = exported(world)
    other = World(tmp_path / "other")
    try:
        other.run()
        brought(other, "\n".join(json.dumps(line) for line in [*out.values(), *relations]))
        assert exported(other) == (out, relations)
    finally:
        other.close()


def test_a_node_that_was_written_without_a_type_and_times_goes_out_and_comes_back(world, tmp_path):
    own = "created_at: 2026-11-20T14:32:05.120Z\nsummary: Written by hand.\nlast_ordinal: 1"  # and no other times
    body = "## Observations\n- one ^o1\n\n## Relations\n- sees:: [[By hand]]\n"
    world.write("Captures/default/Entities/By hand.md", f"---\n{own}\n---\n{body}")
    world.run()
    out, relations = exported(world)
    ((_, one),) = out.items()
    assert (one["entityType"], one["observations"]) == ("", ["one"])
    other = World(tmp_path / "other")
    try:
        other.run()
        brought(other, "\n".join(json.dumps(line) for line in [*out.values(), *relations]))
        assert exported(other) == (out, relations)
        assert "entity_type" not in (other.vault / "Captures/default/Entities/By hand.md").read_text()
    finally:
        other.close()


def test_what_a_node_lacks_is_added_and_nothing_is_replaced(world):
    brought(
        world, '{"type":"entity","name":"Ada","entityType":"person","observations":["a"],"summary":"Hers","tags":["x"]}'
    )
    told = brought(
        world,
        '{"type":"entity","name":"ADA","entityType":"robot","observations":["b","a","b"],"summary":"No","tags":["X","y"]}\n'
        '{"type":"entity","name":"Ada","entityType":"person","observations":["c"]}',
    )
    assert (told["created"], told["changed"], told["observations"]) == (0, 1, 2)
    ((_, one),) = exported(world)[0].items()
    assert (one["entityType"], one["observations"], one["summary"], one["tags"]) == (
        "person",
        ["a", "b", "c"],
        "Hers",
        ["x", "y"],
    )


def test_a_dry_run_tells_the_same_and_writes_nothing(world):
    brought(world, '{"type":"entity","name":"Anthropic","entityType":"organization","observations":[]}')
    before = world.dump(), sorted(world.vault.rglob("*"))
    dry = brought(world, REFERENCE, dry_run=True)
    assert (world.dump(), sorted(world.vault.rglob("*"))) == before
    wet = brought(world, REFERENCE)
    assert {**dry, "dry_run": False} == wet
    assert (wet["created"], wet["unchanged"], wet["related"]) == (1, 1, 1)


def test_a_large_file_comes_in_parts(world, monkeypatch):
    monkeypatch.setattr(memory_json_reader, "MANY", 7)
    lines = [format_line(Entity(f"Node {n}", "thing", (f"fact {n}",))) for n in range(40)]
    lines += [format_line(Edge(f"Node {n}", f"Node {n + 1}", "precedes")) for n in range(45)]
    told = brought(world, "\n".join(reversed(lines)))
    assert (told["created"], told["related"], told["left_out"]) == (40, 39, 6)
    assert told["dangling"][0].startswith(
        "line 1: precedes is skipped, because there is no entity 'Node 44' and 'Node 45'"
    )
    assert len(exported(world)[1]) == 39


@pytest.mark.slow
def test_no_more_than_a_part_of_a_file_is_held(tmp_path):
    file = tmp_path / "memory.json"
    with file.open("w") as lines:
        for n in range(600):
            lines.write(format_line(Entity(f"Node {n}", "thing", (f"{n} " + "long fact " * 2000,))) + "\n")
    answer = dict.fromkeys(("created", "changed", "unchanged", "observations", "related", "existed"), 0) | {"made": []}
    parts = []
    with file.open("rb") as source:
        tracemalloc.start()
        told = memory_json_reader.summarize_file(source)
        memory_json_reader.import_graph(
            source,
            told,
            lambda _, given: parts.append(len(given["entities"])) or answer,
            lambda _: None,
            {"workspace": "w", "dry_run": False},
        )
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (sum(parts), max(parts) <= 100) == (600, True)
    assert peak < file.stat().st_size / 3


def test_import_and_export_by_command(world, tmp_path, capfd):
    file = tmp_path / "memory.json"
    file.write_text(REFERENCE + '\n{"type":"relation","from":"Anthropic","to":"Nobody","relationType":"knows"}\n')
    assert run_command(["import", str(file)]) == 0
    out, err = capfd.readouterr()
    assert out == (
        "entities: 2 created, 0 extended, 0 unchanged\n"
        "facts: 1 written\n"
        "relations: 1 created, 0 existed already, 1 left out\n"
    )
    assert "memory.json: line 4: knows is skipped, because there is no entity 'Nobody'" in err
    assert run_command(["export"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["entity", "entity", "relation"]
    target = tmp_path / "out.json"
    assert run_command(["export", "--output", str(target), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"file": str(target), "entities": 2}
    assert target.read_text().splitlines() == lines
    assert run_command(["export", "--output", str(target)]) == 5
    assert run_command(["import", str(target), "--dry-run", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["unchanged"], told["existed"], told["mistakes"], told["dry_run"]) == (2, 1, 0, True)


def test_a_file_with_mistakes_is_refused_with_all_of_them(world, tmp_path, capfd, monkeypatch):
    file = tmp_path / "memory.json"
    file.write_text('oops\n{"type":"entity","name":"Ada","entityType":"p","observations":[1,"b"]}\n[]\n')
    assert run_command(["import", str(file)]) == 2
    err = capfd.readouterr().err
    for told in (
        "line 1: invalid JSON",
        "line 2: observations[0] is not text",
        "line 3: not a JSON object",
        "has 3 mistakes",
    ):
        assert told in err
    assert exported(world) == ({}, [])
    with file.open() as given:
        monkeypatch.setattr("sys.stdin", given)
        assert run_command(["import", "-", "--skip-mistakes"]) == 0
    assert "stdin: line 1" in capfd.readouterr().err
    assert exported(world)[0]["Ada"]["observations"] == ["b"]


def test_relations_may_lead_to_nodes_that_were_there_by_any_name(world):
    brought(world, '{"type":"entity","name":"包灵犀","entityType":"person","aliases":["Lingxi"]}')
    told = brought(
        world,
        '{"type":"entity","name":"Heron","entityType":"project"}\n'
        '{"type":"relation","from":"Heron","to":"lingxi","relationType":"supplied by"}',
    )
    assert (told["related"], told["dangling"]) == (1, [])
    assert exported(world)[1] == [{"type": "relation", "from": "Heron", "to": "包灵犀", "relationType": "supplied by"}]


@pytest.mark.slow
def test_without_a_daemon_the_files_count_as_they_are(tmp_path, bundled, models):
    """What was written since nobody looked is there already, and nothing is made a second time."""
    with daemon(tmp_path, models) as memex:
        memex.run("init", "--yes")
        memex.run("import", "-", stdin=REFERENCE.encode())
        note = memex.vault / "Captures/default/Entities/John_Smith.md"
        note.write_text(note.read_text().replace("^o1\n", "^o1\n- Graduated in 2019\n"))
        memex.write("Captures/default/Entities/By hand.md", "## Observations\n- written by hand\n")
        line = '{"type":"entity","name":"by  HAND","entityType":"note","observations":["written by hand"]}\n'
        told = json.loads(memex.run("import", "-", "--json", stdin=line.encode()))
        assert (told["created"], told["changed"], told["unchanged"]) == (0, 0, 1)
        lines = [json.loads(one) for one in memex.run("export").splitlines()]
        facts = {one["name"]: one["observations"] for one in lines if one["type"] == "entity"}
        assert facts["John_Smith"] == ["Speaks fluent Spanish", "Graduated in 2019"]
        assert facts["By hand"] == ["written by hand"]
