"""Sample entities and relations for calls of the graph tools, and the list of reading tools."""

from __future__ import annotations

from index.model import Document, Node, Observation, Statement
from tests.support.documents import note

READS = {
    "open_nodes": {"names": ["Ada"]},
    "get_nodes_by_type": {"entity_type": "person"},
    "get_recently_modified": {},
    "query_observations": {"entity_name": "Ada", "query": "engine"},
    "get_relations_between": {"entity_a": "Ada", "entity_b": "Babbage"},
    "get_neighborhood": {"name": "Ada", "depth": 2},
    "get_path": {"from_entity": "Ada", "to_entity": "Engine"},
    "get_orphans": {},
    "get_relation_gaps": {},
    "find_similar_nodes": {"min_score": 0.0},
    "search_nodes": {"query": "engine"},
    "get_consolidation_report": {},
    "get_pending_consolidation": {},
    "get_stats": {},
}


ENTITIES = [
    {
        "name": "Ada",
        "entity_type": "person",
        "observations": ["Wrote notes on the Engine", "Born in London in 1815", "Corresponded with Babbage"],
        "summary": "A mathematician.",
        "tags": ["math"],
    },
    {"name": "Babbage", "entity_type": "person", "observations": ["Designed the engine", "Knew Ada and Loner"]},
    {"name": "Engine", "entity_type": "machine", "observations": ["An engine of brass"]},
    {"name": "Loner", "entity_type": "person"},
]


RELATIONS = [
    {"from_entity": "Ada", "to_entity": "Babbage", "relation_type": "knew"},
    {"from_entity": "Babbage", "to_entity": "Engine", "relation_type": "built"},
]


def entity(path: str, *facts: str, workspace: str = "w", ordinals: tuple[int, ...] = ()) -> Document:
    """Return the note of a node with these observations."""
    name = path.rpartition("/")[2].removesuffix(".md")
    numbers = ordinals or tuple(range(1, len(facts) + 1))
    own = tuple(Observation(n, fact) for n, fact in zip(numbers, facts, strict=True))
    node = Node(name, "person", own, (Statement("knows", "Charles"),), max(numbers, default=0), False, None, None)
    text = "\n".join(f"- {fact} ^o{n}" for n, fact in zip(numbers, facts, strict=True))
    return note(path, text, workspace=workspace, type="entity", node=node)
