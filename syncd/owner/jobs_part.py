"""The owner's operations on jobs: how each stands, how its last runs went, and one run now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from syncd.jobs.scheduler import Jobs

SPELLED = str.maketrans("-_", "  ")  # `deep-check` is one word for a shell


def operations(jobs: Callable[[], Jobs]) -> dict[str, Callable[[Mapping[str, Any], Any], Any]]:
    """What the owner may ask of jobs, by name; `jobs` gives those that are in force."""

    def listed(_: Mapping[str, Any], __: Any) -> list[dict[str, Any]]:
        return [{"name": name, **asdict(one)} for name, one in sorted(jobs().standing().items())]

    def history(given: Mapping[str, Any], _: Any) -> list[dict[str, Any]]:
        return [asdict(run) for run in jobs().history(_name(given))]

    def run(given: Mapping[str, Any], _: Any) -> dict[str, Any]:
        name = _name(given)
        done = jobs().run(name, wait=bool(given.get("wait")))
        return {"name": name, "ended": done is not None, **(asdict(done) if done else {})}

    return {"job.list": listed, "job.history": history, "job.run": run}


def _name(given: Mapping[str, Any]) -> str:
    return str(given["name"]).translate(SPELLED)
