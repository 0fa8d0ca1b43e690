"""A small history of agents' writes on a copy of the demo vault, for pictures and tests of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.support.daemon_process import Memex
from tests.support.mcp_calls import called

AGENTS: Final = ("claude-code", "codex", "cursor")


class Capture(NamedTuple):
    """Describes what an agent captured, this many minutes after the history began."""

    minute: int
    agent: str
    title: str
    tags: tuple[str, ...]
    content: str


CAPTURES: Final = (
    Capture(2, "claude-code", "West vent", ("heron", "thermal"),
            "The west box needs a wider vent before May: 58 °C at noon with the lid shut.\n\nThe [[Heron enclosure]] has room for 40 mm."),
    Capture(9, "claude-code", "Bittern release steps", ("heron", "release"),
            "1. Freeze `main` on Monday.\n2. Run the field suite on three stations.\n3. Sign the image, and keep the old one for a rollback.\n\nSee [[OTA updates]]."),
    Capture(17, "codex", "Retry budget of the gateway", ("gateway",),
            "A station retries 5 times within 10 minutes, then waits an hour. The gateway must accept packets twice.\n\nFrom [[Gateway rollout]]."),
    Capture(24, "codex", "Index size after compaction", ("gateway", "storage"),
            "412 MB before, 96 MB after. The nightly job takes 40 s, and readers do not wait."),
    Capture(31, "cursor", "Vent controller pins", ("greenhouse",),
            "| pin | signal |\n| --- | --- |\n| 4 | motor up |\n| 5 | motor down |\n| 12 | end switch |\n\nFor the [[Vent controller]]."),
    Capture(38, "claude-code", "Leeks for the autumn bed", ("garden",),
            "Sow leeks in March, plant them out in June; the bed behind the shed gets sun until four."),
)  # fmt: skip
CHANGED: Final = (
    "412 MB before, 88 MB after. The nightly job takes 40 s, and readers do not wait.\n\nMeasured on the field gateway."
)
ENTITIES: Final = [
    {"name": "Bittern", "entity_type": "release", "observations": ["Firmware 2.4, planned for May"], "summary": "The next firmware."},
    {"name": "Field gateway 4", "entity_type": "system", "observations": ["Runs in the barn at Hazel Ridge"]},
]  # fmt: skip
RELATIONS: Final = [
    {"from_entity": "Bittern", "to_entity": "Heron", "relation_type": "runs_on"},
    {"from_entity": "Bittern", "to_entity": "Autumn trial", "relation_type": "tested_in"},
    {"from_entity": "Dario Venn", "to_entity": "Bittern", "relation_type": "signs"},
    {"from_entity": "Field gateway 4", "to_entity": "Hazel Ridge site", "relation_type": "stands_at"},
]


def write_history(memex: Memex, at: Callable[[int], None] = lambda _: None) -> None:
    """Let three agents capture, change and delete notes, and extend the graph; `at` gets the minute of each write before it."""
    keys = {name: memex.ask("key.create", name=name, workspaces=["default"])["key"] for name in AGENTS}

    def headers(agent: str) -> dict[str, str]:
        return {"authorization": f"Bearer {keys[agent]}", "x-memory-workspace": "default"}

    def send(agent: str, method: str, path: str, **options: Any) -> Any:
        answer = memex.client.request(method, memex.url + path, headers=headers(agent), **options)
        assert answer.status_code in (200, 201, 204), answer.text
        return answer.json()

    ids = {}
    for capture in CAPTURES:
        at(capture.minute)
        metadata = {"title": capture.title, "tags": list(capture.tags)}
        body = {"content": capture.content, "source": capture.agent, "metadata": metadata}
        ids[capture.title] = send(capture.agent, "POST", "/capture", json=body)["id"]
    at(44)
    send("codex", "PATCH", f"/api/v1/notes/{ids['Index size after compaction']}", json={"text": CHANGED})
    at(47)
    send("claude-code", "DELETE", f"/thought/{ids['Leeks for the autumn bed']}")
    at(51)
    called(f"{memex.url}/mcp", headers("claude-code"), "create_entities", entities=ENTITIES)
    called(f"{memex.url}/mcp", headers("claude-code"), "create_relations", relations=RELATIONS)
    memex.settled()
