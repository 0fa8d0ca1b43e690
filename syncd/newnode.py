"""What is asked of the graph, checked: a node to be and its properties, and the link that leads to a node.

Law: no text that an agent gives can choose a folder, set another property than those named here, or end a link early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from index.errors import InvalidArgument
from index.vertex import Vertex, name_key
from syncd.entity import checked_content, checked_kind, checked_name, link
from syncd.note import PropertyValue
from syncd.tag_names import checked_tags
from syncd.timestamps import iso

FACTS: Final = 1_000  # observations that one call may write
SUMMARY: Final = 2_000  # characters


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node to be."""

    name: str
    entity_type: str | None  # None = it has none, like a note that a person wrote without
    observations: Sequence[str] = ()
    summary: str | None = None
    tags: Sequence[str] = ()
    ordinals: Sequence[int] = ()  # of the observations, rising; () = from 1 on
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)  # beside or in place of those a node gets


def checked(given: Sequence[NewNode], most: int = FACTS) -> list[NewNode]:
    """The nodes to be, as they will be kept, with `most` observations in all. Raises InvalidArgument."""
    wanted = [
        replace(
            one,
            name=checked_name(one.name),
            entity_type=None if one.entity_type is None else checked_kind(one.entity_type),
            observations=tuple(map(checked_content, one.observations)),
            summary=None if one.summary is None else checked_summary(one.summary),
            tags=checked_tags(one.tags),
        )
        for one in given
    ]
    named = Counter(name_key(one.name) for one in wanted)
    if twice := [one.name for one in wanted if named[name_key(one.name)] > 1]:
        raise InvalidArgument(f"named more than once: {', '.join(map(repr, twice))}", names=twice)
    bounded((len(one.observations) for one in wanted), most)
    return wanted


def bounded(counts: Iterable[int], most: int = FACTS) -> None:
    """Raises InvalidArgument when a call writes too many observations."""
    if (asked := sum(counts)) > most:
        raise InvalidArgument(f"{asked:,} observations in one call; send at most {most:,}", limit=most)


def checked_summary(summary: str) -> str:
    """A summary as it is kept; "" for none. Raises InvalidArgument."""
    text = summary.strip()
    if len(text) > SUMMARY:
        raise InvalidArgument(f"a summary has at most {SUMMARY:,} characters", limit=SUMMARY)
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InvalidArgument("the summary has a lone surrogate, which is no text")
    return text


def own_properties(one: NewNode, stem: str, *, id: str, now: int) -> dict[str, PropertyValue]:
    """The properties of a new node whose file is called `stem`, in the order in which they are written."""
    own: dict[str, PropertyValue] = {"id": id, "type": "entity"}
    if one.entity_type is not None:
        own["entity_type"] = one.entity_type
    if stem != one.name:
        own |= {"name": one.name, "aliases": [one.name]}
    if one.summary:
        own["summary"] = one.summary
    if one.tags:
        own["tags"] = list(one.tags)
    own["created_at"] = iso(now)
    if one.summary:
        own["summary_updated_at"] = iso(now)
    own |= one.properties
    if stem != one.name:
        own["aliases"] = list(dict.fromkeys([one.name, *_texts(one.properties.get("aliases"))]))
    return own


def _texts(value: PropertyValue) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []


def link_to(one: Vertex) -> str:
    """What stands between the brackets of a link to a node."""
    return link(one.path.rpartition("/")[2].removesuffix(".md"), one.name)
