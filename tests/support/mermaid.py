"""Mermaid's own parser in Node, and names that could break a diagram."""

from __future__ import annotations

import json
import re

from tests.support.paths import CLIENTS

NODE = CLIENTS / "node_modules/.bin/node"


HOSTILE = (
    'He said "no"',
    "[[Ada]] (x) {y} |z|",
    "end",
    "class n0 internal-link;",
    "🏡 House",
    "مرحبا بالعالم",
    "\u202eevil\u2066",
    "雪の測候所",
    "x" * 256,
    '"' * 256,
    "--> <!-- ]]>",
    "```",
    "`code` **bold** _it_",
    "&amp; &#35; #quot; #35;",
    "- a list",
    "1. another",
    "%% comment %%",
    "fa:fa-car A@{ shape: cloud }",
    "<script>alert(1)</script>",
    "\\ back",
    "a; b",
    "\ufffe\U0010fffe",
    "subgraph",
)


def valid(text, files):
    """Return the canvas, after checking that Obsidian accepts it."""
    board = json.loads(text)
    assert set(board) == {"nodes", "edges"}
    ids = [item["id"] for item in [*board["nodes"], *board["edges"]]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[0-9a-f]{16}", id) for id in ids)
    for node in board["nodes"]:
        assert all(type(node[key]) is int for key in ("x", "y", "width", "height"))
        assert node["type"] in ("group", "file")
        assert node.get("color", "1") in "123456"
        assert node["type"] == "group" or node["file"] in files
    groups = [node["type"] == "group" for node in board["nodes"]]
    assert groups == sorted(groups, reverse=True)
    known = {node["id"] for node in board["nodes"] if node["type"] == "file"}
    for edge in board["edges"]:
        assert {edge["fromNode"], edge["toNode"]} <= known
        assert {edge["fromSide"], edge["toSide"]} <= {"top", "right", "bottom", "left"}
        assert isinstance(edge["label"], str)
    boxes = [node for node in board["nodes"] if node["type"] == "file"]
    for number, a in enumerate(boxes):
        for b in boxes[:number]:
            beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
    for group in (node for node in board["nodes"] if node["type"] == "group"):
        for box in boxes:
            assert group["x"] < box["x"]
            assert group["y"] < box["y"]
            assert box["x"] + box["width"] < group["x"] + group["width"]
            assert box["y"] + box["height"] < group["y"] + group["height"]
    return board
