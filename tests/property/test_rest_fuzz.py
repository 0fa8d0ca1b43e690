"""Every route of REST, fuzzed by the description that the daemon gives of itself: what is valid by it, and what is not.

`MEMEX_FUZZ=300` sets the examples of each route and kind in the long run."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from index.errors import CODES
from mcp_server.operations.wire_format import STATUS
from mcp_server.rest.openapi import CODE
from tests.support.live_server import Rim, Space, running

CHECKS = [
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.status_code_conformance,
]
OPEN = {"/healthz", "/readyz"}  # without a key
SIGNED = {"/hooks/git"}  # a signature in its place
UNWELL = {"/readyz"}  # may answer 503, and that is its answer
REFUSED = {status for code, status in STATUS.items() if code != "UNAVAILABLE"} | {413, 431}
LONG = int(os.environ.get("MEMEX_FUZZ", "300"))


@dataclass
class Fuzzed:
    """A daemon under fuzz, and what its operations answered."""

    rim: Rim
    space: Space
    schema: Any
    known: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # ids of documents and of jobs
    told: Counter[tuple[str, str, int]] = field(default_factory=Counter)

    def operations(self) -> Iterator[Any]:
        for found in self.schema.get_all_operations():
            yield found.ok()

    def cases(self, operation: Any, mode: GenerationMode) -> st.SearchStrategy[Any]:
        """Requests to it, half of those to a document, job or upload that there is."""
        own = {"X-Memory-Workspace": self.space.name}
        found = [operation.as_strategy(generation_mode=mode)]
        if mode is GenerationMode.POSITIVE:
            names = [one.name for one in operation.path_parameters]
            ids = self.known["jobs" if "/jobs/" in operation.path else "documents"]
            real = [dict.fromkeys(names, id) for id in ids] if names else [None]
            found += [operation.as_strategy(generation_mode=mode, headers=own, path_parameters=one) for one in real]
        return st.one_of(found)

    def ask(self, case: Any) -> None:
        """Ask, and hold the answer against the description."""
        key = self.rim.headers(self.space.name)
        answer = case.call(base_url=self.rim.url, headers=key)
        path, kind = case.operation.path, case.meta.generation.mode.value
        self.told[case.operation.label, kind, answer.status_code] += 1
        wanted = [*CHECKS] if path in UNWELL else [not_a_server_error, *CHECKS]
        case.validate_response(answer, checks=wanted, headers=key)
        if kind == "negative" and answer.status_code != 431 and not parsed(case) and not flattened(case):
            case.validate_response(answer, checks=[checks.negative_data_rejection], headers=key)
        if answer.status_code >= 400 and path not in UNWELL:
            assert answer.status_code in REFUSED, answer.text
            error = json.loads(answer.content)["error"]
            assert error["code"] in CODES
            assert error["code"] == CODE[answer.status_code]
            assert answer.status_code != 413 or "limit" in error["details"]
            assert str(self.rim.world.vault.parent) not in answer.text, "a path of the host"
        self.remember(case.operation, answer)

    def stock(self) -> None:
        """Have three documents, as others may have been deleted."""
        at = sum(self.told.values())
        made = [self.space.capture(f"thought {at}-{n} of the stove", metadata={"tags": ["a/b"]}) for n in range(3)]
        self.known["documents"] = [one["id"] for one in made]

    def remember(self, operation: Any, answer: Any) -> None:
        """Take the id of a job that it gave for that of later requests."""
        if answer.status_code < 300 and operation.label == "POST /api/v1/jobs":
            self.known["jobs"] = [*self.known["jobs"], answer.json()["job_id"]][-5:]

    def run(self, mode: GenerationMode, examples: int, **more: Any) -> None:
        for operation in self.operations():
            if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query or operation.path_parameters):
                continue  # nothing of it can be wrong
            self.stock()
            case = self.cases(operation, mode)
            limits = settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
                print_blob=False,
                **more,
            )
            limits(given(case=case)(self.ask))()


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with running(tmp_path_factory.mktemp("fuzz")) as rim:
        space = rim.space()
        schema = schemathesis.openapi.from_dict(rim.rest("GET", "/openapi.json").json())
        yield Fuzzed(rim, space, schema)


def test_what_is_valid_by_the_description_is_answered_as_described(fuzzed):
    fuzzed.run(GenerationMode.POSITIVE, 3, derandomize=True)
    taken = {label for label, _, status in fuzzed.told if status < 300}
    never = {"GET /metrics", "POST /hooks/git"}  # the key may not; no secret is set
    assert taken == {one.label for one in fuzzed.operations()} - never, "else only refusals were fuzzed"


def test_what_is_not_valid_by_the_description_is_refused_as_described(fuzzed):
    fuzzed.run(GenerationMode.NEGATIVE, 3, derandomize=True)


def test_no_route_but_the_open_ones_answers_without_a_good_key(fuzzed):
    for operation in fuzzed.operations():
        case = valid(operation)[0]
        for headers in ({}, {"authorization": "Bearer mx_nosuch_secret"}, {"authorization": "Basic YTpi"}):
            answer = case.call(base_url=fuzzed.rim.url, headers=headers)
            if operation.path in SIGNED:
                assert answer.status_code == 404, "no secret is set"
            elif operation.path in OPEN and not headers:
                assert answer.status_code == 200
            else:
                assert (answer.status_code, operation.label) == (401, operation.label)
                case.validate_response(answer, checks=CHECKS)


def test_a_key_that_may_only_read_changes_nothing(fuzzed):
    before = fuzzed.rim.files()
    for operation in fuzzed.operations():
        if operation.method.upper() == "GET" or operation.path in SIGNED or operation.path.endswith("/search"):
            continue
        for case in valid(operation):
            answer = case.call(base_url=fuzzed.rim.url, headers=fuzzed.rim.headers("reader"))
            assert answer.status_code in (400, 403), (operation.label, answer.text)
    assert fuzzed.rim.files() == before


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_whatever_is_asked_for_long_the_answer_is_as_described(fuzzed, mode):
    fuzzed.run(mode, LONG)


def parsed(case: Any) -> bool:
    """Whether a value of another type is text in the body, and is taken as such: a number in a form, a list or an object as JSON."""
    values = case.body.values() if isinstance(case.body, dict) else ()
    if case.media_type == "multipart/form-data":
        return any(isinstance(value, str | int | float) for value in values)
    return any(isinstance(value, str) and value.lstrip().startswith(("[", "{")) for value in values)


def flattened(case: Any) -> bool:
    """Whether a value of the query has no form there: a list or an object is sent as its members or keys, which may be valid."""
    return any(value is None or isinstance(value, list | dict) for value in (case.query or {}).values())


def valid(operation: Any) -> list[Any]:
    """Some valid requests, the same in each run."""
    found: list[Any] = []
    limits = settings(max_examples=5, derandomize=True, database=None, phases=[Phase.generate])

    @limits
    @given(case=operation.as_strategy())
    def take(case: Any) -> None:
        found.append(case)

    take()
    return found
