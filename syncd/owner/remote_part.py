"""The owner's operation on the vault's remote: bring the two together now, whatever the settings plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from syncd.remote.remote_sync import Remote

STAGES: Final = ("committing", "fetching", "merging", "moving", "pushing")

Arguments: TypeAlias = Mapping[str, Any]
Progress: TypeAlias = Callable[[dict[str, Any]], None]


def operations(remote: Remote) -> dict[str, Callable[[Arguments, Progress], Any]]:
    """What the owner may ask for, by name."""

    def sync(given: Arguments, progress: Progress) -> dict[str, Any]:
        def tell(stage: str) -> None:
            progress({"done": STAGES.index(stage), "total": len(STAGES), "stage": stage})

        pull, push = bool(given.get("pull")), bool(given.get("push"))
        return asdict(remote.sync(pull=pull or not push, push=push or not pull, tell=tell))

    return {"sync": sync}
