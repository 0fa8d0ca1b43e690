"""What only Linux has is used in few modules, and each of them does without where it is missing, as on macOS."""

from __future__ import annotations

import re

import pytest

from tests.support.sources import sources

LINUX_ONLY = re.compile(
    r"""["'(]/(?:proc|sys)\b | os\.(?:memfd_create|pidfd_open|sched_\w+|O_PATH|O_TMPFILE|eventfd|copy_file_range|splice
    |posix_fadvise|posix_fallocate|setns|unshare|[gs]etxattr|listxattr|pipe2|fdatasync) | SO_PEERCRED | F_(?:ADD_)?SEALS? | \bprctl\b
    | libc\.(?:syscall|unshare|capset|renameat2) | malloc_trim | observers\.inotify | "\\0\{ | pyseccomp""",
    re.VERBOSE,
)

# Each module, and what it does elsewhere.
ELSEWHERE = {
    "index/encoders/onnx_session.py": "knows Apple's processors, and takes all others for slow at products in 8 bits",
    "index/foreground.py": "counts the cores of the machine",
    "index/process_memory.py": "leaves the allocator as it is, and counts no memory",
    "mcp_server/http/metrics_page.py": "counts the age of the process from the load of the module",
    "syncd/cli/daemon/serve.py": "waits for a daemon by its lock",
    "syncd/cli/doctor/host_checks.py": "has nothing to check",
    "syncd/daemon/control_socket.py": "binds by a link, and leaves who may connect to the socket's mode",
    "syncd/files/conversion/converter.py": "copies into a file without a name, and knows no size of the child",
    "syncd/files/conversion/process_sandbox.py": "says that nothing is enforced; PDF and Office files are then refused",
    "syncd/files/conversion/syscall_filter.py": "makes no filter",
    "syncd/git/child_process.py": "looks for the end of a process up to 50 ms late",
    "syncd/git/stale_locks.py": "takes every lock for held",
    "syncd/state/process_lock.py": "believes the number in the lock",
    "syncd/state/vault_claim.py": "claims by a lock on the folder",
    "syncd/vault/openat.py": "opens folder by folder, renames by a link, and copies no extended attributes",
    "syncd/watch/folder_events.py": "lets watchdog choose what it hears by",
    "syncd/watch/network_mounts.py": "knows no kind of file system",
    "syncd/watch/watcher.py": "gives no advice about limits",
}


def linux_only(text: str) -> bool:
    """Whether a line that is no comment uses what only Linux has."""
    return any(LINUX_ONLY.search(line) for line in text.splitlines() if not line.lstrip().startswith("#"))


def test_only_modules_that_do_without_use_what_linux_alone_has():
    assert {source.path for source in sources() if linux_only(source.text)} == ELSEWHERE.keys()


@pytest.mark.parametrize(
    "line", ['Path("/proc/self/status")', "os.pidfd_open(1)", 'claim.bind(f"\\0{name}")', "libc.prctl(1)"]
)
def test_a_line_for_linux_alone_is_noticed(line):
    assert linux_only(f"import os\n{line}\n")
    assert not linux_only(f"# {line}\n")
