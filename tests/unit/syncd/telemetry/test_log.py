"""Logs: one line a record, of known fields, without secrets."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
import threading
import warnings

import pytest

from syncd.settings.logs_and_traces import LogSettings
from syncd.telemetry.log import (
    FIELDS,
    LONGEST,
    LogFormatter,
    LogOutput,
    bind_fields,
    clean,
    flush,
    install,
    is_journal,
    queue_line,
)
from tests.support.daemon_process import daemon


@pytest.fixture
def root():
    """The root logger, put back as it was."""
    own, hooks = logging.getLogger(), (threading.excepthook, sys.unraisablehook)
    names = ("syncd", "index", "mcp_server", "memex")
    before = own.handlers[:], own.level, {name: logging.getLogger(name).level for name in names}
    yield own
    own.handlers[:], (threading.excepthook, sys.unraisablehook) = before[0], hooks
    own.setLevel(before[1])
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(False)


def told(root, work, **settings):
    """The lines that `work` logs."""
    stream = io.StringIO()
    install(LogSettings(**settings), stream=stream)
    work(logging.getLogger("syncd.tests"))
    assert flush(10)
    return stream.getvalue().splitlines()


def test_a_record_is_one_json_object_of_known_fields(root):
    def work(log):
        with bind_fields({"request": "ab12", "query": "my diary"}):
            log.info("asked", extra={"fields": {"tool": "semantic_search", "ms": 1.5, "body": "my diary"}})

    (line,) = told(root, work, format="json")
    record = json.loads(line)
    assert record.pop("time").endswith("Z")
    assert record == {
        "level": "info", "logger": "syncd.tests", "message": "asked",
        "request": "ab12", "tool": "semantic_search", "ms": 1.5,
    }  # fmt: skip
    assert {"query", "body", "title", "path"}.isdisjoint(FIELDS)


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nERROR forged", "\x1b[2J\x1b]0;x\x07", "\u2028", "\u202egpj.exe", "\udce9", "\x00\x7f\x9b"]
)
def test_nothing_in_a_text_makes_another_line_or_moves_a_cursor(root, style, text):
    (line,) = told(root, lambda log: log.warning("a note %s", text), format=style)
    assert all(letter.isprintable() for letter in line)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer mx_abc123_SECRETSECRET",
        "the key mx_abc123_SECRETSECRET was used",
        "bearer SECRETSECRET",
        "GET http://user:SECRETSECRET@host/v1",
        "mx_abc123_SECRETSECRET\nmx_def456_SECRETSECRET",
    ],
)
def test_a_secret_is_never_logged_in_a_message_or_an_exception(root, text):
    def work(log):
        log.error("%s", text)
        try:
            int(text, base=10)
        except ValueError:
            log.exception("it failed")

    for style in ("json", "text"):
        lines = told(root, work, format=style)
        assert "SECRETSECRET" not in "".join(lines)
        assert "[redacted]" in lines[0]
        assert "ValueError" in "".join(lines)


def test_an_exception_is_one_field(root):
    def work(log):
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            log.exception("it failed")

    (line,) = told(root, work, format="json")
    record = json.loads(line)
    assert record["message"] == "it failed"
    assert record["error"].startswith("Traceback")
    assert record["error"].endswith("ZeroDivisionError: division by zero")


def test_libraries_speak_only_when_unwell_and_we_by_the_level(root):
    def work(log):
        logging.getLogger("httpx2").info("POST http://user:pass@host with a body")
        logging.getLogger("mcp").debug("the whole request")
        logging.getLogger("mcp").warning("unwell")
        log.debug("in detail")
        log.info("in passing")

    assert [line.split(maxsplit=2)[2] for line in told(root, work)] == ["unwell", "in passing"]
    assert len(told(root, work, level="debug")) == 3
    assert len(told(root, work, level="error")) == 1


def test_a_record_with_wrong_arguments_is_told_all_the_same(root):
    (line,) = told(root, lambda log: log.info("%d", "x"), format="json")
    assert "can't be formatted" in json.loads(line)["message"]


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_public_id_of_a_key_is_shown(root, style):
    def work(log):
        log.info("asked", extra={"fields": {"key": "9f86d081884c7d65", "method": "GET"}})

    (line,) = told(root, work, format=style)
    assert "9f86d081884c7d65" in line


def test_a_long_text_is_cut_in_its_middle():
    assert len(clean("x" * 100_000)) < LONGEST + 10


def test_no_part_of_a_secret_is_left_where_a_long_text_is_cut():
    key = "mx_0123456789ab_" + "c0ffee" * 10
    for kept in (1, 20, 50, len(key) - 1):  # characters of the key on the one side of the cut
        for text in (
            "y " * LONGEST + key + "z" * (LONGEST // 2 - kept),
            "z" * (LONGEST // 2 - kept) + key + " y" * LONGEST,
        ):
            assert "c0ffee" not in clean(text)


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_secret_of_several_lines_is_not_logged_with_an_exception(root, style):
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n" * 3

    def fail():
        raise ValueError(f"no note:\n-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\nthe end")

    def work(log):
        try:
            fail()
        except ValueError:
            log.exception("it failed")

    text = "".join(told(root, work, format=style))
    assert "MIIE" not in text
    assert "[private-key]" in text and "the end" in text


def test_warnings_and_dead_threads_are_records(root):
    def work(_):
        warnings.warn("odd", stacklevel=1)
        thread = threading.Thread(target=lambda: 1 / 0, name="worker")
        thread.start()
        thread.join()

    first, second = (json.loads(line) for line in told(root, work, format="json"))
    assert "odd" in first["message"]
    assert (second["message"], second["level"]) == ("the thread worker died", "error")


def test_an_error_that_python_ignores_is_a_record(root):
    class Ended:
        def __del__(self):
            raise ValueError("not closed")

    def work(_):
        Ended()

    (line,) = told(root, work, format="json")
    record = json.loads(line)
    assert record["message"].startswith("an error was ignored in <function")
    assert record["error"].endswith("ValueError: not closed")


def unread_pipe():
    """A pipe that is full, as that of a pager which waits for its reader: both ends, and its writing end as a stream."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"\n" * 4096)
    os.set_blocking(writer, True)
    return reader, os.fdopen(writer, "w")


def test_an_output_that_nobody_reads_delays_no_thread_and_what_was_dropped_is_counted_later(root):
    reader, stream = unread_pipe()
    install(LogSettings(format="json"))
    root.handlers[:] = [LogOutput(stream, LogFormatter(structured=True, prefixed=False), waiting=5_000)]
    log = logging.getLogger("syncd.tests")
    log.info("record 0")
    assert not flush(0.2)
    for number in range(1, 200):
        log.info("record %d", number)
    assert queue_line("memex: a message")  # dropped
    text = b""
    while b"were dropped" not in text:
        text += os.read(reader, 65_536)
    assert flush(10)
    records = [json.loads(line)["message"] for line in text.decode().split("\n") if line]
    lengths = [len(line) for line in text.decode().split("\n") if line][:-1]
    assert 5_000 <= sum(lengths) < 5_000 + max(lengths), "the first one, and those that waited"
    assert records[:-1] == [f"record {number}" for number in range(len(records) - 1)]
    dropped = 201 - (len(records) - 1)
    assert records[-1] == f"{dropped} lines of the log were dropped, because the output was not read"
    os.close(reader)


def test_an_output_that_does_not_block_gets_every_line(root):
    reader, stream = unread_pipe()
    os.set_blocking(stream.fileno(), False)
    install(LogSettings(format="json"))
    root.handlers[:] = [LogOutput(stream, LogFormatter(structured=True, prefixed=False))]
    for number in range(2_000):
        logging.getLogger("syncd.tests").info("record %d %s", number, "x" * 200)
    text = b""
    while text.count(b"record") < 2_000:
        text += os.read(reader, 65_536)
    assert flush(10)
    records = [json.loads(line)["message"].split()[1] for line in text.decode().split("\n") if line]
    assert records == [str(number) for number in range(2_000)]
    os.close(reader)


@pytest.mark.slow
def test_a_record_is_written_although_the_process_ends_at_once():
    code = (
        "import logging\n"
        "from syncd.telemetry.log import LogSettings, install, queue_line\n"
        "install(LogSettings())\n"
        "for number in range(5000): logging.getLogger('memex').info('record %d', number)\n"
        "queue_line('the end')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == [*map(str, range(5000)), "end"]


@pytest.mark.slow
def test_the_journal_gets_json_with_priorities_and_a_pipe_gets_text():
    code = (
        "import logging, os, sys\n"
        "found = os.fstat(2)\n"
        "if sys.argv[1] == 'journal': os.environ['JOURNAL_STREAM'] = f'{found.st_dev}:{found.st_ino}'\n"
        "from syncd.telemetry.log import LogSettings, install\n"
        "install(LogSettings())\n"
        "logging.getLogger('memex').info('well'); logging.getLogger('memex').error('ill')\n"
    )

    def lines(where):
        done = subprocess.run([sys.executable, "-c", code, where], capture_output=True, text=True, check=True)
        return done.stderr.splitlines()

    journal = lines("journal")
    assert [line[:3] for line in journal] == ["<6>", "<3>"]
    assert [json.loads(line[3:])["message"] for line in journal] == ["well", "ill"]
    assert [line.split(maxsplit=1)[1] for line in lines("pipe")] == ["info    well", "error   ill"]


def test_another_stream_than_the_journal_s_is_not_taken_for_it():
    assert not is_journal(sys.__stderr__, {"JOURNAL_STREAM": "1:2"})
    assert not is_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})
    assert not is_journal(sys.__stderr__, {key: value for key, value in os.environ.items() if key != "JOURNAL_STREAM"})


@pytest.mark.slow
def test_all_that_a_daemon_says_to_the_journal_is_json(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex:
        file = memex.home / ".config/memex/config.toml"
        file.parent.mkdir(parents=True)
        file.write_text('[log]\nformat = "json"\n')
        memex.write("Note.md", "of a person\n")
        memex.serve()
        memex.capture("xqsecretzy captured")
        memex.rest("POST", "/search", json={"query": "xqsecretzy"})
        refused = memex.client.get(f"{memex.url}/thoughts", headers={"authorization": "Bearer mx_0_xqsecretzy"})
        with memex.start(
            "serve", "--port", memex.url.rpartition(":")[2], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as second:
            said = second.communicate(timeout=120)[1].decode()
            assert second.returncode
        memex.stop()
        records = [json.loads(line) for line in (memex.said + said).splitlines()]
        assert "xqsecretzy" not in memex.said
        assert memex.key not in memex.said
        told = {record["message"].partition(" ")[0] for record in records}
        assert {"opening", "serving", "ready:", "request", "SIGTERM,"} <= told
        (about,) = (record for record in records if record.get("request") == refused.headers["x-request-id"])
        assert (about["status"], about["code"]) == (401, "UNAUTHENTICATED")
        assert records[-1]["level"] == "error"


@pytest.mark.slow
def test_with_json_all_that_a_daemon_says_is_json_whatever_its_settings(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex:
        file = memex.home / ".config/memex/config.toml"
        file.parent.mkdir(parents=True)
        file.write_text('[log]\nformat = "text"\n')
        memex.serve("--json")
        memex.stop()
        records = [json.loads(line) for line in memex.said.splitlines()]
    assert {"opening", "serving", "ready:", "SIGTERM,"} <= {record["message"].partition(" ")[0] for record in records}
