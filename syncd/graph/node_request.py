"""Check a request for new nodes: their names, properties and observations.

Law: no text from an agent can choose a folder, or set a property other than those named here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from index.errors import InvalidArgument
from index.graph.vertex import name_key
from syncd.documents.entity_node import checked_content, checked_kind, checked_name
from syncd.notes.front_matter import PropertyValue
from syncd.notes.tag_names import check_tags
from syncd.notes.timestamps import iso
from syncd.vault.path_rules import is_utf8

FACTS: Final = 1_000  # most observations in one call
SUMMARY: Final = 2_000  # most characters of a summary that an agent writes


@dataclass(frozen=True, slots=True)
class NewNode:
    """Describes a node to create."""

    name: str
    entity_type: str | None  # None = no type, as in notes that people write without one
    observations: Sequence[str] = ()
    summary: str | None = None
    tags: Sequence[str] = ()
    ordinals: Sequence[int] = ()  # of the observations, increasing; () = from 1
    # Added to a node's standard properties, or replacing them.
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)


def check_nodes(nodes: Sequence[NewNode], most: int = FACTS, longest: int = SUMMARY) -> list[NewNode]:
    """Check and normalize nodes to create, with at most `most` observations in all, and summaries of at most `longest` characters.

    Raises InvalidArgument."""
    wanted = [
        replace(
            node,
            name=checked_name(node.name),
            entity_type=None if node.entity_type is None else checked_kind(node.entity_type),
            observations=tuple(map(checked_content, node.observations)),
            summary=None if node.summary is None else check_summary(node.summary, longest),
            tags=check_tags(node.tags),
        )
        for node in nodes
    ]
    named = Counter(name_key(node.name) for node in wanted)
    if twice := [node.name for node in wanted if named[name_key(node.name)] > 1]:
        raise InvalidArgument(f"named more than once: {', '.join(map(repr, twice))}", names=twice)
    check_observation_count((len(node.observations) for node in wanted), most)
    return wanted


def check_observation_count(counts: Iterable[int], most: int = FACTS) -> None:
    """Raise InvalidArgument when a call writes too many observations."""
    if (asked := sum(counts)) > most:
        raise InvalidArgument(f"{asked:,} observations in one call; send at most {most:,}", limit=most)


def check_summary(summary: str, longest: int = SUMMARY) -> str:
    """Check and normalize a summary of at most `longest` characters; "" = none. Raises InvalidArgument."""
    text = summary.strip()
    if len(text) > longest:
        raise InvalidArgument(f"a summary can have at most {longest:,} characters", limit=longest)
    if not is_utf8(text):
        raise InvalidArgument("the summary contains a lone surrogate, which is not valid text")
    return text


def compose_properties(node: NewNode, stem: str, *, id: str, now: int) -> dict[str, PropertyValue]:
    """Return the properties of a new node whose file has the name `stem`, in the order in which they are written."""
    properties: dict[str, PropertyValue] = {"id": id, "type": "entity"}
    if node.entity_type is not None:
        properties["entity_type"] = node.entity_type
    if stem != node.name:
        properties |= {"name": node.name, "aliases": [node.name]}
    if node.summary:
        properties["summary"] = node.summary
    if node.tags:
        properties["tags"] = list(node.tags)
    properties["created_at"] = iso(now)
    if node.summary:
        properties["summary_updated_at"] = iso(now)
    properties |= node.properties
    if stem != node.name:
        properties["aliases"] = list(dict.fromkeys([node.name, *_text_list(node.properties.get("aliases"))]))
    return properties


def _text_list(value: PropertyValue) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []
