"""Fixtures that several test files share, such as the bundled model, and how a run is set up."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from httpx2._transports import default as http

from index.encoders.bundled_model import BundledEncoder
from index.encoders.settings import BundledSettings
from syncd.state.ledger import Ledger
from syncd.telemetry.log import LogOutput
from tests.support import (
    daemon_logs,
    example_counts,  # noqa: F401 - examples has the profiles
    file_order,
    fresh_index,
    temporary_folders,
)
from tests.support.fresh_ledger import put_ledger

STARTED = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--in-memory", action="store_true", help="temporary folders in memory, where there is room for them"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose where temporary folders are, and let commands that tests start end by SIGINT, as at a terminal.

    A shell that starts the run in the background ignores that signal."""
    if config.getoption("in_memory") and (folder := temporary_folders.memory_folder()):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> file_order.FileScheduling | None:
    """Return what divides the tests, if files are divided."""
    return file_order.FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: file_order.place(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is collected or imported becomes garbage: the collector would look through all of it and find nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """New indexes are copies from here on, and all HTTP clients share what encryption needs: it takes 25 ms to make, and nothing is encrypted.

    What was imported stays to the end: the garbage collector need not go through it again and again."""
    fresh_index.copy_what_is_new()
    http.create_ssl_context = cache(http.create_ssl_context)
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[STARTED] = time.time()
    for handler in logging.root.handlers[:]:
        if type(handler) in {
            logging.StreamHandler,
            LogOutput,
        }:  # of a command that an earlier test ran: its stream is closed
            logging.root.removeHandler(handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test or a fixture that fails says what the daemons said meanwhile."""
    report = yield
    if report.failed:
        report.sections += daemon_logs.sections(item.stash[STARTED])
    return report


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder for what encoders keep, of this process alone."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def bundled() -> Iterator[BundledEncoder]:
    """The bundled model as it is by default on this processor."""
    encoder = BundledEncoder(BundledSettings(), threads=2)
    yield encoder
    encoder.close()


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger in a state folder of its own."""
    opened = Ledger.open(put_ledger(tmp_path / "state"))
    yield opened
    opened.close()
