"""Metrics, traces and request ids, on a server that really listens and a collector that really receives."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from index.errors import InvalidArgument
from index.timings import now_ms
from index.tracing import span
from syncd.daemon import metrics
from syncd.settings.logs_and_traces import TelemetrySettings
from syncd.telemetry import request_traces
from tests.support.live_server import CRASH, client, run, running
from tests.support.world import until

SECRET = "xqsecretzy"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Collector:
    """An OTLP receiver: the spans that it was sent."""

    def __init__(self):
        self.spans, self.raw = [], b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.take(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format, *args):
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def take(self, body):
        self.raw += body
        sent = ExportTraceServiceRequest.FromString(body)
        self.spans += [one for of in sent.resource_spans for scope in of.scope_spans for one in scope.spans]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def orphans(self):
        """The spans whose parent has not arrived; a request ends after its answer."""
        known = {b"", bytes.fromhex(PARENT.split("-")[2]), *(one.span_id for one in self.spans)}
        return [one.name for one in self.spans if one.parent_span_id not in known]

    def names(self, trace=None):
        return [one.name for one in self.spans if trace is None or one.trace_id.hex() == trace]

    def path(self, one):
        """The names from the outermost span down to this one."""
        by_id = {each.span_id: each for each in self.spans}
        found = [one.name]
        while one := by_id.get(one.parent_span_id):
            found.append(one.name)
        return found[::-1]


@pytest.fixture
def traced(tmp_path):
    collector = Collector()
    with running(tmp_path, telemetry=TelemetrySettings(traces=collector.url)) as rim:

        def flushed():
            until(lambda: rim.world.app.traces._provider.force_flush(5_000) and not collector.orphans())
            return collector

        yield rim, flushed
    collector.stop()


@pytest.fixture
def rim(tmp_path):
    with running(tmp_path) as one:
        yield one


def scraped(rim, key="owner"):
    answer = rim.rest("GET", "/metrics", key=key)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[(sample.name, *sorted(sample.labels.values()))] = sample.value
    return found, answer.text


# Metrics


def test_metrics_tell_what_was_done_and_how_the_daemon_is(rim):
    rim.rest("POST", "/capture", json={"content": f"the whimbrel {SECRET}"})
    rim.rest("POST", "/search", json={"query": f"whimbrel {SECRET}"})
    rim.rest("POST", "/search", json={"query": "", "top_k": -1})
    rim.rest("GET", f"/thought/{SECRET}")
    rim.rest("GET", f"/{SECRET}")
    rim.rest("GET", "/thoughts", key="bad")
    run(_mcp_call(rim))
    found, text = scraped(rim)
    assert found["memex_tool_calls_total", "OK", "capture_thought"] == 1
    assert found["memex_tool_calls_total", "OK", "semantic_search"] == 2
    assert found["memex_tool_calls_total", "INVALID_ARGUMENT", "semantic_search"] == 1
    assert found["memex_tool_calls_total", "NOT_FOUND", "get_thought"] == 1
    assert found["memex_tool_seconds_count", "semantic_search"] == 3
    assert found["memex_http_requests_total", "/search", "200", "POST"] == 1
    assert found["memex_http_requests_total", "/thought/{id}", "404", "GET"] == 1
    assert found["memex_http_requests_total", "404", "GET", "other"] == 1
    assert found["memex_http_refused_total", "401"] == 1
    assert found["memex_documents", "captures"] == 1
    assert found["memex_encoder", "ready"] == 1
    assert found["memex_encoder", "broken"] == 0
    assert found[("memex_encoder_queue_texts",)] == 0
    assert found[("memex_index_generation",)] > 0
    assert ("memex_pending_paths",) in found
    assert {"memex_defects", "memex_chunks", "memex_watch", "memex_sync_passes_total"} <= {name for name, *_ in found}
    assert found[("process_resident_memory_bytes",)] > 1e6
    assert found[("process_open_fds",)] > 1
    assert any(name == "memex_build_info" for name, *_ in found)
    # The process counts these, for all daemons that it was.
    for what in (
        ("embedding", "query"),
        ("embedding", "document"),
        ("store", "search"),
        ("store", "write"),
        ("enrichment",),
    ):
        name, labels = f"memex_{what[0]}", what[1:]
        assert found[f"{name}_seconds_count", *labels] >= 1
        assert found[f"{name}_seconds_bucket", *sorted(("+Inf", *labels))] == found[f"{name}_seconds_count", *labels]
        assert found[f"{name}_seconds_sum", *labels] > 0
        assert {cause for key, *causes in found for cause in causes if key == f"{name}_failures_total"} > {
            "timeout",
            "bug",
        }
    assert found[("memex_first_answer_seconds",)] > 0
    assert SECRET not in text


def test_the_time_of_a_start_does_not_depend_on_when_the_first_call_comes(tmp_path):
    with running(tmp_path) as served:
        before = scraped(served)[0]["memex_first_answer_seconds",]
        served.space().capture("the heron")
        assert 0 < before == scraped(served)[0]["memex_first_answer_seconds",]


async def _mcp_call(rim):
    async with client(rim, mode="2026-07-28") as mcp:
        await mcp.call_tool("semantic_search", {"query": "whimbrel"})
        await mcp.call_tool(f"tool_{SECRET}", {})


def test_no_agent_s_key_sees_a_number_of_the_vault(rim):
    _, rim.secrets["bound"] = rim.agent_access.keys.create(
        "bound", workspaces=("work",), scopes=("admin",), now=now_ms()
    )
    for key in ("full", "work", "reader", "writer", "static-rest", "bound"):
        answer = rim.rest("GET", "/metrics", key=key)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "PERMISSION_DENIED"), key
        assert "memex_" not in answer.text
    assert rim.rest("GET", "/metrics", key=None).status_code == 401


def test_a_degraded_search_is_counted(rim):
    rim.world.app.opened.embedder.close()
    assert rim.rest("POST", "/search", json={"query": "x"}).json()["degraded"]
    found, _ = scraped(rim)
    assert found[("memex_degraded_searches_total",)] == 1
    assert found["memex_encoder", "broken"] == 1
    assert found[("memex_degraded_parts",)] >= 1


def test_a_failure_is_counted_under_its_cause(rim):
    before, _ = scraped(rim)
    assert rim.rest("POST", "/search", json={"query": CRASH}).status_code == 503
    after, _ = scraped(rim)
    key = ("memex_embedding_failures_total", "bug", "query")
    assert after[key] == before[key] + 1


def test_labels_do_not_grow_with_what_is_asked(rim):
    def ask(numbers):
        for number in numbers:
            rim.rest("GET", f"/thought/{number}")
            rim.rest("GET", f"/no/such/{number}")
            rim.rest(f"VERB{number}", "/search")
        found = (name for name, *_ in scraped(rim)[0])
        return sum(not name.startswith("memex_job_") for name in found)  # a job's first run adds its own

    ask(range(2))
    assert ask(range(2, 4)) == ask(range(4, 30))


def test_a_job_s_outcome_is_a_number():
    jobs = {
        "listing": {"every_s": 600, "running": False, "started_at": 1_000, "seconds": 2.0, "error": "", "runs": 3,
                    "failures": 1, "next_run_at": 9_000},
        "new": {"running": False, "started_at": None, "seconds": None, "error": "", "runs": 0, "failures": 0, "next_run_at": 5},
        "broken": {"running": False, "next_run_at": None, "started_at": 1_000, "seconds": 2.0, "error": "no", "runs": 3, "failures": 1},
    }  # fmt: skip
    told = {(one.name, one.labels["job"]): one.value for one in metrics._job_samples(jobs)}
    assert told["memex_job_last_success_timestamp_seconds", "listing"] == 3.0
    assert told["memex_job_next_run_timestamp_seconds", "listing"] == 9.0
    assert told["memex_job_failures", "broken"] == 1
    assert {job for name, job in told if name == "memex_job_last_success_timestamp_seconds"} == {"listing"}


@pytest.mark.parametrize(("state", "expected"), [("ok", "ok"), ("poll", "poll"), ("deaf", "degraded")])
def test_the_watcher_s_state_is_a_number(state, expected):
    watch = {"state": state, "folders": 3, "overflows": 2, "restarts": 1}
    told = {(one.name, *one.labels.values()): one.value for one in metrics._watch_samples(watch)}
    assert told["memex_watch", expected] == 1
    assert sum(value for (name, *_), value in told.items() if name == "memex_watch") == 1
    assert told[("memex_watch_overflows",)] == 2


# Request ids


def test_each_answer_has_an_id_that_the_log_knows(rim, caplog):
    caplog.set_level(logging.INFO, logger="mcp_server")
    ids = [rim.rest("GET", "/thoughts").headers["x-request-id"] for _ in range(2)]
    ids.append(rim.rest("GET", "/thoughts", key="bad").headers["x-request-id"])
    assert len(set(ids)) == 3
    until(lambda: len(_requests(caplog)) == 3)
    first, second, refused = _requests(caplog)
    assert [first["request"], second["request"], refused["request"]] == ids
    assert (first["route"], first["status"], first["tool"], first["code"]) == ("/thoughts", 200, "list_recent", "OK")
    assert (refused["status"], refused["code"], refused["key"]) == (401, "UNAUTHENTICATED", None)
    assert rim.rest("GET", "/thoughts", headers={"x-request-id": "forged\tid"}).headers["x-request-id"] != "forged\tid"


def test_what_failed_on_our_side_names_the_id_and_the_log_has_no_text_of_the_request(rim, caplog):
    caplog.set_level(logging.DEBUG, logger="mcp_server")
    answer = rim.rest("POST", "/capture", json={"content": f"{SECRET} {CRASH}"})
    assert answer.json()["error"]["details"]["request_id"] == answer.headers["x-request-id"]
    rim.rest("POST", "/search", json={"query": SECRET, "tags": [SECRET]})
    rim.rest("GET", f"/thought/{SECRET}?{SECRET}=1")
    until(lambda: len(_requests(caplog)) == 3)
    assert SECRET not in json.dumps([[record.getMessage(), _fields(record)] for record in caplog.records])


def _fields(record):
    return getattr(record, "fields", {})


def _requests(caplog):
    return [record.fields for record in caplog.records if record.name == "mcp_server.http.request_log"]


# Traces


def test_a_search_is_traced_from_the_request_to_the_encoder_and_the_store(traced):
    rim, flushed = traced
    rim.rest("POST", "/capture", json={"content": "the whimbrel"})
    answer = rim.rest("POST", "/search", json={"query": f"whimbrel {SECRET}"}, headers={"traceparent": PARENT})
    assert answer.json()["results"]
    collector = flushed()
    paths = {" > ".join(collector.path(one)) for one in collector.spans if one.trace_id.hex() == TRACE}
    top = "POST /search > tool semantic_search > search"
    assert paths >= {f"{top} > {leg}" for leg in ("embed > encode", "fuse", "hydrate")}
    assert any(path.startswith(f"{top} > vector") for path in paths)
    (request,) = (one for one in collector.spans if one.name == "POST /search")
    assert request.parent_span_id.hex() == "b7ad6b7169203331"
    told = {pair.key: pair.value for pair in request.attributes}
    assert told["http.response.status_code"].int_value == 200
    assert told["memex.request"].string_value == answer.headers["x-request-id"]


def test_a_capture_is_traced_to_the_disk(traced):
    rim, flushed = traced
    rim.rest("POST", "/capture", json={"content": "the whimbrel"}, headers={"traceparent": PARENT})
    collector = flushed()
    paths = {" > ".join(collector.path(one)) for one in collector.spans}
    top = "POST /capture > tool capture_thought"
    assert {f"{top} > prepare > encode", f"{top} > write", f"{top} > commit > store"} <= paths


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_an_mcp_message_names_its_own_trace(traced, mode):
    rim, flushed = traced

    async def call():
        async with client(rim, mode=mode) as mcp:
            await mcp.call_tool("list_recent", {}, meta={"traceparent": PARENT})
            await mcp.call_tool("semantic_search", {"query": "x"})

    run(call())
    collector = flushed()
    assert collector.names(TRACE) == ["tool list_recent"]
    (search,) = (one for one in collector.spans if one.name == "tool semantic_search")
    assert collector.path(search)[0] == "POST /mcp"


def test_nothing_of_a_note_or_a_request_leaves_in_a_trace(traced):
    rim, flushed = traced
    rim.rest(
        "POST", "/capture", json={"content": f"# {SECRET}\n\n{SECRET}", "source": SECRET, "metadata": {"a": SECRET}}
    )
    rim.rest("POST", "/capture", json={"content": f"{SECRET} {CRASH}"})
    rim.rest("POST", "/search", json={"query": SECRET, "tags": [SECRET]})
    rim.rest("GET", f"/thought/{SECRET}?{SECRET}=1", headers={"x-memory-workspace": SECRET, "tracestate": "a=b"})
    rim.rest("GET", f"/{SECRET}")

    async def call():
        async with client(rim, mode="2026-07-28") as mcp:
            await mcp.call_tool(f"tool_{SECRET}", {"query": SECRET})
            await mcp.call_tool("semantic_search", {"query": SECRET, SECRET: 1})

    run(call())
    collector = flushed()
    assert len(collector.spans) > 15
    assert SECRET.encode() not in collector.raw
    assert str(rim.world.vault).encode() not in collector.raw
    named = {pair.key for one in collector.spans for pair in one.attributes}
    assert named <= request_traces.ALLOWED
    assert not any(one.events for one in collector.spans)
    failed = [one for one in collector.spans if one.status.code == 2]
    assert {"tool capture_thought", "tool get_thought"} <= {one.name for one in failed}


def test_what_nobody_asked_for_is_not_traced(traced):
    rim, flushed = traced
    rim.world.write("Note.md", "of a person")
    rim.world.run()
    assert flushed().spans == []


def test_a_collector_that_is_down_keeps_nobody_waiting(tmp_path):
    with running(tmp_path, telemetry=TelemetrySettings(traces="http://127.0.0.1:9")) as rim:
        assert rim.rest("GET", "/thoughts").status_code == 200
        begun = time.monotonic()
        rim.stop()
    assert time.monotonic() - begun < 25


def test_traces_are_off_until_an_exporter_is_set():
    assert request_traces.open_traces(TelemetrySettings(), {}, version="1") is None
    assert span("x") is span("y")  # the one that does nothing


def test_opentelemetry_s_own_variable_sets_the_exporter(monkeypatch):
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    exported = request_traces.open_traces(
        TelemetrySettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, version="1"
    )
    with exported.trace_request({}):
        pass
    exported.close()
    assert collector.names() == ["request"]
    collector.stop()


def test_without_the_sdk_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidArgument, match=re.escape("pip install 'memex-vault[otel]'")):
        request_traces.open_traces(TelemetrySettings(traces="http://127.0.0.1:4318"), {}, version="1")
