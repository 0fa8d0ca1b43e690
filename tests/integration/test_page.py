"""The page of a running daemon: it opens, shows what happens live, outlives the daemon, and ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from syncd.cli.page.process import FOLDER, stop_page
from tests.support.daemon_process import Failed
from tests.support.page_browser import Browser, PagedMemex, events, paged_daemon
from tests.support.paths import DAEMON_PYTHON, ROOT
from tests.support.until import until

# What the page must not import: it holds no store, no model and nothing of the server for agents.
FOREIGN = ("lancedb", "numpy", "pyarrow", "onnxruntime", "mcp", "mcp_server", "sqlite3", "watchdog", "git", "apscheduler", "pydantic",
           "syncd.owner", "syncd.app", "syncd.workspaces", "syncd.captures", "index.storage", "index.catalog", "index.scope", "httpx2")  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory, models):
    with paged_daemon(tmp_path_factory.mktemp("page"), models) as running:
        yield running


@pytest.fixture
def memex(running):
    """A daemon that runs, and no page."""
    if running.process is None:
        running.serve()
    yield running
    stop_page(running.state)


@pytest.fixture
def alone(tmp_path):
    """A Memex without a daemon and without a page."""
    memex = PagedMemex(tmp_path)
    memex.run("init", "--yes", "--no-welcome")
    yield memex
    stop_page(memex.state)


def listening(browser):
    """A list that grows by the page's events."""
    heard = []

    def listen():
        heard.extend(events(browser))

    threading.Thread(target=listen, daemon=True).start()
    return heard


@pytest.mark.slow
def test_one_page_serves_every_link_until_it_is_stopped(memex):
    with ThreadPoolExecutor() as pool:
        links = list(pool.map(lambda _: memex.link(), range(3)))
    assert len({link["pid"] for link in links}) == 1
    assert len({link["url"] for link in links}) == 3
    browsers = [Browser(link["url"]) for link in links]
    assert [browser.get("/").status_code for browser in browsers] == [200] * 3
    sessions = memex.json("open", "--sessions")
    assert len(sessions) == 3
    memex.run("open", "--revoke", sessions[0]["id"])
    assert sorted(browser.get("/").status_code for browser in browsers) == [200, 200, 401]
    assert memex.json("open", "--stop") == {"stopped": True, "pid": links[0]["pid"]}
    assert memex.json("open", "--stop") == {"stopped": False, "pid": None}
    assert memex.json("open", "--sessions") == []


def test_a_capture_reaches_an_open_page_and_the_day_of_its_agent(memex):
    browser = memex.browser()
    heard = listening(browser)
    until(lambda: heard)
    assert heard[-1]["answers"]
    known = heard[-1]["stamp"]
    memex.capture("The filter is due in May.")
    until(lambda: heard[-1]["stamp"] != known)
    text = browser.text("/")
    assert "Captures/default/" in text
    assert "created" in text


def is_over(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return False
    return True


@pytest.mark.slow
def test_stop_ends_the_page_too_with_and_without_a_daemon(memex):
    for runs in (True, False):
        pid = memex.link()["pid"]
        answer = memex.json("stop")
        assert (answer["stopped"], answer["page"]) == (runs, pid)
        memex.process = None
        until(partial(is_over, pid))  # its parent, which is no longer `memex open`, reaps it


@pytest.mark.slow
def test_the_page_ends_when_its_state_folder_is_gone(memex):
    pid = memex.link()["pid"]
    shutil.rmtree(memex.state / FOLDER)
    until(partial(is_over, pid))


@pytest.mark.slow
def test_the_page_outlives_a_killed_daemon_and_continues_with_the_next(memex):
    browser = memex.browser()
    heard = listening(browser)
    until(lambda: heard)
    memex.stop(signal.SIGKILL)
    until(lambda: not heard[-1]["answers"])
    gone = browser.get("/")
    assert gone.status_code == 503
    assert "memex serve" in gone.text
    assert 'data-waits=""' in gone.text
    answer = browser.post("/reports/scan")
    assert answer.status_code == 503
    assert 'data-waits="/reports"' in answer.text
    memex.serve()
    until(lambda: heard[-1]["answers"])
    assert browser.get("/").status_code == 200


@pytest.mark.slow
def test_without_an_open_page_nobody_asks_the_daemon(memex):
    browser = memex.browser()
    browser.text("/")
    path = memex.state / "control.sock"
    memex.stop()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(1.5)
        with pytest.raises(TimeoutError):
            listener.accept()
    path.unlink()


def test_the_page_starts_while_no_daemon_runs(alone):
    assert alone.browser().get("/").status_code == 503


def test_a_revoked_session_ends_its_stream(memex):
    browser = memex.browser()
    began, ended = threading.Event(), threading.Event()

    def listen():
        for _ in events(browser):
            began.set()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    assert began.wait(30)
    memex.run("open", "--revoke", memex.json("open", "--sessions")[0]["id"])
    assert ended.wait(30)


@pytest.mark.slow
def test_a_question_for_the_headers_of_the_events_ends(memex):
    client = memex.browser().client
    assert client.head("/events").headers["content-type"].startswith("text/event-stream")
    assert client.get("/", timeout=20).status_code == 200  # over the same connection


@pytest.mark.slow
def test_a_wrong_method_is_refused_with_those_that_are_served(memex):
    browser = memex.browser()
    headers = {"origin": browser.page, "sec-fetch-site": "same-origin"}
    for path, served in (
        ("/", "GET, HEAD"),
        ("/events", "GET, HEAD"),
        ("/static/style.css", "GET, HEAD"),
        ("/review/promote", "POST"),
        ("/clients/shares/add", "GET, HEAD, POST"),
    ):
        answer = browser.client.put(path, headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, served), path


def test_a_port_that_is_taken_is_named_with_the_setting(memex):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        environ = memex.environ | {"MEMEX_PAGE__PORT": str(port)}
        command = [DAEMON_PYTHON, "-m", "syncd.cli", "open", "--no-browser", "--state", memex.state]
        done = subprocess.run(command, env=environ, cwd=memex.home, capture_output=True, text=True, check=False)
    assert done.returncode == 7
    assert f"127.0.0.1:{port} is taken by another process" in done.stderr
    assert "page.port" in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("open", "nothing", "--no-browser"), "no view 'nothing'"),
        (("open", "--revoke", "abc"), "no page runs"),
        (("open", "home", "--sessions"), "give only one of"),
    ],
)
def test_a_mistake_is_named(memex, words, text):
    with pytest.raises(Failed) as failed:
        memex.run(*words)
    assert text in failed.value.err


def test_the_page_ends_when_nobody_uses_it(memex, tmp_path):
    code = """
import os, sys
from syncd.page.server import serve
from syncd.settings.settings import load
serve(load({'state': sys.argv[1]}, os.environ), command=['memex'], on_bound=print, idle_s=0.3)
"""
    command = [DAEMON_PYTHON, "-c", code, str(memex.state)]
    done = subprocess.run(
        command, env=memex.environ, cwd=memex.home, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("http://127.0.0.1:")


@pytest.mark.slow
def test_a_page_of_another_version_is_replaced(memex):
    first = memex.link()
    folder = memex.folder / "newer"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import syncd.version\nsyncd.version.installed = lambda: '9.9'\n")
    environ = memex.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [DAEMON_PYTHON, "-m", "syncd.cli", "open", "--no-browser", "--json", "--state", memex.state]
    done = subprocess.run(command, env=environ, cwd=memex.home, capture_output=True, text=True, check=True)
    second = json.loads(done.stdout)
    assert second["version"] == "9.9"
    assert second["pid"] != first["pid"]


@pytest.mark.slow
def test_the_page_imports_no_store_no_model_and_no_server_for_agents():
    code = "import sys, syncd.page.server; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert [name for name in loaded if any(name == other or name.startswith(f"{other}.") for other in FOREIGN)] == []


def test_the_command_line_does_not_import_the_page():
    code = "import sys, syncd.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not [name for name in loaded if name.startswith(("syncd.page", "starlette", "jinja2", "uvicorn"))]


def test_templates_and_static_files_are_package_data():
    folder = Path(ROOT / "syncd/page")
    kept = {file.suffix for part in ("templates", "static") for file in (folder / part).rglob("*.*")}
    assert kept == {".html", ".css", ".js", ".svg", ".txt"}
