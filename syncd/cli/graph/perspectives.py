"""Define the command `perspective`: list and change the perspectives under which a workspace's facts are embedded."""

from __future__ import annotations

from typing import Any

import click

from syncd.cli.framework.arguments import ONE_WORKSPACE
from syncd.cli.framework.commands import Group, ask, has_color, print_answer, print_message
from syncd.cli.framework.completion import perspectives
from syncd.cli.terminal import result_text

LATER = "memex: its facts need new embeddings: the daemon computes them in the background; without a daemon, run: memex index"


@click.group(cls=Group)
def perspective() -> None:
    """Manage perspectives: the named prompts under which facts are embedded and searched.

    Memex puts the prompt of a perspective before each fact and before each query, and a search returns the best match under
    any perspective. A short prompt of one word works best; under a long prompt, all facts look alike."""


@perspective.command("list")
@ONE_WORKSPACE
def perspective_list(workspace: str) -> None:
    """List the perspectives of a workspace, and the share of facts that are embedded under all of them.

    With --json: {"workspace", "default", "perspectives": [{"name", "prompt"}], "coverage"}; "default" is true if they are
    the perspectives of a new workspace."""
    result = ask("perspective.list", {"workspace": workspace})
    print_answer(result, lambda: table(result, color=has_color()))


@perspective.command("add")
@click.argument("name")
@click.argument("prompt")
@ONE_WORKSPACE
def perspective_add(name: str, prompt: str, workspace: str) -> None:
    """Add the perspective NAME with PROMPT; the daemon then embeds the facts in the background."""
    _change("add", workspace, name=name, prompt=prompt)


@perspective.command("set")
@click.argument("name", shell_complete=perspectives)
@click.argument("prompt")
@ONE_WORKSPACE
def perspective_set(name: str, prompt: str, workspace: str) -> None:
    """Change the prompt of the perspective NAME; "" means no prompt."""
    _change("set", workspace, name=name, prompt=prompt)


@perspective.command("remove")
@click.argument("name", shell_complete=perspectives)
@ONE_WORKSPACE
def perspective_remove(name: str, workspace: str) -> None:
    """Remove the perspective NAME and its vectors. The last perspective can't be removed."""
    _change("remove", workspace, name=name)


@perspective.command("reset")
@ONE_WORKSPACE
def perspective_reset(workspace: str) -> None:
    """Restore the five perspectives of a new workspace."""
    _change("reset", workspace)


def _change(how: str, workspace: str, **fields: str) -> None:
    result = ask(f"perspective.{how}", {"workspace": workspace, **fields})
    print_answer(result, lambda: rows_table(result, color=has_color()))
    if result["coverage"] < 1 and how != "remove":  # the vectors under the other perspectives stay
        print_message(LATER)


def table(result: dict[str, Any], *, color: bool) -> str:
    """Format one line for each perspective, and the share of embedded facts."""
    share = f"{result['coverage']:.1%} of the facts in {result['workspace']} are embedded under all perspectives"
    return f"{rows_table(result, color=color)}\n{share}"


def rows_table(result: dict[str, Any], *, color: bool) -> str:
    """Format one line for each perspective."""
    rows = [(row["name"], result_text.line(row["prompt"], 120) or "(none)") for row in result["perspectives"]]
    return result_text.table(rows, ("perspective", "prompt"), color=color)
