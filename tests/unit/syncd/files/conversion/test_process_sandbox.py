"""What a process gives up is gone, as far as the system can see to it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these are means of Linux")


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    head = "import os, sys, socket\nfrom syncd.files.conversion.process_sandbox import isolate, restrict_calls, restrict_files, set_limits\n"
    return subprocess.run(
        [sys.executable, "-c", head + code, *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_nothing_can_be_written_and_memory_ends(tmp_path):
    done = run(
        "set_limits(seconds=20, memory=400 << 20)\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "try:\n    open(sys.argv[1], 'wb', 0).write(b'x')\nexcept OSError as error:\n    print(error.strerror)\n"
        "try:\n    bytearray(500 << 20)\nexcept MemoryError:\n    print('no memory')\n",
        str(tmp_path / "x"),
    )
    assert done.stdout == "File too large\nno memory\n"
    assert (tmp_path / "x").read_bytes() == b""


@pytest.mark.slow
def test_time_ends():
    assert run("set_limits(seconds=1, memory=1 << 30)\nwhile True: pass").returncode == -24


def test_a_sealed_process_reads_what_it_needs_and_nothing_else(tmp_path):
    (tmp_path / "secret").write_text("of the host")
    done = run(
        "if not restrict_files({sys.prefix, sys.base_prefix, *sys.path}):\n    print('unavailable'); sys.exit()\n"
        "import colorsys, encodings.cp037\n"
        "for path in (sys.argv[1], '/etc/passwd'):\n"
        "    try:\n        open(path).read()\n    except PermissionError:\n        print('refused')\n"
        "try:\n    open(sys.argv[1] + '2', 'w')\nexcept PermissionError:\n    print('refused')\n",
        str(tmp_path / "secret"),
    )
    if done.stdout == "unavailable\n":
        pytest.skip("this kernel has no Landlock")
    assert done.stdout == "refused\n" * 3, done.stderr


def test_landlock_alone_refuses_all_that_its_version_can(tmp_path):
    (tmp_path / "note").write_text("of the host")
    done = run(
        "import os, signal\nserver = socket.create_server(('127.0.0.1', 0))\nport = server.getsockname()[1]\n"
        "version = restrict_files({sys.prefix, sys.base_prefix, *sys.path})\nprint(version)\n"
        "def attempt(act):\n"
        "    try:\n        act()\n        print('done')\n"
        "    except PermissionError:\n        print('refused')\n"
        "attempt(lambda: os.truncate(sys.argv[1], 0))\n"
        "attempt(lambda: socket.create_connection(('127.0.0.1', port), 2))\n"
        "attempt(lambda: os.kill(os.getppid(), 0))\n",
        str(tmp_path / "note"),
    )
    version, *came = done.stdout.split()
    if int(version) < 6:
        pytest.skip("this kernel's Landlock is older")
    assert came == ["refused"] * 3, done.stderr
    assert (tmp_path / "note").read_text() == "of the host"


def test_without_a_filter_no_restriction_of_calls_is_reported():
    assert run("print(restrict_calls(None), restrict_calls(b'no program'))").stdout == "False False\n"


def test_a_process_alone_has_no_network(tmp_path):
    if subprocess.run(["unshare", "-Un", "true"], check=False, capture_output=True).returncode:
        pytest.skip("user namespaces are refused here")
    done = run(
        "server = socket.create_server(('127.0.0.1', 0))\nport = server.getsockname()[1]\nassert isolate(os.getppid())\n"
        "try:\n    socket.create_connection(('127.0.0.1', port), 2)\nexcept OSError as error:\n    print('no network')\n"
    )
    assert done.stdout == "no network\n", done.stderr


def test_a_process_whose_parent_is_gone_ends_at_once():
    assert run("isolate(1 << 22)\nprint('alive')").returncode == -9
