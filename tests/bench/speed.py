"""The rows on speed and size: one function a group of them, each on a fresh vault and state."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from index.encoders.embedder import Embedder, EmbedSettings
from mcp_server.tools.families import FAMILIES
from syncd.app import App
from syncd.settings.settings import Settings, VaultSettings
from tests.bench import headline, vaults, yardsticks
from tests.bench.measure import NO_DAEMON, beside_jobs, daemon, p50
from tests.bench.prepared_vault import prepared
from tests.bench.record import Row, Step
from tests.bench.yardsticks import beside
from tests.support.token_count import counted

IDLE_S = 600.0


def fresh(work: Path, name: str) -> tuple[Path, Path]:
    """An empty vault and an empty state."""
    vault, state = work / name / "vault", work / name / "state"
    shutil.rmtree(work / name, ignore_errors=True)
    (vault / "Captures/default").mkdir(parents=True)
    return vault, state


def at_10k(work: Path) -> Iterator[Step]:
    """The headline rows at length, and what else is asked of a daemon with 10,000 captures."""
    vault, state = prepared(work)
    yardsticks.query()  # loads the encoder
    bare = yardsticks.imports()
    yield lambda: headline.starts(vault, state, times=5)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        yield lambda: [
            headline.searches(one, "10,000 chunks"),
            headline.searches(one, "10,000 chunks", tool="kb_search"),
        ]
        yield lambda: [headline.memory(one)]
        yield lambda: [headline.layers(one)]
        yield lambda: [headline.captures(one, state, times=150)]
        yield lambda: [headline.captures_at_once(one, vault)]
        yield lambda: [headline.saves(one, vault)]
        yield lambda: [headline.files_at_once(one, vault)]
        yield lambda: list(beside_jobs(one, chain(headline.commands(vault, state), headline.bridge(vault, state))))
        yield lambda: [headline.idle(one, bare, IDLE_S)]


def first_index(work: Path) -> Iterator[Step]:
    """The first index of 1,000 notes with the real model, against the bare encoder; a listing; the disk."""
    yield lambda: list(_first_index(work))


def _first_index(work: Path) -> Iterator[Row]:
    vault, state = fresh(work, "first")
    size = vaults.make(vault, 1_000, words=300)
    embedder = Embedder(EmbedSettings(), cache=work / "models")
    embedder.start()
    assert embedder.wait(), embedder.problem
    yardsticks.query()  # loads the encoder
    settings = Settings(vault=VaultSettings(path=vault), state=state)
    with App(settings, embedder=embedder) as app:
        before = yardsticks.batches(2)  # half of them before and half after, as a neighbour may come or go
        begun = time.perf_counter()
        outcome = app.opened.sync.run(accept=True)
        whole = time.perf_counter() - begun
        bare = before + yardsticks.batches(2)
        yield Row(
            "first index of 1,000 notes of 300 words, vectors included",
            "<= 60 s, >= .97 x the bare batches",
            f"{whole:.1f} s, {bare / whole:.2f} x",
            whole <= 60 and bare / whole >= 0.97,
            f"{outcome.chunks:,} chunks; the bare batches {bare:.1f} s",
            {"wall": whole / bare},
            "the bare batches",
            NO_DAEMON,
        )
        yield no_change(app, "1,000", 0.2, work)
        app.opened.builds.scopes["vault"].index.maintain(force=True)
    # Closed: no log beside it.
    kept = sum(path.stat().st_size for path in (state / "index").rglob("*") if path.is_file())
    yield Row(
        "disk: a closed index of 300-word notes against the text",
        "<= 4 x",
        f"{kept / size:.1f} x",
        kept / size <= 4,
        f"{kept / 1e6:.1f} MB for {size / 1e6:.1f} MB",
        {"size": kept / size},
        "the bytes of the text",
    )


def no_change(app: App, size: str, target: float, work: Path) -> Row:
    """A listing when nothing has changed."""
    spent = beside([lambda: app.opened.sync.run()] * 5, lambda: yardsticks.git_status(work), 5)
    return Row(
        f"nothing changed: a listing of {size} notes",
        f"<= {target} s",
        f"{p50(spent.calls) / 1000:.3f} s",
        p50(spent.calls) <= target * 1000,
        f"Git's of 1,000: {spent.unit:.1f} ms",
        {"wall": p50(spent.calls) / spent.unit},
        "one git status",
        NO_DAEMON,
    )


def reconcile_10k(work: Path) -> Iterator[Row]:
    """Listing 10,000 notes when nothing, and when one, has changed; a real large vault keeps its bytes."""
    vault, state = fresh(work, "list")
    vaults.make(vault, 10_000, words=40)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
    embedder = Embedder(EmbedSettings(), cache=work / "models", load=made_up)
    embedder.start()
    assert embedder.wait(), embedder.problem
    with App(Settings(vault=VaultSettings(path=vault), state=state), embedder=embedder) as app:
        app.opened.sync.run(accept=True)
        nothing = no_change(app, "10,000", 1.0, work)
        yield nothing
        stamp = time.time_ns()

        def change(number: int) -> None:
            text = f"changed by a pull {stamp} {number}\n"
            (vault / f"Notes/00/Note {number * 97}.md").write_text(text, "utf-8")
            assert app.opened.sync.run().modified == 1

        spent = beside([lambda n=n: change(n) for n in range(5)], lambda: yardsticks.git_status(work), 5)
        yield Row(
            "one note of 10,000 changed by a pull",
            "listing + a constant",
            f"{p50(spent.calls) / 1000:.3f} s",
            None,
            f"the listing alone: {nothing.figure}",
            {"wall": p50(spent.calls) / spent.unit},
            "one git status",
            NO_DAEMON,
        )


def made_up(one: object, cache: Path) -> object:
    """What loads the encoder that makes documents' vectors up."""
    from index.encoders.embedder import load_encoder
    from tests.bench.daemon import MadeUp

    return MadeUp(load_encoder(one, cache))  # type: ignore[arg-type]


def real_vault(work: Path, data: Path) -> Iterator[Row]:
    """The large real vault: time, disk, and that `git status` stays empty."""
    source = data / "vault_oldwinter_md"
    if not source.is_dir():
        yield Row("a real vault of 3,176 notes", "git status stays empty", "skipped", None, f"{source} is not there")
        return
    vault, state = fresh(work, "real")
    shutil.copytree(source, vault, dirs_exist_ok=True)
    git = ["git", "-C", str(vault), "-c", "user.name=B", "-c", "user.email=b@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as it came"]):
        subprocess.run([*git, *words], check=True)
    with daemon(vault, state) as one:
        spent = one.settled()
        now = one.status()
        changed = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True, text=True).stdout
        yield Row(
            "first index of vault_oldwinter_md, vectors included",
            "",
            f"{spent:.0f} s",
            None,
            f"{now['vault']['documents']:,} notes, {now['vault']['chunks']:,} chunks",
            jobs=one.jobs_since({}),
        )
        yield Row("git status after indexing it", "empty", "empty" if not changed else changed[:80], not changed)
    kept = sum(path.stat().st_size for path in (state / "index").rglob("*") if path.is_file())
    text = sum(path.stat().st_size for path in vault.rglob("*.md"))
    yield Row(
        "disk: its index against its text",
        "<= 4 x",
        f"{kept / text:.1f} x",
        kept / text <= 4,
        f"{kept / 1e6:.0f} MB for {text / 1e6:.1f} MB",
    )


def tokens(work: Path) -> Iterator[Row]:
    """What a model sees of the tool list, four characters a token, and of ten hits."""
    vault, state = fresh(work, "tokens")
    vaults.make(vault, 300, words=90, captures=True)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/list",
            "params": {
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "b", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                }
            },
        }
        headers = {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/list",
            "accept": "application/json, text/event-stream",
        }
        for path, most in (*((f"/mcp/{family}", 3_500) for family in FAMILIES), ("/mcp/core", 2_500), ("/mcp", 9_500)):
            text = one.http.post(path, json=body, headers=headers).text
            told = json.loads(
                text
                if text.startswith("{")
                else [line[5:] for line in text.splitlines() if line.startswith("data:")][-1]
            )
            seen = [
                {name: tool[name] for name in ("name", "description", "inputSchema")}
                for tool in told["result"]["tools"]
            ]
            size = len(json.dumps(seen, separators=(",", ":"), ensure_ascii=False)) / 4
            named = f"{len(seen)} tools of {path}"
            yield Row(
                f"tools/list, {named}, as a model sees it", f"<= {most:,} tokens", f"~{size:,.0f} tokens", size <= most
            )
        cost = []
        for text in vaults.questions(30):
            told = one.tool("kb_search", query=text)
            assert len(told["results"]) == 10, "there are enough notes"
            cost.append(counted(json.dumps(told, ensure_ascii=False, separators=(",", ":"))))
        yield Row(
            "ten kb_search hits, by a tokenizer",
            "<= 2,000 tokens",
            f"p50 {p50(cost):.0f}, most {max(cost):,}",
            max(cost) <= 2_000,
        )
