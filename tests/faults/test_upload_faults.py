"""Uploads under kill -9, at every call that changes the disk and in a real daemon; many clients; large files; memory."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from index.errors import NotFound
from index.timings import now_ms
from syncd.uploads.upload_sessions import LIVES_MS
from tests.support.fast_daemon import ROOT, Daemon
from tests.support.live_server import Rim, running
from tests.support.mcp_agent import Agent, agent, member
from tests.support.upload_crash import PARTS, WHOLE, opened
from tests.support.world import until

MIB = 1_048_576


def lived(state: Path, at: int) -> tuple[bool, list[str]]:
    """Whether a process lived through its work, and what it was told until it died."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.upload_crash", str(state), str(at)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert done.returncode in (0, -signal.SIGKILL)
    return done.returncode == 0, done.stdout.decode().split("\n")[:-1]


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_an_upload_goes_on_or_is_finished_after_a_kill_at_any_call(tmp_path):
    killed = 0
    for at in range(1, 1_000):
        state = tmp_path / f"state{at}"
        state.mkdir(mode=0o700)
        through, told = lived(state, at)
        if through:
            assert told[-1] == "end"
            break
        killed += 1
        ledger, queue, uploads = opened(state)
        if told:
            id, *rest = told
            acknowledged = {int(line.split()[1]) for line in rest if line.startswith("chunk")}
            jobs = [line for line in rest if len(line) == 32]
            if not jobs:  # what was acknowledged needs not be sent again
                with contextlib.suppress(NotFound):  # the crash came after the job was queued, and before it was told
                    for index in {0, 1, 2} - acknowledged:
                        uploads.put_chunk("k1", "default", id, index, PARTS[index])
            job = uploads.finish("k1", "default", id)
            assert job.id == uploads.finish("k1", "default", id).id
            assert queue.staged.find(job.id).read_bytes() == WHOLE
            for one in jobs:
                assert queue.staged.find(one).read_bytes() == WHOLE
        assert len(queue.jobs()) <= 2
        assert [one.kind for one in queue.jobs() if not queue.staged.find(one.id)] == []
        uploads.remove_stale(now_ms() + LIVES_MS + 1_000)
        left = [path.name for path in (state / "uploads").rglob("*")]
        assert left == [], (at, told)
        queue.sweep(older_s=-1)
        assert len(list((state / "staged").iterdir() if (state / "staged").exists() else [])) == len(queue.jobs())
        ledger.close()
    assert killed > 40


# A real daemon


class Sender:
    """A client of a daemon by REST."""

    def __init__(self, daemon):
        told = json.loads((daemon.state / "daemon.json").read_text())
        self.host, _, self.port = told["url"].removeprefix("http://").partition(":")
        self.key = (daemon.state / "key").read_text().strip()

    def send(self, body, *, stop=None, name="a.txt", length=None):
        """The id of the job that a file became; None when the connection broke, or was cut after `stop` bytes."""
        head = f'--SEAM\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        size = len(body) if length is None else length
        lines = [
            "POST /api/v1/jobs HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.key}",
            "Content-Type: multipart/form-data; boundary=SEAM",
            f"Content-Length: {len(head) + size + len(TAIL)}",
            "Connection: close",
        ]
        try:
            with socket.create_connection((self.host, int(self.port)), timeout=60) as link:
                link.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + head)
                for piece in [body] if length is None else (body for _ in range(length // len(body))):
                    link.sendall(piece[:stop] if stop is not None else piece)
                    if stop is not None:
                        return None
                link.sendall(TAIL)
                answer = http.client.HTTPResponse(link)
                answer.begin()
                told = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        assert answer.status == 202, told
        return told["job_id"]


TAIL = b"\r\n--SEAM--\r\n"


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_daemon_killed_during_uploads_has_every_file_that_it_acknowledged(tmp_path):
    """kill -9 of a real daemon at any time: each job that was told has its file whole, and nothing else is left."""
    chance, told = random.Random(7), {}
    for life in range(8):
        with Daemon(tmp_path) as daemon:
            sender = Sender(daemon)

            def send(number, sender=sender, life=life):
                for count in range(1_000):
                    text = f"file {life}-{number}-{count} ".encode() * chance.randrange(1, 60_000)
                    if (job := sender.send(text, name=f"{life}-{number}-{count}.txt")) is None:
                        return
                    told[job] = text

            senders = [threading.Thread(target=send, args=(number,)) for number in range(3)]
            for thread in senders:
                thread.start()
            time.sleep(chance.uniform(0.3, 1.5))
            daemon.kill()
            for thread in senders:
                thread.join(60)
    assert len(told) > 20
    ledger, queue, uploads = opened(tmp_path / "state")
    for job, text in told.items():
        found = queue.job(job)
        assert found.status in ("queued", "running", "done")
        if found.status != "done":
            assert queue.staged.find(job).read_bytes() == text
    uploads.remove_stale(now_ms() + LIVES_MS + 1_000)
    assert list((tmp_path / "state/uploads").iterdir()) == []
    ledger.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_large_file_does_not_grow_the_daemon(tmp_path):
    """500 MB by REST and into the vault, and 500 MB in chunks: what the process holds stays as it was."""
    with Daemon(tmp_path) as daemon:
        process, sender = psutil.Process(daemon.process.pid), Sender(daemon)
        warm = sender.send(b"%PDF-" + b"." * MIB, name="warm.pdf")
        until(lambda: daemon.ask("queue.show", id=warm)["status"] == "failed", 120)
        before = process.memory_info().rss
        most, done = [before], threading.Event()

        def look():
            while not done.wait(0.02):
                most.append(process.memory_info().rss)

        watching = threading.Thread(target=look)
        watching.start()
        begun = time.monotonic()
        job = sender.send(b"%PDF-" + b"." * (MIB - 5), length=500 * MIB, name="a.pdf")
        took = time.monotonic() - begun
        until(lambda: daemon.ask("queue.show", id=job)["status"] == "failed", 300)  # it is no PDF, and kept
        done.set()
        watching.join()
        assert (daemon.vault / "Captures/default/Files/a.pdf").stat().st_size == 500 * MIB
        assert daemon.stop() == 0
    grown = (max(most) - before) / MIB
    print(f"500 MB by REST: {took:.1f} s, grown by {grown:.1f} MiB")  # noqa: T201 - what -s shows
    assert grown < 32
    ledger, queue, uploads = opened(tmp_path / "state")
    own = psutil.Process()
    piece = b"." * MIB
    id = uploads.start("k", "default", filename="b.txt", total_size=500 * MIB).upload_id
    for index in range(500):
        uploads.put_chunk("k", "default", id, index, piece)
    before = own.memory_info().rss
    file = queue.staged.find(uploads.finish("k", "default", id).id)
    assert own.memory_info().rss - before < 8 * MIB
    assert file.stat().st_size == 500 * MIB
    ledger.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_clients_upload_fifty_files_each_at_once(tmp_path):
    with Daemon(tmp_path) as daemon:
        sender, jobs, errors = Sender(daemon), {}, []

        def send(client):
            for number in range(50):
                text = f"client {client} file {number} ".encode() * (1 + (client * 7 + number) % 90) * 20
                job = sender.send(text, name=f"{client}-{number}.txt")
                if job is None:
                    errors.append((client, number))
                else:
                    jobs[job] = text

        clients = [threading.Thread(target=send, args=(client,)) for client in range(8)]
        begun = time.monotonic()
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join(300)
        took = time.monotonic() - begun
        assert errors == []
        assert len(jobs) == 400
        until(lambda: not list((daemon.state / "uploads").iterdir()))
        assert daemon.stop() == 0
    print(f"400 files of 8 clients: {took:.1f} s")  # noqa: T201 - what -s shows
    ledger, queue, _ = opened(tmp_path / "state")
    for job, text in jobs.items():
        if queue.job(job).status != "done":
            assert queue.staged.find(job).read_bytes() == text
    ledger.close()


# Agents


FILES = 50
AGENTS = 8


def uploaded(one: Agent, name: str, data: bytes, size: int, order: random.Random) -> str:
    """The id of the job that a file became, its chunks in any order and some of them twice."""
    id = one.good("kb_upload_start", filename=name, total_size=len(data))["upload_id"]
    pieces = [(index, data[at : at + size]) for index, at in enumerate(range(0, len(data), size))]
    order.shuffle(pieces)
    for index, piece in [*pieces, *pieces[:1]]:
        one.good("kb_upload_chunk", upload_id=id, chunk_index=index, data=base64.b64encode(piece).decode())
    return str(one.good("kb_upload_finish", upload_id=id)["job_id"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_agents_upload_fifty_files_each_at_once_and_find_each(tmp_path):
    """Real MCP clients over HTTP; nothing is lost, nothing doubled, and each agent finds its own."""
    with running(tmp_path / "state") as rim:
        spaces = [rim.space() for _ in range(AGENTS)]
        found: dict[int, list[tuple[str, bytes]]] = {}
        errors: list[BaseException] = []

        def work(number: int) -> None:
            order, jobs = random.Random(number), []
            try:
                with member(spaces[number]) as one:
                    for count in range(FILES):
                        line = f"word{number}x{count} of agent {number}\n".encode()
                        data = line * order.randrange(1, 400)
                        jobs.append((uploaded(one, f"file {count}.txt", data, 4_000, order), data))
                    found[number] = jobs
            except BaseException as error:
                errors.append(error)

        begun = time.monotonic()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(AGENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        took = time.monotonic() - begun
        assert errors == []
        assert sum(map(len, found.values())) == AGENTS * FILES
        until(lambda: rim.world.app.opened.queue.counts()["done"] == AGENTS * FILES, 600)
        print(f"400 files of 8 agents: taken in {took:.1f} s, read in {time.monotonic() - begun:.1f} s")  # noqa: T201 - what -s shows
        for number, jobs in found.items():
            with member(spaces[number]) as one:
                assert one.good("kb_status")["documents"]["by_type"]["file"] == FILES
                for job, data in jobs[::7]:
                    (told,) = one.good("kb_jobs", job_id=job)["jobs"]
                    assert one.good("kb_get", id=told["document_id"], max_tokens=50_000)["content"] == data.decode()
            stored = sorted((spaces[number].folder / "Files").glob("*.txt"))
            assert sorted(file.read_bytes() for file in stored) == sorted(data for _, data in jobs)
        assert list((rim.world.state / "uploads").iterdir()) == []
        assert list((rim.world.state / "staged").iterdir()) == []


@contextlib.contextmanager
def connected(daemon: Daemon) -> Iterator[Agent]:
    """An agent of a daemon."""
    url = json.loads((daemon.state / "daemon.json").read_text())["url"]
    key = (daemon.state / "key").read_text().strip()
    with agent(Rim(url, None, None, {"full": key})) as one:  # type: ignore[arg-type]  # as far as a client sees it
        yield one


def cut_short(daemon: Daemon, seconds: float, tool: str, **given: Any) -> None:
    """kill -9 of the daemon so long after a call has begun."""
    begun = threading.Event()

    def work() -> None:
        with contextlib.suppress(Exception), connected(daemon) as one:  # its daemon dies
            begun.set()
            one.ask(tool, **given)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert begun.wait(60)
    time.sleep(seconds)
    daemon.kill()
    thread.join(60)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_an_agent_s_upload_goes_on_after_a_kill_during_and_after_every_call(tmp_path):
    chance = random.Random(3)
    parts = [f"part {n} ".encode() * 90_000 for n in range(3)]
    with Daemon(tmp_path) as daemon, connected(daemon) as one:
        id = one.good("kb_upload_start", filename="long.txt", total_size=sum(map(len, parts)))["upload_id"]
    for index, part in enumerate(parts):
        given = {"upload_id": id, "chunk_index": index, "data": base64.b64encode(part).decode()}
        with Daemon(tmp_path) as daemon:
            cut_short(daemon, chance.uniform(0, 0.06), "kb_upload_chunk", **given)
        with Daemon(tmp_path) as daemon, connected(daemon) as one:
            told = one.good("kb_upload_chunk", **given)
            assert told["received_bytes"] == sum(map(len, parts[: index + 1]))
    with Daemon(tmp_path) as daemon:
        cut_short(daemon, chance.uniform(0, 0.06), "kb_upload_finish", upload_id=id)
    with Daemon(tmp_path) as daemon, connected(daemon) as one:
        job = one.good("kb_upload_finish", upload_id=id)["job_id"]
        assert one.good("kb_upload_finish", upload_id=id)["job_id"] == job
        until(lambda: one.good("kb_jobs", job_id=job)["jobs"][0]["status"] == "done", 120)
        assert len(one.good("kb_jobs")["jobs"]) == 1
        stored = list((tmp_path / "vault/Captures/default/Files").glob("*.txt"))
        assert [file.read_bytes() for file in stored] == [b"".join(parts)]
    ledger, _, uploads = opened(tmp_path / "state")
    uploads.remove_stale(now_ms() + LIVES_MS + 1_000)  # a kill amid a removal leaves what the daemon removes later
    assert list((tmp_path / "state/uploads").iterdir()) == []
    ledger.close()
