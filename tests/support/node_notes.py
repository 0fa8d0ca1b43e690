"""Create and open nodes, and read their notes from the files."""

from __future__ import annotations

from syncd.graph.node_request import NewNode

ENTITIES = "Captures/default/Entities"


def made(nodes, *names, **given):
    return nodes.create([NewNode(name, "person", **given) for name in names])


def facts(nodes, name):
    ((_, found),) = nodes.open([name]).nodes
    return [(one.ordinal, one.content) for one in found]


def text(world, name):
    return (world.vault / ENTITIES / f"{name}.md").read_text()
