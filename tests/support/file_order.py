"""The order in which files of tests are handed out: the long ones first, so that no worker is left with one in the end."""

from __future__ import annotations

from pathlib import Path

# Seconds of the files that take longest; what is not named here takes less and comes after them.
SECONDS = {
    "faults/test_lost_events": 140,
    "contract/test_access_matrix": 85,
    "integration/test_sync_pipeline": 72,
    "integration/test_daemon": 60,
    "contract/test_graph_contract": 48,
    "integration/test_graceful_stop": 40,
    "unit/syncd/cli/daemon/test_status": 40,
    "contract/test_subscriptions": 40,
    "integration/test_git_daemon": 33,
    "contract/test_memory_contract": 31,
    "unit/syncd/cli/doctor/test_doctor": 30,
    "unit/syncd/installation/test_backup": 28,
    "property/test_graph_machine": 24,
    "faults/test_faults": 24,
    "unit/syncd/history/test_audit_log_tools": 23,
    "contract/test_guard": 20,
    "unit/syncd/graph/test_memory_json": 20,
    "property/test_index_machine": 18,
    "unit/syncd/documents/test_parser": 17,
    "contract/test_agent_boundary": 17,
    "property/test_graph_names": 17,
    "integration/test_real_vaults": 17,
    "integration/test_files_served": 16,
    "integration/test_model_change": 16,
    "contract/test_graph_over_http": 15,
    "unit/syncd/watch/test_folder_events": 14,
    "unit/syncd/cli/doctor/test_state_checks": 14,
    "unit/syncd/graph/test_nodes": 13,
    "integration/test_graph_parallel": 13,
    "unit/syncd/jobs/test_scheduler": 12,
    "unit/syncd/promotion/test_manual_moves": 12,
    "unit/index/encoders/test_bundled_model": 12,
    "property/test_laws": 12,
    "unit/syncd/documents/test_entity_edits": 11,
    "unit/syncd/vault/test_atomic_write": 11,
    "contract/test_kb_contract": 11,
}


def place(file: Path) -> tuple[int, str]:
    """What files of tests are sorted by."""
    name = file.with_suffix("").as_posix().rpartition("/tests/")[2].removeprefix("tests/")
    return -SECONDS.get(name, 0), name
