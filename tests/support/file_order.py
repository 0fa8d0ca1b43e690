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
    "integration/test_page": 49,
    "contract/test_access_matrix": 39,
    "integration/test_sync_pipeline": 39,
    "unit/syncd/cli/daemon/test_status": 29,
    "contract/test_thoughts_contract": 26,
    "contract/test_graph_contract": 25,
    "contract/test_subscriptions": 23,
    "unit/syncd/history/test_audit_log_tools": 22,
    "integration/test_page_review": 20,
    "unit/syncd/files/conversion/test_converter": 19,
    "faults/test_lost_events": 18,
    "contract/test_agent_boundary": 17,
    "contract/test_guard": 17,
    "unit/mcp_server/test_stdio_bridge": 17,
    "contract/test_memory_contract": 16,
    "integration/test_page_reports": 15,
    "integration/test_daemon": 15,
    "unit/mcp_server/guard/test_cloudflare_access": 15,
    "contract/test_kb_contract": 15,
    "contract/test_delete_after_edit": 14,
    "contract/test_authorisation": 14,
    "faults/test_faults": 13,
    "unit/syncd/promotion/test_manual_moves": 13,
    "unit/syncd/notes/test_markdown_outline": 13,
    "unit/syncd/graph/test_nodes": 13,
    "unit/syncd/files/test_uploaded_files": 13,
    "integration/test_old_state": 13,
    "contract/test_graph_over_http": 12,
    "unit/syncd/remote/test_branch_sync_conflicts": 12,
    "unit/syncd/graph/test_nodes_failures": 12,
    "unit/syncd/cli/notes/test_review": 12,
    "integration/test_page_clients": 12,
    "contract/test_instruction_names": 12,
    "unit/syncd/vault/test_atomic_write": 11,
    "unit/syncd/sync/test_hand_edits": 11,
    "unit/syncd/promotion/test_promotions_taken_names": 11,
    "unit/syncd/promotion/test_promotions_commits": 11,
    "unit/index/observations/test_observation_rows": 11,
    "integration/test_git_daemon": 11,
    "contract/test_proposed_changes": 11,
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
