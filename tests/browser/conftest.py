"""Fixtures of the tests in a real browser: one Chromium, and one daemon that most tests share, in any order."""

from __future__ import annotations

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


@pytest.fixture(scope="session")
def demo(browser, tmp_path_factory, models):
    """A daemon with a page, on a copy of the demo vault under Git in which agents have written."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "vault_fixtures/demo", folder / "vault")
    Memex(folder).commit("Begin")
    with paged_daemon(folder, models) as memex:
        write_history(memex)
        yield memex


@pytest.fixture
def tab(browser, demo):
    """A tab with a session; at its end, nothing may have gone wrong in it."""
    opened = browser.open(demo.one_time_link())
    yield opened
    assert opened.problems == {}
