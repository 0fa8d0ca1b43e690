"""Which tool a reader chooses who sees the toolset `core` and nothing else: `python -m tests.bench.tool_choice`.

Without arguments it prints the instructions, the list of tools and 40 tasks, without the answers. With the name of a file
that holds the reader's answers, one tool in a line or a list in JSON, it prints how many are right and which are not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from index.model import COLLECTIONS
from mcp_server.protocol.instructions import server_instructions
from mcp_server.protocol.mcp_protocol import describe_tool
from mcp_server.tools.families import CORE, CORE_OPERATIONS

TASKS: Final = Path(__file__).parents[1] / "quality/tool_choice_tasks.json"
WANTED: Final = 36  # of 40


def tasks() -> list[dict[str, str]]:
    """The tasks, each with its right tool."""
    return list(json.loads(TASKS.read_text()))


def questions() -> str:
    """What the reader gets."""
    tools: list[dict[str, Any]] = []
    for operation in CORE_OPERATIONS:
        tool = describe_tool(operation, "safe", COLLECTIONS, CORE[operation.name])
        tools.append({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema})
    numbered = [f"{number}. {row['task']}" for number, row in enumerate(tasks(), 1)]
    return "\n\n".join(
        [
            "For each task, name the one tool that you would call next. Answer with one name in a line.",
            server_instructions(list(CORE)),
            json.dumps(tools, indent=1, ensure_ascii=False),
            "\n".join(numbered),
        ]
    )


def score(answers: list[str]) -> tuple[int, list[str]]:
    """How many answers are right, and a line for each that is not."""
    rows = tasks()
    if len(answers) != len(rows):
        raise ValueError(f"{len(answers)} answers to {len(rows)} tasks")
    wrong = [
        f"{number}. {row['task']} {row['tool']}, not {answer}"
        for number, (row, answer) in enumerate(zip(rows, answers, strict=True), 1)
        if answer != row["tool"]
    ]
    return len(rows) - len(wrong), wrong


def read_answers(text: str) -> list[str]:
    """The answers in a text: a list in JSON, or one in each line, with or without its number."""
    if text.lstrip().startswith("["):
        return [str(answer) for answer in json.loads(text)]
    return [line.split()[-1].strip("`.,") for line in text.splitlines() if line.strip()]


def main() -> int:
    """Print the questions, or the score."""
    if len(sys.argv) < 2:
        sys.stdout.write(questions() + "\n")
        return 0
    right, wrong = score(read_answers(Path(sys.argv[1]).read_text()))
    sys.stdout.write("\n".join([f"{right} of {len(tasks())} right (wanted: {WANTED})", *wrong]) + "\n")
    return 0 if right >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
