"""Divide the test files among the workers: long files first, so that no worker is busy alone at the end."""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

# One worker runs all files of such a folder, because they share what is slow to prepare.
TOGETHER = {
    "tests/browser/": "a browser, a daemon and a page",
    "tests/project/": "the syntax trees of all modules",
    "tests/unit/index/encoders/": "torch and transformers, whose import takes seconds and a gigabyte",
}

# Seconds of the files that take longest; what is not named here takes less and comes after them.
SECONDS = {
    "integration/test_sync_pipeline": 114,
    "contract/test_access_matrix": 70,
    "contract/test_graph_contract": 41,
    "faults/test_lost_events": 37,
    "contract/test_agent_boundary": 34,
    "integration/test_page": 32,
    "contract/test_delete_after_edit": 31,
    "integration/test_daemon": 30,
    "faults/test_faults": 29,
    "contract/test_subscriptions": 28,
    "unit/syncd/cli/daemon/test_status": 27,
    "contract/test_guard": 25,
    "unit/syncd/vault/test_atomic_write": 24,
    "contract/test_thoughts_contract": 24,
    "contract/test_memory_contract": 23,
    "unit/syncd/history/test_audit_log_tools": 22,
    "unit/syncd/graph/test_nodes": 22,
    "contract/test_authorisation": 22,
    "property/test_rest_fuzz": 19,
    "property/test_graph_machine": 18,
    "unit/syncd/promotion/test_manual_moves": 18,
    "unit/syncd/sync/test_hand_edits": 18,
    "integration/test_files_served": 18,
    "contract/test_kb_contract": 18,
    "unit/index/storage/test_chunk_store": 18,
    "unit/syncd/daemon/test_health": 17,
    "unit/mcp_server/guard/test_cloudflare_access": 17,
    "property/test_laws": 17,
    "contract/test_rest": 17,
    "unit/syncd/files/conversion/test_converter": 17,
    "unit/syncd/files/test_uploaded_files": 16,
    "integration/test_old_state": 16,
    "unit/index/observations/test_observation_rows": 16,
    "integration/test_graceful_stop": 15,
    "property/test_index_machine": 15,
    "unit/syncd/watch/test_folder_events": 14,
    "unit/mcp_server/test_stdio_bridge": 14,
    "contract/test_mcp": 14,
    "unit/syncd/jobs/test_scheduler": 14,
    "integration/test_concurrent_collections": 14,
    "contract/test_graph_over_http": 14,
    "unit/syncd/cli/framework/test_completion": 13,
    "integration/test_closed_terminal": 13,
    "unit/syncd/graph/test_memory_json": 13,
    "unit/syncd/enrichment/test_backfill": 13,
    "unit/syncd/memos/test_memos_search": 13,
    "unit/index/search/test_reranker": 13,
    "unit/syncd/cli/doctor/test_state_checks": 12,
    "unit/syncd/sync/test_hand_edits_git": 12,
    "unit/index/storage/test_chunk_store_maintenance": 12,
    "integration/test_telemetry": 11,
    "unit/syncd/memos/test_memos": 11,
    "unit/syncd/captures/test_value_renewal": 11,
}


def folder_of(file: str) -> str:
    """Return the folder whose files one worker runs, or "" for a file on its own."""
    return next((folder for folder in TOGETHER if file.startswith(folder)), "")


def place(file: Path) -> tuple[int, str]:
    """Return the sort key of a test file."""
    name = file.with_suffix("").as_posix().rpartition("/tests/")[2].removeprefix("tests/")
    if folder := folder_of(f"tests/{name}"):
        return -max(SECONDS.values()), folder
    return -SECONDS.get(name, 0), name


class FileScheduling(LoadFileScheduling):  # type: ignore[misc]  # the library has no types
    """Gives each file to one worker, and the files of some folders to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return folder_of(file) or file
