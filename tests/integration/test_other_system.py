"""A daemon without what only Linux has, as on macOS: what the modules do without it is enough to capture, find, import and stop."""

from __future__ import annotations

import signal

import pytest

from tests.support.daemon_process import ChangedPython, Failed
from tests.support.paths import FILES

pytestmark = pytest.mark.slow

# Python's own library and others have looked at the system before it is changed under them; the reader of files is left alone.
CHANGED = """
import sys
if "syncd.cli" in sys.orig_argv:
    import asyncio, ctypes.util, fcntl, multiprocessing, os, select, socket, subprocess, tempfile
    import git, lancedb, mcp, numpy, onnxruntime, pyarrow, uvicorn, watchdog.observers
    gone = {
        os: "memfd_create pidfd_open sched_getaffinity listxattr getxattr setxattr O_PATH MFD_CLOEXEC MFD_ALLOW_SEALING".split(),
        socket: ["SO_PEERCRED"],
        fcntl: [name for name in dir(fcntl) if "SEAL" in name],
    }
    for module, names in gone.items():
        for name in names:
            vars(module).pop(name, None)
    sys.platform = "darwin"
"""


class OtherSystem(ChangedPython):
    """Memex where Python says that this is macOS."""

    at_start = CHANGED


def test_a_daemon_does_without_what_only_linux_has(tmp_path):
    memex = OtherSystem(tmp_path)
    memex.write("Kitchen.md", "# Kitchen\n\nThe oven reaches 250 degrees.")
    memex.run("init", str(memex.vault))
    memex.serve()
    try:
        memex.capture("Bread is baked at night.")
        assert memex.found("when do we bake")[0] == "Captures/default/Bread is baked at night.md"
        memex.write("Copper.md", "Copper pots need polish.")
        memex.until(lambda: "Copper.md" in memex.found("copper"))
        page = tmp_path / "pots.html"
        page.write_text("<h1>Pots</h1><p>Clay lasts longer.</p>")
        memex.run("addfile", str(page))
        assert "Captures/default/Files/pots.html.md" in memex.found("clay")
        with pytest.raises(Failed, match="macOS has neither Landlock nor seccomp"):
            memex.run("addfile", str(FILES / "report.pdf"))
    finally:
        code, _ = memex.stop(signal.SIGTERM)
    assert code == 0, memex.said
