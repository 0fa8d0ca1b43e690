"""The answer schemas of the graph and memory tools, as their seeds define them, written independently of the tools' own schemas.

An answer may have more fields. It must not lack a field or give a field another type."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
YES: Final[Schema] = {"type": "boolean"}
WHEN: Final[Schema] = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}
OPEN: Final[Schema] = {"type": "object"}


def some(schema: Schema) -> Schema:
    """`schema`, or nothing."""
    return schema | {"type": [schema["type"], "null"]}


def many(schema: Schema) -> Schema:
    """Return a list."""
    return {"type": "array", "items": schema}


def of(**fields: Schema) -> Schema:
    """Return an object with at least these fields; `from_` stands for `from`."""
    named = {name.removesuffix("_"): schema for name, schema in fields.items()}
    return {"type": "object", "properties": named, "required": list(named)}


def results(**fields: Schema) -> Schema:
    """Return the object in which MCP wraps a seed's bare list."""
    return of(results=many(of(**fields)))


TEXTS: Final = many(TEXT)
WHOLES: Final = many(WHOLE)
EDGE: Final = of(from_=TEXT, to=TEXT, relation_type=TEXT)
FACT: Final = of(ordinal=WHOLE, content=TEXT)

GRAPH: Final[dict[str, Schema]] = {
    "create_entities": results(name=TEXT, entity_type=TEXT, created_at=WHEN),
    "delete_entities": of(deleted=TEXTS, not_found=TEXTS),
    "open_nodes": of(
        entities=many(
            of(
                path=TEXT,
                name=TEXT,
                entity_type=TEXT,
                summary=some(TEXT),
                tags=TEXTS,
                observations=many(FACT),
                created_at=WHEN,
                updated_at=WHEN,
            )
        ),
        relations=many(EDGE),
        not_found=TEXTS,
    ),
    "get_nodes_by_type": results(name=TEXT, entity_type=TEXT, summary=some(TEXT), tags=TEXTS, updated_at=WHEN),
    "get_recently_modified": results(name=TEXT, entity_type=TEXT, summary=some(TEXT), updated_at=WHEN),
    "set_summary": of(name=TEXT, summary=TEXT, updated_at=WHEN),
    "set_tags": of(name=TEXT, tags=TEXTS),
    "add_observations": results(entity_name=TEXT, added=many(FACT), not_found=YES),
    "replace_observation": of(entity_name=TEXT, ordinal=WHOLE, old_content=TEXT, new_content=TEXT),
    "delete_observations": results(entity_name=TEXT, deleted_ordinals=WHOLES, not_found_ordinals=WHOLES),
    "query_observations": results(ordinal=WHOLE, content=TEXT, score=NUMBER),
    "create_relations": of(created=many(EDGE), already_existed=many(EDGE), not_found=TEXTS),
    "delete_relations": of(deleted=WHOLE, not_found=WHOLE),
    "update_relation_type": of(from_entity=TEXT, to_entity=TEXT, old_type=TEXT, new_type=TEXT),
    "get_relations_between": results(from_=TEXT, to=TEXT, relation_type=TEXT),
    "get_neighborhood": of(
        nodes=many(of(name=TEXT, entity_type=TEXT, summary=some(TEXT), tags=TEXTS)), relations=many(EDGE)
    ),
    "get_path": of(found=YES, path=TEXTS, relations=many(EDGE)),
    "get_orphans": results(name=TEXT, entity_type=TEXT, summary=some(TEXT), updated_at=WHEN),
    "get_relation_gaps": results(node=TEXT, referenced_name=TEXT, reference_count=WHOLE),
    "find_similar_nodes": results(node_a=TEXT, node_b=TEXT, similarity=NUMBER, node_a_type=TEXT, node_b_type=TEXT),
    "search_nodes": results(
        path=TEXT,
        name=TEXT,
        entity_type=TEXT,
        summary=some(TEXT),
        matched_observation=TEXT,
        matched_perspective=some(TEXT),
        score=NUMBER,
    ),
    "get_consolidation_report": of(
        stale_summaries=many(
            of(name=TEXT, entity_type=TEXT, last_modified=WHEN, observation_count=WHOLE, draft_summary=some(TEXT))
        ),
        relation_candidates=many(of(node_a=TEXT, node_b=TEXT, similarity_score=NUMBER, rationale=some(TEXT))),
        orphaned_nodes=many(of(name=TEXT, entity_type=TEXT, updated_at=WHEN)),
        cluster_summary=many(of(cluster_id=WHOLE, node_names=TEXTS, centroid_label=some(TEXT))),
        event_summary=of(since=WHEN, creates=WHOLE, updates=WHOLE, deletes=WHOLE),
    ),
    "get_pending_consolidation": results(
        name=TEXT,
        entity_type=TEXT,
        observation_count=WHOLE,
        last_observation_at=some(WHEN),
        summary_updated_at=some(WHEN),
    ),
    "get_stats": of(
        node_count=WHOLE, observation_count=WHOLE, relation_count=WHOLE, embedding_coverage=NUMBER, workspace=TEXT
    ),
}

RELATION: Final = of(
    namespace=TEXT,
    sourceMemoId=TEXT,
    targetMemoId=TEXT,
    tag=TEXT,
    weight=some(NUMBER),
    reason=some(TEXT),
    created_at=WHEN,
    updated_at=WHEN,
    version=WHOLE,
)
MEMO: Final = of(memo_id=TEXT, path=TEXT)

MEMORY: Final[dict[str, Schema]] = {
    "memory.save": of(
        memo_id=TEXT, path=TEXT, namespace=TEXT, metadata=OPEN, created_at=WHEN, updated_at=WHEN, version=WHOLE
    ),
    "memory.search": of(
        items=many(
            of(
                memo_id=TEXT,
                path=TEXT,
                content=TEXT,
                score=some(NUMBER),
                metadata=OPEN,
                created_at=WHEN,
                updated_at=WHEN,
            )
        )
    ),
    "memory.delete": of(memo_id=TEXT, deleted=YES),
    "memory.relation.save": RELATION,
    "memory.relation.delete": of(deleted=YES, relation=RELATION),
    "memory.relation.list": of(edges=many(RELATION), nodes=many(MEMO)),
    "memory.relation.graph": of(
        edges=many(of(sourceMemoId=TEXT, targetMemoId=TEXT, tag=TEXT, depth=WHOLE, direction=TEXT, path=TEXTS)),
        nodes=many(MEMO),
    ),
}

JOB_STATUS: Final[Schema] = {"type": "string", "enum": ["queued", "running", "done", "failed"]}
QUEUED: Final = of(job_id=TEXT, status=JOB_STATUS)
DOCUMENT: Final[dict[str, Schema]] = {
    "document_id": TEXT,
    "title": TEXT,
    "source_path": TEXT,
    "doc_type": TEXT,
    "collection": TEXT,
    "tags": TEXTS,
    "created_at": WHEN,
    "updated_at": some(WHEN),
}
CHANGED: Final = of(**DOCUMENT, changed=YES, version=WHOLE)
JOB: Final = of(
    job_id=TEXT,
    kind=TEXT,
    status=JOB_STATUS,
    progress=NUMBER,
    document_id=some(TEXT),
    error=some(OPEN),
    created_at=WHEN,
    finished_at=some(WHEN),
)

KB: Final[dict[str, Schema]] = {
    "kb_search": of(
        results=many(of(**DOCUMENT, chunk_id=TEXT, snippet=TEXT, heading=TEXT, score=NUMBER)), degraded=TEXTS
    ),
    "kb_addnote": QUEUED,
    "kb_upload_start": of(upload_id=TEXT),
    "kb_upload_chunk": of(upload_id=TEXT, received_bytes=WHOLE),
    "kb_upload_finish": QUEUED,
    "kb_update_note": CHANGED,
    "kb_get": of(
        **DOCUMENT,
        content=TEXT,
        start_line=WHOLE,
        end_line=WHOLE,
        total_lines=WHOLE,
        next_line=some(WHOLE),
        outline=many(of(line=WHOLE, heading=TEXT)),
    ),
    "kb_status": of(
        index=OPEN,
        documents=of(total=WHOLE, by_type=OPEN, by_collection=OPEN),
        chunks=WHOLE,
        model=of(name=TEXT, dimensions=WHOLE),
        queue=OPEN,
        degraded=TEXTS,
    ),
    "kb_jobs": of(jobs=many(JOB), next_cursor=some(TEXT)),
}
KB_REST: Final[dict[str, Schema]] = {  # what REST has beside them
    "list_documents": of(documents=many(of(**DOCUMENT)), next_cursor=some(TEXT)),
    "get_document": KB["kb_get"],
    "list_jobs": KB["kb_jobs"],
    "get_job": JOB,
    "set_document_tags": CHANGED,
}

SHAPES: Final[dict[str, Schema]] = GRAPH | MEMORY | KB


def differences(seed: Schema, tool: Schema, where: str = "") -> list[str]:
    """Return the places where a tool's output schema allows more than its seed, or lacks a part of it."""
    if "anyOf" in tool:
        return [found for choice in tool["anyOf"] for found in differences(seed, choice, where)]
    allowed, kind = seed["type"], tool.get("type")
    allowed = allowed if isinstance(allowed, list) else [allowed]
    kinds = kind if isinstance(kind, list) else [kind]
    if not {"number" if one == "integer" and "number" in allowed else one for one in kinds} <= set(allowed):
        return [f"{where or 'the answer'} may be {kind}, not {allowed}"]
    found = []
    if "object" in kinds:
        for name, schema in seed.get("properties", {}).items():
            inner = f"{where}.{name}".lstrip(".")
            if name not in tool.get("properties", {}) or name not in tool.get("required", ()):
                found.append(f"{inner} is missing, or may be")
            else:
                found += differences(schema, tool["properties"][name], inner)
    if "array" in kinds:
        found += differences(seed["items"], tool["items"], f"{where}[]")
    return found
