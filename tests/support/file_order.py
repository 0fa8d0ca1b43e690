"""The order in which files of tests are handed out: the long ones first, so that no worker is left with one in the end."""

from __future__ import annotations

from pathlib import Path

# Seconds of the files that take longest; what is not named here takes less and comes after them.
SECONDS = {
    "test_deaf": 140,
    "test_rim_doors": 85,
    "test_pipe": 72,
    "test_doctor": 60,
    "test_daemon": 60,
    "test_graph_contract": 48,
    "test_drain": 40,
    "test_cli_status": 40,
    "test_rim_updates": 40,
    "test_git_daemon": 33,
    "test_memory_contract": 31,
    "test_backup": 30,
    "test_audit": 29,
    "test_graph_machine": 24,
    "test_faults": 24,
    "test_edits": 22,
    "test_rim_guard": 20,
    "test_exchange": 20,
    "test_remote": 20,
    "test_parse": 19,
    "test_nodes": 18,
    "test_machine": 18,
    "test_rim_boundary": 17,
    "test_graph_names": 17,
    "test_real_vaults": 17,
    "test_files_served": 16,
    "test_model_change": 16,
    "test_entity": 15,
    "test_store": 15,
    "test_graph_tools": 15,
    "test_ears": 14,
    "test_graph_parallel": 13,
    "test_memos": 13,
    "test_jobs": 12,
    "test_dragged": 12,
    "test_encoders_bundled": 12,
    "test_promote": 12,
    "test_laws": 12,
    "test_durable": 11,
    "test_kb_contract": 11,
}


def place(file: Path) -> tuple[int, str]:
    """What files of tests are sorted by."""
    return -SECONDS.get(file.stem, 0), str(file)
