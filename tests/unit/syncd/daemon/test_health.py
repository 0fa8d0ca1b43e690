"""What is degraded is told while its cause lasts and no longer, and a search repeats only what makes it incomplete.

`ENTRIES` has a case for each part and for each sentence of the program; the last two tests find those without one."""

from __future__ import annotations

import re
import shutil
import sqlite3
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from index.errors import Conflict, Unavailable
from index.model import Query
from syncd.app import App
from syncd.commits import committer
from syncd.daemon import health
from syncd.enrichment import enricher
from syncd.files.conversion import sandbox_report
from syncd.files.conversion.sandbox_layers import SandboxLayers
from syncd.git.repository_state import UNWELL, RepositoryState
from syncd.history import audit_log
from syncd.indexes import index_builds
from syncd.jobs import worker
from syncd.remote import branch_sync
from syncd.settings.automation import GitSettings
from syncd.state.ledger import DAMAGED
from syncd.state.vault_claim import VaultClaim
from syncd.sync import pipeline
from syncd.watch.watcher import WatcherState
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.git_states import run
from tests.support.sources import literals
from tests.support.world import World, settings_of, until

ENTRIES: list[tuple[str, str, object]] = []  # part, the sentence as the program has it, what makes and ends its cause
SOURCES = [path for folder in ("index", "syncd") for path in sorted(Path(folder).rglob("*.py"))]
NOT_TOLD = {  # sentences of the same form that health never tells
    "git: the vault has no Git history, so Memex commits nothing",  # a vault needs none
    "reranker: it took longer than .* s; results keep the order of the search",  # of one answer alone
    "reranker: it runs only in the daemon; results keep the order of the search",  # the same
}


def entry(part, *sentences):
    """A case of each of these sentences. It makes the cause, yields, takes the cause away and lets time pass."""

    def register(case):
        ENTRIES.extend((part, sentence, case) for sentence in sentences)
        return case

    return register


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("health"))
    for number in range(30):
        made.write(f"Note {number}.md", f"words of a note {number}")
    made.write("Captures/default/C.md", "words of a capture")
    run(made.vault, "init", "-q", "-b", "main")
    made.run()
    yield made
    made.close()


@entry("index", index_builds.READING, index_builds.NEVER_READ)
def first_listing(world, sentence):
    world.app.close()
    shutil.rmtree(world.state / "index")
    if sentence == index_builds.NEVER_READ:  # a command that waits for nothing says so
        world.app = App(settings_of(world.vault, world.state), embedder=fake_embedder(world.encoder), later=True)
        yield
        world.app.close()
    world.app = world._open()
    if sentence == index_builds.READING:
        yield
    world.run()


@entry("index", "index: it was damaged and is being rebuilt", index_builds.MENDING)
def damaged(world, sentence):
    world.app.close()
    build = world.state / "index" / (world.state / "index/current").read_text().strip()
    if sentence == index_builds.MENDING:
        shutil.rmtree(build / "captures.lance/chunks.lance/data")
    else:
        for manifest in (build / "captures.lance/chunks.lance/_versions").iterdir():
            manifest.write_bytes(b"no manifest" * 100)
    world.app = world._open()
    yield
    world.run()


class Flaky(FakeEncoder):
    """A model that fails while it is told to, at long texts or at all."""

    failing = 0

    def encode(self, texts, *, kind, urgent):
        if self.failing > urgent:
            raise Unavailable("the model server is away")
        return super().encode(texts, kind=kind, urgent=urgent)


@entry("index", "index: only searches by words find 1 note")
def words_only(world, _):
    flaky = Flaky()
    world.reopen(fake_embedder(flaky))
    note = world.write("Captures/default/Late.md", "words of a late capture")
    flaky.failing = 1
    world.run()
    yield
    flaky.failing = 0
    until(lambda: world.app.opened.embedder.state == "ready")
    world.run()
    note.unlink()
    world.run()


@entry("index", "encoder: the model server is away; searches use full text only")
def no_encoder(world, _):
    flaky = Flaky()
    world.reopen(fake_embedder(flaky))
    flaky.failing = 2
    world.app.agent_access.workspace("default").search(Query("words of a question"))
    yield
    flaky.failing = 0
    until(lambda: world.app.opened.embedder.state == "ready")


@entry("index", "index: built with another encoder; searches use full text only until it is rebuilt")
def another_encoder(world, _):
    world.reopen(fake_embedder(FakeEncoder(identity="another")))
    yield
    world.app.opened.sync.run()
    assert world.app.opened.sync._reason_for_pass() == "build"
    world.app.opened.sync._rebuild()


@entry("sync", pipeline.BUILDING, pipeline.LOST)
def building(world, sentence):
    seen = []
    if lost := sentence == pipeline.LOST:
        shutil.rmtree(world.app.opened.builds.live.folder)
    world.app.opened.sync.rebuild(fresh=True, progress=lambda *_: seen.append(told(world, lost)))
    yield seen[0]


@entry("sync", pipeline.HELD)
def removals_held(world, _):
    notes = {path: path.read_bytes() for path in world.vault.rglob("*.md")}  # also the capture, or no agent hears of it
    for path in notes:
        path.unlink()
    world.app.opened.sync.run()
    yield
    for path, content in notes.items():
        path.write_bytes(content)
    world.app.opened.sync.run()


@entry("sync", "vault: some folders can't be read, so their indexed notes are kept; memex status names them")
def folder_unread(world, _):
    world.app.opened.sync._index_pass.unseen = True  # root, who runs some of these tests, may read every folder
    yield
    world.app.opened.sync.run()


@entry("sync", "vault missing: its folder is gone, empty or can't be opened; the index is kept")
def vault_missing(world, _):
    away = world.vault.rename(world.vault.with_name("away"))
    world.app.opened.sync.run()
    yield
    away.rename(world.vault)
    world.app.opened.sync.run()


@entry("sync", "indexing: the disk is full", "indexing: a pass failed unexpectedly; see the log")
def pass_failed(world, sentence):
    sync = world.app.opened.sync
    sync._record_failure(sentence, 0.0, [])
    yield
    sync.start()
    until(lambda: not sync.problems)
    sync.stop()
    sync._pending_paths.resume()


@entry("inbox", health.HOMELESS, health.BLOCKED, health.MOVED)
def no_workspace(world, sentence):
    world.app.services.manual_moves.is_inbox_moved = sentence == health.MOVED  # tests of manual moves move it
    away = (world.vault / "Captures").rename(world.vault / ".captures")
    if sentence == health.BLOCKED:
        (world.vault / "Captures").write_text("no folder")
    yield
    world.app.services.manual_moves.is_inbox_moved = False
    (world.vault / "Captures").unlink(missing_ok=True)
    away.rename(world.vault / "Captures")


@entry("watch", "watch: the watcher is not running; restart the daemon")
def watcher(world, sentence):
    state = [WatcherState("degraded", sentence.removeprefix("watch: "))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.app.health, "_watcher_state", lambda: state[0])
        yield
        state[0] = WatcherState("ok")
        assert told(world) == ([], [], [])


@entry("daemons", health.ELSEWHERE)
def another_daemon(world, _):
    other = VaultClaim(world.vault)
    world.app.claim.release()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.app.health, "_watcher_state", lambda: WatcherState("ok"))
        other.require()
        assert world.app.claim.take() is not None
        yield
        other.release()
        assert told(world) == ([], [], [])
    world.app.claim.release()


@entry("daemons", health.ELSEWHERE)
def another_daemon_beside_a_command(world, _):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(health, "find_holder", lambda vault: 7 if vault == world.vault else 0)
        yield


@entry("writes", health.UNWRITABLE)
def no_right_to_write(world, _):  # real rights: tests/unit/syncd/vault/test_vault_permissions.py
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.app.opened.vault, "can_write", lambda folder="": folder != "Captures/default")
        yield


@entry("clock", health.CLOCK)
def clock_before_1970(world, _):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(health, "time", SimpleNamespace(time=lambda: -1.0, time_ns=time.time_ns))
        yield


@entry("reranker", "reranker: the model can't be loaded; results keep the order of the search")
@entry("reranker", "reranker: still loading; until then results keep the order of the search")
def reranker(world, sentence):  # a real one and its failures: tests/unit/index/search/test_reranker.py
    now = [sentence]
    with pytest.MonkeyPatch.context() as patch:
        parts = world.app.health.parts
        of = [replace(part, sentences=lambda: now) if part.name == "reranker" else part for part in parts]
        patch.setattr(world.app.health, "parts", of)
        yield
        now.clear()


@entry("enrichment", enricher.FAILS)
def endpoint_away(world, _):
    of = world.app.opened.enricher
    of._note_failure("the endpoint is away")
    of.add_retry("default", "a note that is deleted meanwhile", 0)
    yield
    of._resting_until = 0.0  # its pause is over
    world.app.backfill.retry_failed()


@entry("enrichment", enricher.DEFECTIVE)
def defective_note(world, _):
    of, note = world.app.opened.enricher, world.write("Captures/default/D.md", "---\nid: d\n---\nno label")
    world.run()
    of._defective["Captures/default/D.md"] = "IndexError"
    yield
    note.unlink()
    world.run()


@entry("repository", *UNWELL.values())
def repository(world, sentence):
    follower, states = world.app.head_follower, {sentence: state for state, sentence in UNWELL.items()}
    now = [RepositoryState(states[sentence])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follower._repo, "read_state", lambda: now[0])
        follower._fingerprint, follower._state_read_at = None, 0.0
        follower._check_state(1e6)
        yield
        now[0] = RepositoryState("ok")  # mended where no file of the repository shows it: its owner, say
        follower._check_state(1e6 + 61)


@entry("exchange", branch_sync.UNREACHED)
def remote_away(world, _):
    remote, bare = world.app.services.remote, world.vault.with_name("bare.git")
    run(world.vault, "commit", "-q", "--allow-empty", "-m", "one")
    run(world.vault, "config", "branch.main.remote", "origin")
    run(world.vault, "config", "branch.main.merge", "refs/heads/main")
    run(world.vault, "remote", "add", "origin", str(bare))
    with pytest.raises(Unavailable):
        remote.sync()
    yield
    run(world.vault, "clone", "-q", "--bare", ".", str(bare))
    remote._due = 0.0  # its pause is over
    remote.tick()
    assert world.app.health.degraded() == []
    bare.rename(bare.with_name("gone.git"))
    with pytest.raises(Unavailable):
        remote.sync()
    run(world.vault, "remote", "remove", "origin")
    remote._due = 0.0
    remote.tick()  # which fails, as no remote is left, and is no fault


@entry(
    "exchange",
    *(sentence for sentence in committer._STATES.values() if sentence != committer._NONE),
    committer._BLOCKED,
    "git: Memex can't commit its changes now (Git failed; see the daemon's log)",
)
def commits_held(world, sentence):
    commits, why = world.app.services.commits, [sentence]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "hindrance", lambda: why[0])
        commits._run_on_head(lambda _: "", 0.0)
        yield
        why[0] = ""
        commits._tried = time.monotonic() - committer.AGAIN_S  # nothing is left to commit, that would tell
        commits.tick()


@entry(
    "webhooks",
    "webhooks: off, because the file hook-secret in the state folder is empty, a link, or accessible to other users; "
    "create a new secret: memex hook secret --rotate",
)
def loose_secret(world, _):
    secret = world.state / "hook-secret"
    secret.write_text("x" * 64)
    secret.chmod(0o644)
    yield
    secret.chmod(0o600)


@entry("ledger", "ledger: it can't be read, so Memex refuses all keys; see memex doctor")
def ledger_unread(world, _):
    ledger = world.app.opened.ledger
    whole, ledger._reader = ledger._reader, sqlite3.connect(":memory:", check_same_thread=False)
    with pytest.raises(Unavailable):
        ledger.query("SELECT 1 FROM keys")
    yield
    ledger._reader = whole
    ledger.query("SELECT 1 FROM keys")  # as each request does


@entry("ledger", DAMAGED)
def ledger_damaged(world, _):
    ledger, file = world.app.opened.ledger, world.state / "nonsense"
    file.write_bytes(b"nonsense" * 1000)
    whole, ledger._reader = ledger._reader, sqlite3.connect(file, check_same_thread=False)
    with pytest.raises(Unavailable):
        ledger.query("SELECT 1 FROM keys")
    ledger._reader = whole
    ledger.query("SELECT 1 FROM keys")
    yield
    ledger._damage = ""  # a restart with another ledger
    ledger.query("SELECT 1 FROM keys")


@entry("audit", audit_log.FAILS, audit_log.UNREAD)
def audit_unwritten(world, sentence):
    world.app.opened.audit.problem = sentence
    yield
    world.app.jobs.run("maintenance")


@entry("queue", "queue: several jobs in a row have failed; memex job queue shows the reasons")
def failing_jobs(world, _):
    of, counts = world.app.worker, {"failed": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of._queue, "counts", lambda: counts)
        of._streak = worker.STREAK
        yield
        counts.clear()  # its owner has removed them, or their time was over


@entry("queue", f"queue: a job has been waiting for {worker.LATE}; memex job queue shows it")
def job_waits(world, _):
    since = [1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.app.worker._queue, "due_since", lambda: since[0])
        yield
        since[0] = None


@entry("queue", f"queue: a job has been running for {worker.LATE}; it may hang")
def job_hangs(world, _):
    world.app.worker._under_way["id"] = 1
    yield
    world.app.worker._under_way.clear()


@entry("sandbox", "sandbox: Memex refuses PDF and Office files")
def layer_missing(world, _):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox_report, "probe_layers", lambda: SandboxLayers(7, seccomp=False))
        patch.setattr("sys.platform", "linux")
        patch.setattr(world.app.health, "_watcher_state", lambda: WatcherState("ok"))
        yield


@entry("jobs", "jobs: 'rare' failed in its last run; memex job list shows the reason")
def job_failed(world, _):
    jobs, failing = world.app._build_jobs(), [True]

    def work():
        if failing:
            raise Unavailable("not yet")

    world.app.jobs = jobs
    jobs.every("rare", 7 * 86400.0, work, after=0.0)
    jobs.start()
    until(lambda: jobs.states()["rare"].failures)
    until(lambda: (jobs.states()["rare"].next_run_at or 1e18) / 1000 - time.time() <= 3601)  # it waits for no week
    yield
    failing.clear()
    jobs.run("rare")
    jobs.stop()
    world.app.jobs = world.app._build_jobs()


@entry("jobs", "jobs: 'long' has been running for 61 minutes; it may hang")
def job_too_long(world, _):
    jobs = world.app.jobs
    jobs.every("long", 3600.0, lambda: None)
    jobs._jobs["long"].began = time.monotonic() - 61 * 60
    yield
    jobs._jobs["long"].began = None


def told(world, lost=False):
    """What status says now, and each search: the owner's, which may fail where the index is `lost`, and an agent's."""
    search, of_search = world.app.operations["search"], world.app.health.degraded_search
    owner = of_search() if lost else search({"query": "words", "mode": "text"}, lambda _: None)["degraded"]
    return world.app.health.degraded(), owner, of_search(("default",))


@pytest.mark.parametrize(
    ("part", "sentence", "case"), ENTRIES, ids=[f"{part} {number}" for number, (part, *_) in enumerate(ENTRIES)]
)
def test_each_entry_is_told_while_its_cause_lasts_and_no_longer(world, part, sentence, case):
    assert told(world) == ([], [], [])
    of_search = {part.name for part in world.app.health.parts if part.of_search} | {"index"}
    with contextmanager(case)(world, sentence) as seen:
        status, owner, agent = seen or told(world)
    form = re.compile(re.escape(sentence).replace(r"\{\}", ".+"))
    assert any(map(form.search, status)), status
    for answer in (owner, agent):
        assert any(map(form.search, answer)) == (part in of_search), answer
        assert not any(one.startswith("git:") for one in answer)
    assert told(world) == ([], [], [])


def test_every_part_has_an_entry(world):
    assert {part for part, *_ in ENTRIES} == {part.name for part in world.app.health.parts} | {"index"}


@pytest.mark.slow
def test_every_sentence_of_the_program_has_an_entry():
    sentences = {sentence for _, sentence, _ in ENTRIES}
    forms = "|".join(sorted({re.escape(sentence.partition(":")[0]) for sentence in sentences}))
    patterns = {pattern for path in SOURCES for pattern in literals(path, re.compile(f"({forms}): ."), plain=NOT_TOLD)}
    assert len(patterns) > 25
    starts = [re.escape(sentence) for sentence in sentences]
    left = {
        pattern
        for pattern in patterns - NOT_TOLD
        if not any(re.match(pattern, sentence) for sentence in sentences) and not pattern.startswith(tuple(starts))
    }
    assert left == set()


def test_a_sync_without_a_remote_is_no_fault(tmp_path):
    for name, settings, fault in (("plain", {}, False), ("pushing", {"push": True}, True)):
        world = World(tmp_path / name, git=GitSettings(**settings))
        run(world.vault, "init", "-q", "-b", "main")
        run(world.vault, "commit", "-q", "--allow-empty", "-m", "one")
        world.run()
        with pytest.raises(Conflict, match="remote add origin"):
            world.app.operations["sync"]({}, lambda _: None)
        status, owner, agent = told(world)
        assert agent == list(world.app.agent_access.workspace("default").search(Query("words")).degraded)
        assert status == ([branch_sync.UNREACHED] if fault else []), "only who has asked for pushes misses a remote"
        assert (owner, agent) == ([], [])
        assert bool(world.app.health.facts()["git"]["exchange"]["problem"]) == fault
        world.close()
