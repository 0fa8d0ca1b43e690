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
    "integration/test_sync_pipeline": 25,
    "contract/test_access_matrix": 19,
    "contract/test_delete_after_edit": 15,
    "integration/test_daemon": 15,
    "contract/test_authorisation": 15,
    "contract/test_graph_contract": 14,
    "contract/test_kb_contract": 14,
    "unit/syncd/cli/notes/test_review": 13,
    "contract/test_agent_boundary": 11,
    "unit/syncd/promotion/test_promotions": 11,
    "integration/test_page_review": 11,
    "unit/syncd/history/test_audit_log_tools": 11,
    "unit/mcp_server/guard/test_cloudflare_access": 10,
    "integration/test_page": 10,
    "unit/syncd/vault/test_atomic_write": 10,
    "unit/index/storage/test_store_writer_buffer": 10,
    "unit/syncd/daemon/test_health": 10,
    "unit/syncd/promotion/test_promotions_taken_names": 10,
    "contract/test_page_access": 9,
    "property/test_rest_fuzz": 9,
    "contract/test_mcp": 9,
    "contract/test_window": 9,
    "unit/syncd/files/conversion/test_converter": 9,
    "contract/test_rest": 9,
    "unit/syncd/promotion/test_manual_moves": 9,
    "integration/test_page_clients": 9,
    "unit/syncd/history/test_change_journal": 9,
    "unit/syncd/remote/test_branch_sync_conflicts": 8,
    "unit/syncd/cli/test_main_errors": 7,
    "contract/test_memory_contract": 7,
    "unit/syncd/cli/doctor/test_doctor_index": 7,
    "contract/test_thoughts_contract": 7,
    "unit/mcp_server/test_stdio_bridge": 7,
    "contract/test_guard": 7,
    "unit/syncd/sync/test_hand_edits_git": 7,
    "unit/syncd/remote/test_branch_sync": 7,
    "contract/test_graph_over_http": 7,
    "unit/syncd/promotion/test_promotions_commits": 7,
    "integration/test_telemetry": 6,
    "unit/syncd/git/test_repository_state": 6,
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
