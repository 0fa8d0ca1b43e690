"""Divide the test files among the workers: long files first, so that no worker is busy alone at the end."""

from __future__ import annotations

from functools import cache
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
    "integration/test_sync_pipeline": 29,
    "contract/test_page_access": 25,
    "contract/test_graph_contract": 24,
    "contract/test_access_matrix": 23,
    "property/test_rest_fuzz": 22,
    "unit/syncd/vault/test_atomic_write": 21,
    "integration/test_page_graph": 21,
    "unit/syncd/history/test_audit_log_tools": 20,
    "integration/test_page_review": 19,
    "integration/test_daemon": 18,
    "integration/test_page": 18,
    "integration/test_page_jobs": 18,
    "integration/test_page_commands": 18,
    "contract/test_mcp": 17,
    "contract/test_kb_contract": 17,
    "integration/test_page_activity": 17,
    "integration/test_page_note": 17,
    "contract/test_proposed_changes": 16,
    "contract/test_memory_contract": 16,
    "contract/test_delete_after_edit": 16,
    "contract/test_authorisation": 15,
    "contract/test_window": 15,
    "integration/test_change_decisions": 15,
    "property/test_laws": 15,
    "unit/syncd/promotion/test_manual_moves": 15,
    "unit/syncd/cli/notes/test_notes": 14,
    "property/test_index_machine": 14,
    "unit/syncd/promotion/test_promotions_taken_names": 14,
    "faults/test_queue_killed": 14,
    "unit/index/storage/test_resident_rows": 13,
    "unit/syncd/cli/graph/test_graph": 13,
    "contract/test_guard": 13,
    "unit/index/search/test_hybrid_search": 13,
    "unit/syncd/cli/doctor/test_state_checks": 12,
    "unit/syncd/cli/daemon/test_audit": 12,
    "contract/test_rest": 12,
    "integration/test_degraded_modes": 12,
    "unit/syncd/graph/test_nodes": 12,
    "contract/test_agent_boundary": 12,
    "integration/test_secret_surfaces": 11,
}


def folder_of(file: str) -> str:
    """Return the folder whose files one worker runs, or "" for a file on its own."""
    return next((folder for folder in TOGETHER if file.startswith(folder)), "")


@cache
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
