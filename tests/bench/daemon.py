"""A daemon for measuring, in a process of its own: `python -m tests.bench.daemon VAULT STATE [--made-up]`.

With `--made-up` the vectors of documents are made up, quickly, while queries go through the real model: a vault of
100,000 chunks is then ready in minutes, and a search costs what it costs.

Its first line of output says where it serves. Then each line of its input is a question about its inside, and each further
line of output an answer: what its jobs have cost, an operation without the layers above it, a job to be run at once."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from index.encoders.embedder import Embedder, EmbedSettings, load_encoder
from index.encoders.settings import Encoder, EncoderSettings, Kind
from index.process_memory import collect_rarely
from syncd.app import App, Ready, import_server_early
from syncd.installation.vault_setup import set_up_vault
from syncd.settings.access import LimitsSettings
from syncd.settings.settings import ServerSettings, Settings, VaultSettings
from tests.bench import cpu_sampler
from tests.support.stop_signals import stop_on_signals

TOPICS = 500


def _normal(seed: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(dimensions, np.float32)


class MadeUp:
    """The real encoder for queries and captures; for documents in bulk made-up vectors, which lie about topics as those of texts do."""

    def __init__(self, real: Encoder) -> None:
        self._real = real
        self.name, self.dimensions, self.max_tokens, self.batch = "made-up", real.dimensions, real.max_tokens, 64
        self.identity = "made-up"

    def encode(self, texts: Sequence[str], *, kind: Kind, urgent: bool) -> np.ndarray:
        if urgent or kind == "query":
            return self._real.encode(texts, kind=kind, urgent=urgent)
        # Nothing is remembered between two calls: the daemon's memory is measured, too.
        seeds = [zlib.crc32(text.encode("utf-8", "replace")) for text in texts]
        rows = [_normal(seed % TOPICS, self.dimensions) + 0.9 * _normal(seed, self.dimensions) for seed in seeds]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._real.count_tokens(texts)

    def close(self) -> None:
        self._real.close()


@dataclass
class JobCost:
    """What a job has cost since the start."""

    runs: int = 0
    cpu: float = 0.0  # seconds of its thread
    whole: float = (
        0.0  # seconds of the whole process meanwhile: with the libraries' threads, and with whoever else is served
    )
    running: bool = False


class Inside:
    """Answers questions about the inside of a daemon that serves."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._jobs: dict[str, JobCost] = {}
        for name, job in app.jobs._jobs.items():
            job.work = self._counted(self._jobs.setdefault(name, JobCost()), job.work)

    @staticmethod
    def _counted(cost: JobCost, work: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            cost.running, used, whole = True, time.thread_time(), time.process_time()
            try:
                return work()
            finally:
                cost.running, cost.runs = False, cost.runs + 1
                cost.cpu += time.thread_time() - used
                cost.whole += time.process_time() - whole

        return run

    def answer(self, question: dict[str, Any]) -> Any:  # noqa: PLR0911 - one for each question
        """The answer to one question."""
        match question:
            case {"ask": "jobs"}:
                return {name: asdict(cost) for name, cost in self._jobs.items()}
            case {"ask": "run", "job": str(job)}:
                run = self._app.jobs.run(job)
                return run.error if run else "it was not run"
            case {"ask": "maintain"}:
                # The job puts a pass off by twenty times what the last one took, and a search is many times as dear until then.
                return [scope.index.maintain(force=True) for scope in self._app.opened.builds.scopes.values()]
            case {"ask": "begin", "job": str(job)}:
                self._app.jobs.run(job, wait=False)
                return ""
            case {"ask": "load"}:  # until the rows that searches need are in memory, if they are few enough
                for thread in [one for one in threading.enumerate() if one.name == "recall"]:
                    thread.join()
                return ""
            case {"ask": "cpu"}:
                return cpu_sampler.RUNNING.take()
            case {"ask": "recent", "times": int(times)}:
                return self._recent(times)
        raise ValueError(question)

    def _recent(self, times: int) -> list[float]:
        """Milliseconds of `list_recent(limit=1)` in this process, without a request."""
        from mcp_server.tools.families import FAMILIES  # late: a daemon imports its server while its index is opened

        operation = next(one for one in FAMILIES["thoughts"] if one.name == "list_recent")
        workspace = self._app.agent_access.workspace("default")
        given, spent = operation.given.model_validate({"limit": 1}), []
        for _ in range(times):
            begun = time.perf_counter()
            operation.run(workspace, given, self._app.settings)
            spent.append((time.perf_counter() - begun) * 1000)
        return spent

    def listen(self) -> None:
        """Answer until the input ends: each line has a `value` or, where the question failed, an `error`."""
        for line in sys.stdin:
            try:
                told = {"value": self.answer(json.loads(line))}
            except Exception as failure:  # otherwise whoever asked would wait for ever
                told = {"error": f"{line.strip()}: {type(failure).__name__}: {failure}"}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def main() -> None:
    collect_rarely()  # as `memex` does
    parser = argparse.ArgumentParser()
    parser.add_argument("vault", type=Path)
    parser.add_argument("state", type=Path)
    parser.add_argument("--made-up", action="store_true")
    given = parser.parse_args()
    settings = Settings(
        vault=VaultSettings(path=given.vault),
        state=given.state,
        server=ServerSettings(port=0),
        limits=LimitsSettings(rate=0),  # what is measured asks faster than any agent
    )

    def made_up(one: EncoderSettings, cache: Path) -> Encoder:
        return MadeUp(load_encoder(one, cache))

    load = made_up if given.made_up else None
    embedder = Embedder(EmbedSettings(), cache=given.state / "models", load=load)
    embedder.start()

    def ready(told: Ready) -> None:
        threading.Thread(target=Inside(app).listen, daemon=True).start()
        sys.stdout.write(json.dumps({"url": told.url, "key": told.key_file.read_text().strip()}) + "\n")
        sys.stdout.flush()

    import_server_early()
    set_up_vault(settings, now=time.time_ns() // 1_000_000)
    with App(settings, embedder=embedder) as app:
        app.serve(ready, stop_on_signals())


if __name__ == "__main__":
    main()
