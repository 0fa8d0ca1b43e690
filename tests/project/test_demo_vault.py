"""The demo vault hangs together as a person's vault would in Obsidian."""

from __future__ import annotations

import json
import re
import unicodedata
import uuid
import xml.etree.ElementTree as ET
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
import yaml

import vault_fixtures
from index.graph.graph import Graph
from index.graph.vertex import vertex_of
from tests.support.parsed_notes import parse

DEMO = Path(vault_fixtures.__file__).parent / "demo"
FILES = {path.relative_to(DEMO).as_posix(): path for path in sorted(DEMO.rglob("*")) if path.is_file()}
VISIBLE = {name: path for name, path in FILES.items() if not name.startswith(".")}
NOTES = {name: path.read_text(encoding="utf-8") for name, path in VISIBLE.items() if name.endswith(".md")}
CAPTURES = [name for name in NOTES if name.startswith("Captures/")]
UNRESOLVED = {"Heron v3", "Winter list"}  # notes that are only wished for

WIKILINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
BLOCK_ID = re.compile(r"(?:^|\s)\^([A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)
STRUCK = str.maketrans(dict.fromkeys('!"#$%&()*+,.:;<=>?@^`{|}~/[]\\', " "))


def look(text):
    return unicodedata.normalize("NFC", text).lower()


def resolve(target, source):
    """The file that a link's path leads to by Obsidian's rules, or None."""
    if not target:
        return source
    wanted = {look(target), look(target) + ".md"}
    exact = [name for name in VISIBLE if look(name) in wanted]
    ends = [name for name in VISIBLE if any(look("/" + name).endswith("/" + path) for path in wanted)]
    folder = source.rpartition("/")[0]
    near = [name for name in ends if folder and name.startswith(folder + "/")]
    return min(exact or near or ends, key=lambda name: (len(name), name), default=None)


def heading(text):
    return " ".join(text.translate(STRUCK).lower().split())


def links(text):
    for found in WIKILINK.finditer(CODE.sub("", text)):
        target, _, _ = found[1].replace("\\|", "|").partition("|")
        path, _, subpath = target.partition("#")
        yield path, subpath


def front(text):
    return yaml.safe_load(text.split("---\n")[1]) if text.startswith("---\n") else {}


def test_it_is_a_vault_of_believable_size_in_several_scripts():
    assert 60 <= len(NOTES) <= 90
    assert len(CAPTURES) >= 10
    everything = "".join(NOTES) + "".join(NOTES.values())
    for script in (r"[ぁ-ん]{4}", r"[\u4e00-\u9fff]{4}", r"[\U0001f331-\U0001f3e1]"):
        assert re.search(script, everything)
    assert sum(len(text.split()) for text in NOTES.values()) > 8000
    assert any(re.search(r"[\U0001f300-\U0001f6ff]", name) for name in NOTES)


def leads_as_it_should(name, path, subpath):
    """Whether a link of a note leads to what it names, or nowhere if it is known to."""
    file = resolve(path, name)
    if path in UNRESOLVED or file is None:
        return path in UNRESOLVED and file is None
    if not subpath:
        return True
    if subpath.startswith("^"):
        return subpath[1:] in BLOCK_ID.findall(NOTES[file])
    headings = {heading(text) for text in re.findall(r"^#{1,6} (.+)$", NOTES[file], re.MULTILINE)}
    return heading(subpath) in headings


def test_every_link_leads_somewhere_or_is_known_not_to():
    all_links = [(name, path, subpath) for name in NOTES for path, subpath in links(NOTES[name])]
    assert len(all_links) > 100
    assert [link for link in all_links if not leads_as_it_should(*link)] == []


def test_what_is_wished_for_is_linked():
    assert not UNRESOLVED - {path for text in NOTES.values() for path, _ in links(text)}


def test_no_name_is_ambiguous_or_refused_by_any_system():
    names = Counter(look(name.rpartition("/")[2]) for name in VISIBLE)
    assert [name for name, count in names.items() if count > 1] == []
    for name in VISIBLE:
        assert unicodedata.is_normalized("NFC", name)
        assert not re.search(r'[\\:*?"<>|#^\[\]]', name), name
        assert all(len(part.encode()) < 200 for part in name.split("/"))


@pytest.mark.parametrize("name", NOTES)
def test_properties_and_tables_are_what_obsidian_would_write(name):
    text = NOTES[name]
    assert "\r" not in text
    assert text.endswith("\n")
    properties = front(text)
    assert isinstance(properties, dict)
    tags = properties.get("tags", [])
    assert isinstance(tags, list)
    assert all(isinstance(tag, str) and not re.search(r"[\s#,]", tag) for tag in tags)
    blocks = BLOCK_ID.findall(text)
    assert len(blocks) == len(set(blocks))


def test_captures_have_the_form_that_memex_gives_them():
    ids = []
    for name in CAPTURES:
        properties = front(NOTES[name])
        ids.append(properties["id"])
        assert str(uuid.UUID(properties["id"])) == properties["id"]
        assert uuid.UUID(properties["id"]).version == 4
        written = re.search(r"^created_at: (.+)$", NOTES[name], re.MULTILINE)[1]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written)
        assert datetime.fromisoformat(written)
        if properties.get("type") != "entity":
            assert properties["collection"] in {"documents", "memory", "workspace"}
            assert properties["source"]
        assert not {"promote", "promote_to", "review"} & set(properties)
    assert len(set(ids)) == len(ids)
    assert {name.split("/")[1] for name in CAPTURES} == {"default", "work"}
    assert {"travel", "heron", "Entities"} <= {name.split("/")[2] for name in CAPTURES}
    assert not [name for name, text in NOTES.items() if name not in CAPTURES and "id" in front(text)]


def test_entities_are_a_graph_without_loose_ends_in_each_workspace():
    graphs = {"default": Graph(), "work": Graph()}
    for name in CAPTURES:
        document = parse(VISIBLE[name].read_bytes(), name, mtime_ms=0)
        assert document.defects == ()
        if one := vertex_of(document):
            assert not one.unsettled
            graphs[document.workspace].put(one)
    for graph in graphs.values():
        assert (graph.dangling_statements(), graph.notes_sharing_names()) == ([], [])
    assert [one.name for one in graphs["default"].orphans()] == ["Inspector"]
    assert {one.name for one in graphs["default"].vertices()} >= {"Heron", "Odalys Brandt-Keane", "包灵犀"}
    assert len(graphs["default"].shortest_path("Odalys Brandt-Keane", "Dario Venn")) == 4
    assert graphs["work"].relation_count == 2


def test_the_canvas_is_a_valid_one():
    (name,) = [name for name in VISIBLE if name.endswith(".canvas")]
    canvas = json.loads(VISIBLE[name].read_text(encoding="utf-8"))
    nodes, edges = canvas["nodes"], canvas["edges"]
    ids = [item["id"] for item in [*nodes, *edges]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{16}", item) for item in ids)
    for node in nodes:
        assert all(isinstance(node[key], int) for key in ("x", "y", "width", "height"))
        if node["type"] == "file":
            assert node["file"] in VISIBLE
            found = re.findall(r"^#{1,6} (.+)$", NOTES.get(node["file"], ""), re.MULTILINE)
            assert "subpath" not in node or node["subpath"].lstrip("#") in found
        for path, _ in links(node.get("text", "")):
            assert resolve(path, name)
    assert {edge[end] for edge in edges for end in ("fromNode", "toNode")} <= {node["id"] for node in nodes}
    boxes = [node for node in nodes if node["type"] != "group"]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]


def test_the_base_s_expressions_are_quoted_text():
    (path,) = [path for name, path in VISIBLE.items() if name.endswith(".base")]
    base = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(base) <= {"filters", "formulas", "properties", "summaries", "views"}
    assert all(isinstance(item, str) for item in base["filters"]["and"])
    assert all(key.startswith(("note.", "file.", "formula.")) for key in base["properties"])
    assert len({view["name"] for view in base["views"]}) == len(base["views"])


def test_pictures_and_settings_are_small_and_valid():
    assert VISIBLE["Attachments/station-at-dawn.png"].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ET.fromstring(VISIBLE["Attachments/heron-exploded-view.svg"].read_text()).tag.endswith("svg")
    settings = [name for name in FILES if name.startswith(".obsidian/")]
    assert {"app.json", "types.json", "core-plugins.json"} <= {Path(name).name for name in settings}
    for name in settings:
        assert isinstance(json.loads(FILES[name].read_text()), dict)
    assert sum(path.stat().st_size for path in FILES.values()) < 200_000
    assert all(path.stat().st_size < 1000 for name, path in FILES.items() if name.endswith(".png"))


def test_it_shows_what_obsidian_can_write():
    everything = "\n".join(NOTES.values())
    for shape in (
        r"^> \[!\w+\][+-]",
        r"^- \[ \] .*📅",
        r"🔁",
        r"^\w+:: ",
        r"\[charge window:: ",
        r"!\[\[.*#\^",
        r"\\\|",
    ):
        assert re.search(shape, everything, re.MULTILINE), shape
    for shape in ("```mermaid", "$$", "[^boat]: ", "%% ", "- [-] ", "- [x] ", ".canvas|", "{{title}}"):
        assert shape in everything, shape
