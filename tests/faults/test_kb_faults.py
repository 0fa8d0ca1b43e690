"""A knowledge base under kill -9 while agents add, upload, change and delete over HTTP; and many agents that upload at once."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from index.model import COLLECTIONS
from syncd.notes.front_matter import decode, split
from tests.support.fast_daemon import Daemon
from tests.support.live_server import client, running
from tests.support.world import World, until

LOST = httpx2.TransportError  # the daemon died while it was asked


@dataclass
class Known:
    """What the agents were told, and what may or may not have come of the calls that nobody answered."""

    accepted: dict[str, tuple[str | bytes, str]] = field(default_factory=dict)  # job → text or file, collection
    texts: dict[str, set[str | None]] = field(
        default_factory=dict
    )  # document → texts that it may have; None: its first
    filed: dict[str, set[str | None]] = field(default_factory=dict)  # document → where it may be filed, likewise
    gone: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)  # documents whose deletion nobody answered
    unanswered: int = 0  # jobs that may be there


class Agents:
    """Three agents at one daemon, until it dies: one adds notes, one uploads, one changes what has been made."""

    def __init__(self, daemon: Daemon, known: Known, life: int) -> None:
        self.known, self.life, self.dying = known, life, threading.Event()
        self.daemon, self.chance = daemon, random.Random(life)
        key = (daemon.state / "key").read_text().strip()
        self.url = json.loads((daemon.state / "daemon.json").read_text())["url"]
        self.headers = {"authorization": f"Bearer {key}", "x-memory-workspace": "default"}
        self.errors: list[str] = []
        self.threads = [
            threading.Thread(target=self._until_lost, args=(work,)) for work in (self.add, self.send, self.change)
        ]

    def _until_lost(self, work: Callable[[httpx2.Client, int], None]) -> None:
        with httpx2.Client(base_url=self.url, headers=self.headers, timeout=60, trust_env=False) as http:
            for number in itertools.count():
                try:
                    work(http, number)
                except LOST:
                    if not self.dying.is_set() and self.daemon.process.poll() is None:
                        self.errors.append("the daemon hung up while it lived")
                    return
                except Exception as error:
                    self.errors.append(repr(error))
                    return

    def add(self, http: httpx2.Client, number: int) -> None:
        text = f"note {self.life}-{number} of the knot\r\n\u2028 exactly so "
        given = {"text": text, "collection": COLLECTIONS[number % 3], "tags": ["knot"]}
        self._accepted(lambda: http.post("/api/v1/jobs", json=given), text, COLLECTIONS[number % 3])

    def send(self, http: httpx2.Client, number: int) -> None:
        data = f"file {self.life}-{number}\nof the ruff\n".encode()
        file = {"file": (f"ruff {self.life}-{number}.txt", data)}
        self._accepted(lambda: http.post("/api/v1/jobs", files=file), data, COLLECTIONS[0])
        time.sleep(0.05)

    def _accepted(self, ask: Callable[[], httpx2.Response], what: str | bytes, collection: str) -> None:
        try:
            answer = ask()
        except LOST:
            self.known.unanswered += 1
            raise
        assert answer.is_success, answer.text
        self.known.accepted[answer.json()["job_id"]] = what, collection

    def change(self, http: httpx2.Client, number: int) -> None:
        known = self.known
        answer = http.get("/api/v1/documents", params={"limit": 50, "type": "note"})
        assert answer.is_success, answer.text
        told = answer.json()["documents"]
        if not told:
            time.sleep(0.05)
            return
        one = self.chance.choice(told)
        id = one["document_id"]
        if number % 5 == 4:
            known.perhaps.add(id)
            answer = http.delete(f"/thought/{id}")
            known.perhaps.discard(id)
            assert answer.is_success, answer.text
            known.gone.add(id)
        elif number % 2:
            text = f"text {self.life}-{number}, in the place of another"
            known.texts.setdefault(id, {None}).add(text)
            answer = http.patch(f"/api/v1/notes/{id}", json={"text": text})
            assert answer.is_success or answer.status_code == 409, answer.text
            known.texts[id] = {text} if answer.is_success else known.texts[id] - {text}
        else:
            wanted = self.chance.choice(COLLECTIONS)
            before = known.filed.get(id, {None})
            known.filed[id] = before | {wanted}
            answer = http.put(f"/api/v1/documents/{id}/tags", json={"tags": ["moved", f"collection:{wanted}"]})
            assert answer.is_success or answer.status_code == 409, answer.text
            known.filed[id] = {wanted} if answer.is_success else before

    def live(self, seconds: float) -> None:
        """Work for so long, and be killed."""
        for thread in self.threads:
            thread.start()
        time.sleep(seconds)
        self.dying.set()
        self.daemon.kill()
        for thread in self.threads:
            thread.join()
        assert self.errors == []


def killed_amid_jobs(folder: Path, kills: int) -> None:
    known, chance = Known(), random.Random(4711)
    (folder / "vault/Captures/default").mkdir(parents=True)
    for life in range(kills):
        Agents(Daemon(folder), known, life).live(chance.uniform(0.3, 2.5))
    with Daemon(folder) as daemon:
        queue: dict[str, int] = {}

        def ended() -> bool:
            queue.update(daemon.ask("queue.list", limit=1)["counts"])
            return not queue["queued"] and not queue["running"]

        until(ended, 300)
        daemon.settled()
        agents = Agents(daemon, known, kills)
        with httpx2.Client(base_url=agents.url, headers=agents.headers, timeout=60, trust_env=False) as http:
            audit(folder, known, http, queue)
        assert daemon.stop() == 0
    world = World(folder)
    try:
        left = world.app.opened.queue.sweep(older_s=0)  # files whose job was never written down
        assert len(left) <= known.unanswered
        assert not any((folder / "state/staged").iterdir())
        before = world.dump()
        world.run()
        assert world.dump() == before, "nothing was left to do"
        assert before == world.rebuilt(folder / "other")
    finally:
        world.close()
    sys.stdout.write(
        f"{kills} kills, {len(known.accepted)} jobs accepted, {known.unanswered} unanswered, {len(known.texts)} documents"
        f" given another text, {len(known.filed)} filed elsewhere, {len(known.gone)} deleted\n"
    )


def audit(folder: Path, known: Known, http: httpx2.Client, queue: dict[str, int]) -> None:
    """Hold what is there against what the agents were told."""
    made: Counter[str] = Counter()
    for job, (what, collection) in known.accepted.items():
        told = http.get(f"/api/v1/jobs/{job}").json()
        assert told["status"] == "done", told
        made[told["document_id"]] += 1
        answer = http.get(f"/api/v1/documents/{told['document_id']}")
        if told["document_id"] in known.gone:
            assert answer.status_code == 404, "an acknowledged deletion"
        elif answer.status_code == 404:
            assert told["document_id"] in known.perhaps
        else:
            one, id = answer.json(), told["document_id"]
            assert one["collection"] in {where or collection for where in known.filed.get(id, {None})}
            if isinstance(what, str):
                assert one["content"] in {text or what for text in known.texts.get(id, {None})}
    assert set(made.values()) == {1}, "each job made a document of its own"
    assert queue["failed"] == 0
    assert len(known.accepted) <= queue["done"] <= len(known.accepted) + known.unanswered
    there = len(list((folder / "vault/Captures/default").rglob("*.md")))  # not the generated context
    gone = queue["done"] - there
    assert len(known.gone) <= gone <= len(known.gone) + len(known.perhaps)
    sent = {what for what, _ in known.accepted.values() if isinstance(what, bytes)}
    assert sent <= {file.read_bytes() for file in (folder / "vault/Captures").rglob("*.txt")}
    until(lambda: not list((folder / "vault").rglob(".memex-*")))  # a note that is being written has one for a moment


@pytest.mark.faults
def test_killed_amid_jobs_each_ends_once_and_nothing_is_lost(tmp_path):
    killed_amid_jobs(tmp_path, 1)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_killed_again_and_again_amid_jobs_each_ends_once_and_nothing_is_lost(tmp_path):
    killed_amid_jobs(tmp_path, int(os.environ.get("MEMEX_KILLS", "20")))


def uploaded_at_once(folder: Path, clients: int, files: int) -> None:
    async def one(rim: Any, number: int, sent: dict[str, tuple[str, bytes]]) -> None:
        async with client(rim, key="work", path="/mcp/kb") as mcp:

            async def ask(tool: str, **given: Any) -> Any:
                told = await mcp.call_tool(tool, given)
                assert not told.is_error, told
                return told.structured_content

            for turn in range(files):
                chance = random.Random(f"{number}-{turn}")
                data = f"client {number} file {turn}\n{'of words ' * chance.randint(1, 400)}\n".encode()
                size = chance.randint(1, len(data))
                pieces = [data[at : at + size] for at in range(0, len(data), size)][:20]
                data = b"".join(pieces)
                name = f"report {turn}.txt"  # the same of all clients
                upload = (await ask("kb_upload_start", filename=name, total_size=len(data), tags=[f"c{number}"]))[
                    "upload_id"
                ]
                for index in chance.sample(range(len(pieces)), len(pieces)):
                    text = base64.b64encode(pieces[index]).decode()
                    await ask("kb_upload_chunk", upload_id=upload, chunk_index=index, data=text)
                job = (await ask("kb_upload_finish", upload_id=upload))["job_id"]
                assert (await ask("kb_upload_finish", upload_id=upload))["job_id"] == job
                sent[job] = (f"c{number}", data)

    async def all_at_once(rim: Any) -> dict[str, tuple[str, bytes]]:
        sent: dict[str, tuple[str, bytes]] = {}
        await asyncio.gather(*(one(rim, number, sent) for number in range(clients)))
        return sent

    with running(folder) as rim:
        sent = asyncio.run(all_at_once(rim))
        assert len(sent) == clients * files
        told: dict[str, Any] = {}

        def ended() -> bool:
            told.update(rim.rest("GET", "/api/v1/status", key="work").json()["queue"])
            return not told["queued"] and not told["running"]

        until(ended, 600)
        assert (told["done"], told["failed"]) == (clients * files, 0)
        ids = set()
        for job, (tag, data) in sent.items():
            made = rim.rest("GET", f"/api/v1/jobs/{job}", key="work").json()
            one = rim.rest("GET", f"/api/v1/documents/{made['document_id']}", key="work").json()
            assert one["tags"][:1] == [tag]
            note = rim.world.vault / rim.agent_access.workspace("work").get(made["document_id"]).record.path
            assert note.with_suffix("").read_bytes() == data
            assert split(decode(note.read_bytes()))[1].strip() == data.decode().strip()
            ids.add(made["document_id"])
        assert len(ids) == clients * files
        stored = [path for path in (rim.world.vault / "Captures/work/Files").iterdir() if path.suffix == ".txt"]
        assert len(stored) == clients * files


@pytest.mark.slow
def test_agents_that_upload_at_once_lose_and_mix_up_nothing(tmp_path):
    uploaded_at_once(tmp_path, 3, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_eight_agents_that_upload_fifty_files_each_lose_and_mix_up_nothing(tmp_path):
    uploaded_at_once(tmp_path, 8, 50)
