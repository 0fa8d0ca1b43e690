"""The order in which files of tests are handed out: the long ones first, so that no worker is left with one in the end."""

from __future__ import annotations

from pathlib import Path

# Seconds of the files that take longest; what is not named here takes less and comes after them.
SECONDS = {
    "faults/test_lost_events": 121,
    "integration/test_graceful_stop": 72,
    "contract/test_authorisation": 40,
    "integration/test_daemon": 70,
    "integration/test_sync_pipeline": 62,
    "integration/test_closed_terminal": 50,
    "unit/syncd/files/conversion/test_converter": 40,
    "unit/syncd/history/test_audit_log_tools": 49,
    "contract/test_access_matrix": 37,
    "unit/syncd/cli/daemon/test_status": 36,
    "contract/test_agent_boundary": 33,
    "integration/test_old_state": 32,
    "contract/test_subscriptions": 30,
    "integration/test_git_daemon": 30,
    "integration/test_model_change": 24,
    "faults/test_faults": 23,
    "integration/test_real_vaults": 21,
    "project/test_architecture": 20,
    "unit/syncd/cli/doctor/test_doctor": 19,
    "contract/test_graph_contract": 18,
    "contract/test_guard": 18,
    "contract/test_thoughts_contract": 17,
    "unit/syncd/vault/test_atomic_write": 16,
    "integration/test_files_served": 16,
    "unit/syncd/documents/test_parser": 14,
    "unit/syncd/installation/test_backup": 14,
    "unit/syncd/watch/test_folder_events": 14,
    "unit/syncd/graph/test_memory_json": 13,
    "property/test_rest_fuzz": 12,
    "unit/index/storage/test_chunk_store_maintenance": 12,
    "project/test_layers": 12,
    "integration/test_concurrent_collections": 11,
    "unit/index/storage/test_chunk_store": 11,
    "contract/test_rest": 11,
    "property/test_index_machine": 11,
    "unit/syncd/jobs/test_scheduler": 11,
    "faults/test_queue_killed": 10,
    "integration/test_entity_file_names": 10,
}


def place(file: Path) -> tuple[int, str]:
    """What files of tests are sorted by."""
    name = file.with_suffix("").as_posix().rpartition("/tests/")[2].removeprefix("tests/")
    return -SECONDS.get(name, 0), name
