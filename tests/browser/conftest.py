"""Fixtures of the tests in a real browser: one Chromium, and one daemon that most tests share, in any order."""

from __future__ import annotations

import contextlib
import shutil

import pytest

from tests.support.chromium import chromium, missing
from tests.support.daemon_process import Memex
from tests.support.page_browser import paged_daemon
from tests.support.page_history import write_history
from tests.support.paths import ROOT


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    if reason := missing():
        pytest.skip(reason)
    with chromium() as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def closed_tabs(browser):
    """Close the tabs of each file after it."""
    yield
    browser.close_tabs()


@contextlib.contextmanager
def _demo_daemon(folder, models):
    """A daemon with a page, on a copy of the demo vault under Git in which agents have written."""
    shutil.copytree(ROOT / "vault_fixtures/demo", folder / "vault")
    Memex(folder).commit("Begin")
    with paged_daemon(folder, models) as memex:
        write_history(memex)
        yield memex


@pytest.fixture(scope="session")
def demo(browser, tmp_path_factory, models):
    """The daemon that most tests share."""
    with _demo_daemon(tmp_path_factory.mktemp("demo"), models) as memex:
        yield memex


@pytest.fixture
def fresh_demo(browser, tmp_path, models):
    """A daemon of one test alone, whose queue of captures is as the agents left it."""
    with _demo_daemon(tmp_path, models) as memex:
        yield memex


@pytest.fixture
def tab(browser, demo):
    """A tab with a session; at its end, nothing may have gone wrong in it."""
    opened = browser.open(demo.one_time_link())
    yield opened
    assert opened.problems == {}
