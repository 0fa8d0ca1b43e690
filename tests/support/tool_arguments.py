"""Valid arguments for each tool, for tests of access rights that ignore the result."""

from __future__ import annotations

from typing import Any, Final

PAIR: Final = {"from_entity": "x", "to_entity": "y"}
ENDS: Final = {"sourceMemoId": "x", "targetMemoId": "y", "tag": "z"}
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "capture_thought": {"content": "x"},
    "semantic_search": {"query": "x"},
    "propose_change": {"path": "x.md", "text": "y", "reason": "z"},
    "list_recent": {},
    "memory.save": {"content": "x"},
    "memory.search": {"query": "x"},
    "memory.delete": {"memo_id": "x"},
    "memory.relation.save": ENDS,
    "memory.relation.delete": ENDS,
    "memory.relation.list": {},
    "memory.relation.graph": {"startMemoId": "x"},
    "create_entities": {"entities": [{"name": "x", "entity_type": "y"}]},
    "delete_entities": {"entity_names": ["x"]},
    "open_nodes": {"names": ["x"]},
    "get_nodes_by_type": {"entity_type": "x"},
    "set_summary": {"name": "x", "summary": "y"},
    "set_tags": {"name": "x", "tags": ["y"]},
    "add_observations": {"observations": [{"entity_name": "x", "contents": ["y"]}]},
    "replace_observation": {"entity_name": "x", "ordinal": 1, "new_content": "y"},
    "delete_observations": {"deletions": [{"entity_name": "x", "ordinals": [1]}]},
    "query_observations": {"entity_name": "x", "query": "y"},
    "create_relations": {"relations": [PAIR | {"relation_type": "z"}]},
    "delete_relations": {"relations": [PAIR | {"relation_type": "z"}]},
    "update_relation_type": PAIR | {"old_type": "a", "new_type": "b"},
    "get_relations_between": {"entity_a": "x", "entity_b": "y"},
    "get_neighborhood": {"name": "x"},
    "get_path": PAIR,
    "search_nodes": {"query": "x"},
    "get_recently_modified": {},
    "get_orphans": {},
    "get_relation_gaps": {},
    "find_similar_nodes": {},
    "get_consolidation_report": {},
    "get_pending_consolidation": {},
    "get_stats": {},
    "kb_search": {"query": "x"},
    "kb_addnote": {"text": "x"},
    "kb_upload_start": {"filename": "x.md", "total_size": 1},
    "kb_upload_chunk": {"upload_id": "x", "data": "eA==", "chunk_index": 0},
    "kb_upload_finish": {"upload_id": "x"},
    "kb_update_note": {"id": "x", "text": "y"},
    "kb_status": {},
    "kb_jobs": {},
}
