"""The doors over real sockets: keys that end, rates, Access, and errors that tell nothing."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import logging
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from mcp import MCPError

from index.timings import now_ms
from mcp_server.operations.operation import READERS
from mcp_server.tools.families import FAMILIES
from syncd.settings.access import AccessSettings, LimitsSettings
from syncd.state.folder import LEDGER
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.identity_provider import AUDIENCE, Team
from tests.support.live_server import CRASH, SLOW, client, run, running
from tests.support.mcp_agent import member
from tests.support.paths import ROOT
from tests.support.tool_arguments import ARGUMENTS
from tests.support.world import until

MODES = ("legacy", "2026-07-28")
OPERATIONS = [operation for family in FAMILIES.values() for operation in family]
BAD = ("bad", "nonsense", "expired", "revoked")


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state") as served:
        yield served


def failed(result):
    assert result.is_error
    assert result.structured_content is None
    return json.loads(result.content[0].text)["error"]


# The owner's key


def memex(rim, *words):
    """`memex WORDS` as the vault's owner runs it."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "syncd.cli", *words, "--vault", rim.world.vault, "--state", rim.world.state],
        env=kept | {"HOME": str(rim.world.state), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def comes_in(rim, secret):
    return rim.rest("GET", "/thoughts", key=None, headers={"authorization": f"Bearer {secret}"}).status_code == 200


@pytest.mark.slow
def test_the_owners_key_is_reset_while_the_daemon_runs_and_while_it_does_not(tmp_path):
    with running(tmp_path / "state") as rim:
        lost = rim.secrets["owner"]
        stream = listening(rim, lost)
        done = memex(rim, "key", "reset", "--yes", "--json")
        assert done.returncode == 0, done.stderr
        file = Path(json.loads(done.stdout)["key_file"])
        assert stream.wait(30)
        assert not comes_in(rim, lost)
        found = file.read_text().strip()
        assert found not in done.stdout + done.stderr
        assert comes_in(rim, found)
        answer = memex(rim, "key", "rotate", "owner", "--overlap", "1h")
        assert answer.returncode == 0, answer.stderr
        rotated = answer.stdout.strip()
        assert file.read_text().strip() == rotated != found
        assert comes_in(rim, found)
        assert comes_in(rim, rotated)
        told = memex(rim, "key", "history").stdout
        assert [word in told for word in ("created", "revoked", "reset", "rotated")] == [True] * 4
        assert "old secret until" in memex(rim, "key", "list").stdout
        again = memex(rim, "key", "rotate", "owner", "--overlap", "0s")
        assert "no longer works" in again.stderr
        assert [comes_in(rim, secret) for secret in (found, rotated, again.stdout.strip())] == [False, False, True]
    aside = rim.world.vault.with_name("aside")
    rim.world.vault.rename(aside)  # with the vault away, no daemon could start
    done = memex(rim, "key", "reset", "--yes")
    assert done.returncode == 0, done.stderr
    assert str(file) in done.stdout
    ledger = Ledger.open(rim.world.state / LEDGER)
    keys = ApiKeys(ledger)
    assert keys.authenticate(rotated, now=now_ms()) is None
    assert keys.authenticate(found, now=now_ms()) is None
    assert keys.authenticate(file.read_text().strip(), now=now_ms()).has_scope("admin")
    ledger.close()


# Keys that end while something is open


def listening(rim, secret):
    """A stream that is open with this secret, and an event that is set when it ends."""
    began, ended = threading.Event(), threading.Event()

    def listen():
        headers = {"authorization": f"Bearer {secret}", "accept": "text/event-stream", "x-memory-workspace": "work"}
        with httpx2.stream("GET", rim.url + "/sse", headers=headers, timeout=60) as stream:
            assert stream.status_code == 200
            for _ in stream.iter_bytes():
                began.set()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    assert began.wait(30)
    return ended


@pytest.mark.slow
def test_a_stream_ends_when_its_key_expires(rim):
    _, secret = rim.agent_access.keys.create("short", workspaces=None, expires_at=now_ms() + 3_000, now=now_ms())
    assert listening(rim, secret).wait(30)


@pytest.mark.slow
def test_streams_of_an_old_secret_end_with_it_and_those_of_the_new_one_stay(rim):
    keys = rim.agent_access.keys
    _, old = keys.create("changing", workspaces=None, now=now_ms())
    before = listening(rim, old)
    _, new = keys.rotate("changing", overlap_ms=4_000, now=now_ms())
    after = listening(rim, new)
    assert rim.rest("GET", "/thoughts", headers={"authorization": f"Bearer {old}"}, key=None).status_code == 200
    assert before.wait(30)
    assert rim.rest("GET", "/thoughts", headers={"authorization": f"Bearer {old}"}, key=None).status_code == 401
    assert not after.is_set()
    keys.revoke("changing", now=now_ms())
    assert after.wait(30)


def test_a_subscription_ends_when_its_key_is_revoked(rim):
    key, rim.secrets["subscriber"] = rim.agent_access.keys.create("subscriber", workspaces=None, now=now_ms())

    async def listen():
        async with client(rim, key="subscriber", mode="2026-07-28") as mcp:
            async with mcp.listen(tools_list_changed=True) as heard:
                await asyncio.to_thread(rim.agent_access.keys.revoke, key.id, now=now_ms())
                async for _ in heard:
                    pass

    try:
        run(listen())  # would not end by itself
    except Exception as error:
        assert "timed out" not in repr(error).lower()
        assert not isinstance(error, TimeoutError)
    assert rim.rest("GET", "/thoughts", key="subscriber").status_code == 401


# Rates


@pytest.fixture(scope="module")
def paced(tmp_path_factory):
    limits = LimitsSettings(rate=5.0, burst=5, failures=3, queue=2)
    with running(tmp_path_factory.mktemp("paced") / "state", limits=limits) as served:
        yield served


def own_key(rim, name):
    _, rim.secrets[name] = rim.agent_access.keys.create(name, workspaces=None, now=now_ms())
    return name


def at_once(work, times):
    """What so many calls of `work` at the same time returned."""
    with ThreadPoolExecutor(times) as pool:
        return [one.result() for one in [pool.submit(work) for _ in range(times)]]


def test_a_key_that_asks_too_fast_waits_its_turn_and_others_are_served(paced):
    fast, other = own_key(paced, "fast"), own_key(paced, "other")
    begun = time.monotonic()
    assert [paced.rest("GET", "/thoughts", key=fast).status_code for _ in range(8)] == [200] * 8
    assert time.monotonic() - begun > 0.5  # the last three each wait for a fifth of a second
    answers = at_once(lambda: paced.rest("GET", "/thoughts", key=fast), 12)
    late = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {200, 429}
    for answer in late:
        error = answer.json()["error"]
        assert (error["code"], error["retryable"]) == ("RESOURCE_EXHAUSTED", True)
        assert 0 < error["details"]["retry_after"] <= 1.0
        assert answer.headers["retry-after"] == "1"
    assert paced.rest("GET", "/thoughts", key=other).status_code == 200
    for path in ("/healthz", "/readyz"):
        for key in (fast, None):
            assert [paced.rest("GET", path, key=key).status_code for _ in range(20)] == [200] * 20
    assert paced.rest("GET", "/thoughts", key=fast).status_code == 200


def asked_often(rim, path, key):
    """The answers to many requests on one connection, so that they come fast."""
    with httpx2.Client(headers=rim.headers(key) if key else {}) as http:
        return [http.get(rim.url + path) for _ in range(200)]


@pytest.mark.slow
def test_who_asks_for_health_without_end_is_answered_and_slowed_only_with_a_bad_key(paced):
    patient = own_key(paced, "patient")
    for path in ("/readyz", "/healthz"):
        for key in (None, own_key(paced, f"restless {path}")):
            assert {answer.status_code for answer in asked_often(paced, path, key)} == {200}, key
        answers = asked_often(paced, path, "bad")
        assert {answer.status_code for answer in answers} <= {401, 429}
        late = next(answer for answer in answers if answer.status_code == 429)
        error = late.json()["error"]
        assert (error["code"], error["retryable"]) == ("RESOURCE_EXHAUSTED", True)
        assert int(late.headers["retry-after"]) >= 1
    assert paced.rest("GET", "/readyz", key=patient).status_code == 200
    assert [paced.rest("GET", "/thoughts", key=patient).status_code for _ in range(3)] == [200] * 3
    until(lambda: paced.rest("GET", "/healthz", key=None).status_code == 200)


def test_a_tool_that_can_not_wait_answers_so_that_a_model_reads_it(paced):
    key = own_key(paced, "eager")
    headers = paced.headers(key) | {"accept": "application/json, text/event-stream"}

    async def work():
        async with client(paced, key=key, mode="2026-07-28") as mcp:
            return await asyncio.gather(*(mcp.call_tool("list_recent", {}) for _ in range(12)))

    answers = run(work())
    late = [answer for answer in answers if answer.is_error]
    assert 0 < len(late) < len(answers)
    for answer in late:
        error = failed(answer)
        assert (error["code"], error["retryable"]) == ("RESOURCE_EXHAUSTED", True)
        assert 0 < error["details"]["retry_after"] <= 1.0
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    def call():
        return httpx2.post(paced.url + "/mcp", headers=headers, json=ping)

    late = [answer.headers for answer in at_once(call, 60) if answer.status_code == 429]  # who goes on all the same
    assert late
    assert all(headers["retry-after"] for headers in late)


def test_who_fails_is_slowed_and_a_good_key_is_not(paced):
    codes = [paced.rest("GET", "/thoughts", key=key).status_code for key in itertools.chain(*[BAD] * 4)]
    assert set(codes[:3]) <= {401, 429}
    assert codes[-1] == 429
    answer = paced.rest("GET", "/thoughts", key=None)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["error"]["retryable"]
    assert paced.rest("GET", "/thoughts", key=own_key(paced, "honest")).status_code == 200
    assert paced.rest("GET", "/healthz", key="bad").status_code == 429
    assert paced.rest("GET", "/healthz", key=None).status_code == 200


def test_a_key_whose_calls_fill_its_queue_is_told_and_another_key_waits(paced):
    keys = [own_key(paced, f"queued-{number}") for number in range(4)]
    greedy, patient = own_key(paced, "greedy"), own_key(paced, "patient two")
    asked = {"query": f"where is the {SLOW}"}

    def ask(key):
        return paced.rest("POST", "/search", key=key, json=asked)

    with ThreadPoolExecutor(READERS + 6) as pool, paced.encoder.held():
        busy = [pool.submit(ask, keys[number % 4]) for number in range(READERS)]
        for _ in busy:
            assert paced.encoder.waiting.acquire(timeout=20)
        late = [pool.submit(ask, greedy) for _ in range(5)]
        until(lambda: sum(answer.done() for answer in late) == 3)  # two may wait
        waits = pool.submit(ask, patient)
        for answer in [one.result() for one in late if one.done()]:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["retryable"]) == (429, "RESOURCE_EXHAUSTED", True)
            assert answer.headers["retry-after"] == "1"
        assert paced.rest("GET", "/healthz", key=None).status_code == 200
        assert not waits.done()
        hasty = own_key(paced, "hasty")
        for _ in range(4):  # who hangs up leaves the queue, which would be full otherwise
            with pytest.raises(httpx2.ReadTimeout):
                httpx2.post(f"{paced.url}/search", headers=paced.headers(hasty), json=asked, timeout=0.3)
        paced.encoder.gate.set()
        assert [one.result().status_code for one in (*busy, waits)] == [200] * (READERS + 1)
        assert sorted(one.result().status_code for one in late) == [200] * 2 + [429] * 3


@pytest.mark.slow
def test_a_flood_keeps_nobody_from_the_health_of_the_daemon(tmp_path):
    """Case 24: 300 requests a second for three seconds; the daemon's own defaults."""
    with running(tmp_path / "state", limits=LimitsSettings()) as rim:

        async def one(http, path, headers):
            began = time.monotonic()
            answer = await http.get(rim.url + path, headers=headers)
            return answer.status_code, time.monotonic() - began

        async def flood():
            limits = httpx2.Limits(max_connections=200)
            async with httpx2.AsyncClient(timeout=30, limits=limits) as http, httpx2.AsyncClient(timeout=30) as other:
                tasks, health = [], []
                for number in range(900):
                    if number % 30 == 0:
                        health.append(asyncio.create_task(one(other, "/healthz", {})))
                    else:
                        tasks.append(asyncio.create_task(one(http, "/thoughts", rim.headers("full"))))
                    await asyncio.sleep(1 / 300)
                return await asyncio.gather(*tasks), await asyncio.gather(*health)

        answers, health = run(flood())
    assert {status for status, _ in answers} == {200, 429}
    assert {status for status, _ in health} == {200}
    assert max(took for _, took in health) < 1.0


# Cloudflare Access


def test_an_assertion_of_access_opens_what_its_key_opens(tmp_path):
    team = Team()
    team.add("first")
    access = AccessSettings(audience=(AUDIENCE,), issuer=team.url, keys={"ann@example.org": "work"})
    try:
        with running(tmp_path / "state", access=access) as rim:

            def come(path="/thoughts", method="GET", **headers):
                sent = {"json": {"content": "x"}} if method == "POST" else {}
                return rim.rest(method, path, key=None, headers=headers, **sent)

            good = {"cf-access-jwt-assertion": team.assertion("first")}
            assert come(**good).status_code == 200
            assert come("/capture", "POST", **good).status_code == 200
            assert [one.namespace for one in rim.agent_access.workspace("work").recent(5)] == ["default"]
            assert come(**good, **{"X-Memory-Workspace": "secret"}).status_code == 404
            stranger = come(**{"cf-access-jwt-assertion": team.assertion("first", email="eve@example.org")})
            assert (stranger.status_code, stranger.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
            assert "eve" not in stranger.text
            none = come()
            for wrong in (
                "",
                "x",
                team.assertion("first", exp=1),
                team.assertion("first", aud="other"),
                "e30." * 5_000,
            ):
                answer = come(**{"cf-access-jwt-assertion": wrong})
                assert (answer.status_code, answer.content) in ((401, none.content), (431, answer.content))
                assert answer.status_code == 401 or len(wrong) > 16_000
            assert come(**good, authorization="Bearer nonsense").status_code == 401
            assert come(cookie=f"CF_Authorization={team.assertion('first')}").status_code == 401
            assert come(f"/thoughts?cf-access-jwt-assertion={team.assertion('first')}").status_code == 401
            twice = httpx2.get(rim.url + "/thoughts", headers=[*good.items()] * 2)
            assert twice.status_code == 400
            rim.agent_access.keys.revoke("work", now=now_ms())
            assert come(**good).status_code == 403
            assert come("/healthz", **{"cf-access-jwt-assertion": "x"}).status_code == 200
    finally:
        team.stop()


def test_without_access_set_up_an_assertion_is_nothing_and_nobody_is_asked_for_keys(rim):
    team = Team()
    team.add("first")
    try:
        headers = {"cf-access-jwt-assertion": team.assertion("first")}
        assert rim.rest("GET", "/thoughts", key=None, headers=headers).status_code == 401
        assert team.fetched == 0
    finally:
        team.stop()


# Secrets in captures


def test_a_secret_in_a_relation_or_a_tag_is_reported_to_its_writer(rim):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ends = {"from_entity": "Ada", "to_entity": "Bob"}
    reports = {}
    with member(rim.space()) as agent:

        def create():
            agent.good("delete_entities", entity_names=["Ada", "Bob"])
            entities = [{"name": name, "entity_type": "person", "observations": ["x"]} for name in ("Ada", "Bob")]
            agent.good("create_entities", entities=entities)

        create()
        reports["tags"] = agent.good("set_tags", name="Ada", tags=[secret])
        create()
        reports["relation"] = agent.good("create_relations", relations=[{**ends, "relation_type": secret}])
        create()
        assert agent.good("create_relations", relations=[{**ends, "relation_type": "knew"}])["warnings"] == []
        reports["type"] = agent.good("update_relation_type", **ends, old_type="knew", new_type=secret)
        source, target = (agent.good("memory.save", namespace="default", content=text)["memo_id"] for text in "ab")
        related = {"sourceMemoId": source, "targetMemoId": target, "tag": "near"}
        assert agent.good("memory.relation.save", **related)["warnings"] == []
        reports["reason"] = agent.good("memory.relation.save", **related, reason=f"It says {secret}")
    for answer in reports.values():
        assert [warning.split(": ")[:2] for warning in answer["warnings"]] == [["secret", "github-token"]], reports


def test_a_capture_with_a_secret_is_kept_and_its_writer_and_owner_are_told(rim):
    space = rim.space()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    made = space.capture(f"{secret}\n\nis the token of the build")
    assert len(made["warnings"]) == 1
    assert made["warnings"][0].startswith("secret: github-token: ")
    assert secret not in json.dumps(made)
    file = space.file_of(made["id"])
    assert secret in file.read_text()
    assert secret not in file.name
    path = str(file.relative_to(rim.world.vault))
    assert {"path": path, "rule": "github-token"} in rim.world.app.health.facts()["flagged"]
    assert space.capture(f"{secret}\n\nis the token of the build")["warnings"] == made["warnings"]
    assert space.capture("nothing to hide")["warnings"] == []
    file.write_text(file.read_text().replace(secret, "it"))
    until(lambda: path not in [one["path"] for one in rim.world.app.health.facts()["flagged"]])


def test_the_owner_is_told_of_keys_that_are_about_to_end(tmp_path):
    with running(tmp_path / "state") as rim:
        day = 24 * 3600 * 1000
        for name, days in (("soon", 13), ("later", 15)):
            rim.agent_access.keys.create(name, workspaces=None, expires_at=now_ms() + days * day, now=now_ms())
        told = rim.world.app.health.facts()["keys"]
        assert told["expiring"] == ["soon"]
        live = [key for key in rim.agent_access.keys.list() if key.is_live(now_ms())]
        assert told["live"] == len(live)


def test_the_name_of_a_file_that_tells_of_another_note_is_told_to_no_agent(tmp_path):
    def fill(world):
        world.write("Diary/Garden plan.md", "the owner's own")

    secret = "AKIAQ7RT5ZV3W9XB2M4N"
    with running(tmp_path / "state", fill=fill) as rim:
        for title in ("Garden plan", "Kitchen plan"):
            sent = {"content": f"{title}: {secret}", "metadata": {"title": title}}
            assert rim.rest("POST", "/capture", key="work", json=sent).json()["warnings"]
        files = {file.name for file in (rim.world.vault / "Captures/work").glob("*.md")}
        assert files == {"Garden plan 2.md", "Kitchen plan.md"}
        seen = [one["path"] for one in rim.rest("GET", "/readyz", key="work").json()["defects"]]
        assert seen == ["Captures/work/Garden plan.md", "Captures/work/Kitchen plan.md"]
        owners = [one["path"] for one in rim.world.app.health.status(None)["defects"]]
        assert "Captures/work/Garden plan 2.md" in owners


# Errors


class Broken:
    """A part that fails at whatever is asked of it, with words that must stay inside."""

    def __init__(self, error):
        self.error = error

    def __getattr__(self, name):
        raise self.error


WORDS = "the diary of the owner"
FAULTS = {
    "disk full": OSError(errno.ENOSPC, "No space left on device", f"/home/owner/vault/{WORDS}.md"),
    "read error": OSError(errno.EIO, "Input/output error", f"/home/owner/vault/{WORDS}.md"),
    "no permission": PermissionError(errno.EACCES, "Permission denied", f"/home/owner/vault/{WORDS}.md"),
    "bad database": sqlite3.DatabaseError(f"malformed: select '{WORDS}' from /home/owner/state/captures.db"),
    "bad store": RuntimeError(f"lance error: {WORDS} at /home/owner/state/index/captures.lance: sk-{'a1b2' * 8}"),
    "a bug": KeyError(f"/home/owner/{WORDS}"),
}
INSIDE = re.compile(
    r"Traceback|File \"|line \d+|/home/|/tmp/|\.py\b|\.lance|diary|owner/|sk-|sqlite|lance|Errno|xqbodyzy"
)


def everything(rim, key, mode, note="0" * 32):
    """What every route and tool answers, as text."""
    told = []
    for method, path, sent in (
        ("POST", "/capture", {"json": {"content": f"a text {mode}"}}),
        ("POST", "/search", {"json": {"query": "text"}}),
        ("POST", "/search", {"json": {"query": "text", "mode": "text"}}),
        ("GET", f"/thought/{note}", {}),
        ("DELETE", f"/thought/{note}", {}),
        ("GET", "/thoughts", {}),
        ("GET", "/healthz", {}),
        ("GET", "/readyz", {}),
        ("POST", "/api/v1/search", {"json": {"query": "text"}}),
        ("POST", "/api/v1/jobs", {"json": {"text": f"a note {mode}"}}),
        ("POST", "/api/v1/jobs", {"files": {"file": ("a.md", b"a file")}}),
        ("GET", "/api/v1/jobs", {}),
        ("GET", "/api/v1/jobs/x", {}),
        ("GET", "/api/v1/documents", {}),
        ("GET", f"/api/v1/documents/{note}", {}),
        ("PUT", f"/api/v1/documents/{note}/tags", {"json": {"tags": ["x"]}}),
        ("PATCH", f"/api/v1/notes/{note}", {"json": {"text": "y"}}),
        ("GET", "/api/v1/status", {}),
    ):
        answer = rim.rest(method, path, key=key, **sent)
        told.append((f"{method} {path}", answer.status_code, f"{answer.headers} {answer.text}"))

    async def tools():
        async with client(rim, key=key, mode=mode) as mcp:
            for operation in OPERATIONS:
                try:
                    result = await mcp.call_tool(operation.name, ARGUMENTS.get(operation.name, {"id": note}))
                except MCPError as refused:  # by the guard, who can't read the keys
                    told.append((operation.name, "error", f"{refused.message} {refused.data}"))
                else:
                    told.append((operation.name, "error" if result.is_error else "ok", result.model_dump_json()))

    run(tools())
    return told


# A key of one workspace and one of two, each in an era of the protocol.
CALLERS = {"legacy": "work", "2026-07-28": "two"}
SHORT = {  # each part once, and each caller; the others take as long and go the same ways
    ("store", "disk full", "legacy"),
    ("catalog", "read error", "2026-07-28"),
    ("vault", "no permission", "legacy"),
}


@pytest.mark.parametrize(
    ("part", "fault", "mode"),
    [
        pytest.param(*case, marks=[] if case in SHORT else pytest.mark.slow, id="-".join(case))
        for case in itertools.product(("store", "catalog", "vault"), FAULTS, CALLERS)
    ],
)
def test_whatever_breaks_inside_no_answer_tells_of_it(tmp_path, fault, part, mode, caplog):
    with running(tmp_path / "state") as rim:
        rim.agent_access.workspace("secret").capture("the word is xqbodyzy")
        index = rim.world.app.opened.builds.scopes["captures"].index
        until(lambda: not index._late_writes._waiting)  # the thread that writes rows late would meet the broken part
        holder, name = {
            "store": (index, "_store"),
            "catalog": (index, "catalog"),
            "vault": (rim.agent_access, "_inbox"),
        }[part]
        whole = getattr(holder, name)
        broken = Broken(FAULTS[fault])
        if part == "vault":
            tools = whole.__class__(**{one: getattr(whole, one) for one in whole.__slots__} | {"vault": broken})
            holder._inbox = tools
        else:
            setattr(holder, name, broken)
        try:
            told = everything(rim, CALLERS[mode], mode)
        finally:
            setattr(holder, name, whole)
        assert any(outcome in (500, 503, "error") for _, outcome, _ in told)
        for what, _, text in told:
            assert not INSIDE.search(text.replace(str(rim.url), "")), what
            assert str(tmp_path) not in text, what
        assert rim.rest("POST", "/capture", key="work", json={"content": "whole again"}).status_code == 200


def test_a_vault_that_is_gone_and_a_model_that_fails_tell_nothing_either(tmp_path):
    with running(tmp_path / "state") as rim:
        rim.agent_access.workspace("secret").capture("the word is xqbodyzy")
        made = rim.rest("POST", "/capture", key="work", json={"content": "mine"}).json()
        crash = rim.rest("POST", "/capture", key="work", json={"content": f"the {CRASH}"})
        assert crash.status_code in (500, 503)
        assert not INSIDE.search(crash.text)
        aside = rim.world.vault.with_name("aside")
        shutil.move(rim.world.vault, aside)
        told = everything(rim, "work", "legacy")
        told.append(("get", 0, rim.rest("GET", f"/thought/{made['id']}", key="work").text))
        shutil.move(aside, rim.world.vault)
        for what, _, text in told:
            assert not INSIDE.search(text), what
            assert str(tmp_path) not in text, what


def instead(note, make):
    note.unlink()
    make(note)


def emptied(folder, make):
    shutil.rmtree(folder)
    make(folder)


def spoilt(rim, pattern):
    """Files that the daemon has open, overwritten."""
    files = [one for one in rim.world.state.rglob(pattern) if one.is_file()]
    assert files
    for one in files:
        one.write_bytes(b"diary " * 4_000)


REAL = {
    "a note that is a folder": lambda _, note: instead(note, Path.mkdir),
    "a note that is a link": lambda _, note: instead(note, lambda at: at.symlink_to("/etc/passwd")),
    "a note that is a pipe": lambda _, note: instead(note, os.mkfifo),
    "a workspace that is a file": lambda _, note: emptied(note.parent, lambda at: at.write_text("x")),
    "a workspace that is a link": lambda _, note: emptied(note.parent, lambda at: at.symlink_to("/etc")),
    "a catalog of nonsense": lambda rim, _: spoilt(rim, "captures.db"),
    "a store of nonsense": lambda rim, _: spoilt(rim, "captures.lance/**/*"),
    "a store that is gone": lambda rim, _: shutil.rmtree(next(rim.world.state.rglob("captures.lance"))),
    "a ledger of nonsense": lambda rim, _: spoilt(rim, "ledger.db"),
}


@pytest.mark.slow
def test_a_ledger_that_can_not_be_read_lets_nobody_in_and_says_so_in_our_words(tmp_path):
    with running(tmp_path / "state") as rim:
        stream = listening(rim, rim.secrets["work"])
        ledger = rim.world.app.opened.ledger
        whole, ledger._reader = ledger._reader, Broken(FAULTS["bad database"])
        try:
            for method, path, key in (
                ("GET", "/thoughts", "work"),
                ("POST", "/mcp", "full"),
                ("GET", "/readyz", "bad"),
            ):
                answer = rim.rest(method, path, key=key, **({"json": {}} if method == "POST" else {}))
                error = answer.json()["error"]
                assert (answer.status_code, error["code"], error["retryable"]) == (503, "UNAVAILABLE", True)
                assert not INSIDE.search(answer.text)
            assert rim.rest("GET", "/healthz", key=None).status_code == 200
            assert not stream.is_set()
            assert "the ledger can't be read" in rim.world.app.health.facts()["keys"]["problem"]
            assert any(text.startswith("ledger:") for text in rim.world.app.health.degraded())
        finally:
            ledger._reader = whole
        assert rim.rest("GET", "/thoughts", key="work").status_code == 200
        assert not any(text.startswith("ledger:") for text in rim.world.app.health.degraded())
        rim.agent_access.keys.revoke("work", now=now_ms())
        assert stream.wait(30)  # whoever watches over streams has outlived it


REAL_MORE = {
    "a note that is a pipe",
    "a note that is a folder",
    "a workspace that is a file",
    "a catalog of nonsense",
    "a store of nonsense",
}  # others go the same ways


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in REAL_MORE else []) for kind in REAL]
)
def test_what_breaks_on_disk_is_told_without_where_or_what_it_was(tmp_path, kind):
    with running(tmp_path / "state") as rim:
        rim.agent_access.workspace("secret").capture("# Hidden title xqtitlezy\n\nthe word is xqbodyzy")
        made = rim.rest("POST", "/capture", key="work", json={"content": "a note of mine"}).json()
        note = next((rim.world.vault / "Captures/work").glob("*.md"))
        REAL[kind](rim, note)
        told = everything(rim, "work", "2026-07-28", made["id"])
        for what, _, text in told:
            assert not INSIDE.search(text), (what, text)
            for inside in (str(tmp_path), "xqtitlezy", "/etc", "root:"):
                assert inside not in text, (what, text)
            unnamed = re.sub(
                r'(source_path|path|url)\\*": ?\\*"[^"]*', "", text
            )  # by which the note is known to who may read it
            assert note.name not in unnamed or what == "GET /readyz"  # which lists what can't be indexed


def test_no_key_and_no_text_of_a_note_is_in_the_log(rim, caplog):
    with caplog.at_level(logging.INFO):
        space = rim.space()
        made = space.capture("the log must not say xqbodyzy")
        space.rest("POST", "/search", json={"query": "xqqueryzy"})
        space.rest("POST", "/search", json={"query": "xqqueryzy", "nonsense": "xqargumentzy"})
        space.rest("GET", f"/thought/{made['id']}")
        rim.rest("GET", "/thoughts", key="bad")
        rim.rest("GET", f"/thoughts?key={rim.secrets['full']}", key=None)
    ours = [record for record in caplog.records if record.name not in ("httpx2", "uvicorn.access")]  # neither is on
    assert any(record.name == "mcp_server.http.request_log" for record in ours)
    said = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in ours)  # its fields too
    for secret in (*rim.secrets.values(), "xqbodyzy", "xqqueryzy", "xqargumentzy"):
        assert secret not in said
