"""Define the command `perspective`: list and change the perspectives under which a workspace's facts are embedded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from syncd.cli.framework.commands import Group, ask, has_color, print_answer, print_message
from syncd.cli.framework.completion import perspectives, workspaces
from syncd.cli.terminal import result_text

chosen: Callable[[Any], Any] = click.option(
    "--workspace", "-w", default="default", show_default=True, shell_complete=workspaces, help="Of this workspace."
)
LATER = "memex: its observations are embedded anew: by the daemon in the background, else by `memex index`"


@click.group(cls=Group)
def perspective() -> None:
    """Perspectives: under which each observation of a node is embedded, and each search of them is made.

    A perspective's prompt is put in front of the observation, and of what is asked. What fits best under any of them is
    found. A short prompt of a word does most; with a long one all observations look alike."""


@perspective.command("list")
@chosen
def perspective_list(workspace: str) -> None:
    """List the perspectives of a workspace, and how much is embedded under all of them.

    With --json: {"workspace", "default", "perspectives": [{"name", "prompt"}], "coverage"}; "default" says whether they
    are those that every workspace begins with."""
    result = ask("perspective.list", {"workspace": workspace})
    print_answer(result, lambda: table(result, color=has_color()))


@perspective.command("add")
@click.argument("name")
@click.argument("prompt")
@chosen
def perspective_add(name: str, prompt: str, workspace: str) -> None:
    """Add the perspective NAME with PROMPT; its observations are then embedded in the background."""
    _change("add", workspace, name=name, prompt=prompt)


@perspective.command("set")
@click.argument("name", shell_complete=perspectives)
@click.argument("prompt")
@chosen
def perspective_set(name: str, prompt: str, workspace: str) -> None:
    """Give the perspective NAME another PROMPT; "" puts nothing in front."""
    _change("set", workspace, name=name, prompt=prompt)


@perspective.command("remove")
@click.argument("name", shell_complete=perspectives)
@chosen
def perspective_remove(name: str, workspace: str) -> None:
    """Take the perspective NAME away, with its vectors. The last one stays."""
    _change("remove", workspace, name=name)


@perspective.command("reset")
@chosen
def perspective_reset(workspace: str) -> None:
    """Go back to the five perspectives that every workspace begins with."""
    _change("reset", workspace)


def _change(how: str, workspace: str, **fields: str) -> None:
    result = ask(f"perspective.{how}", {"workspace": workspace, **fields})
    print_answer(result, lambda: table(result, color=has_color()))
    if result["coverage"] < 1:
        print_message(LATER)


def table(result: dict[str, Any], *, color: bool) -> str:
    """One line for each perspective, and how far the embedding is."""
    rows = [(row["name"], result_text.line(row["prompt"], 120) or "(nothing)") for row in result["perspectives"]]
    share = f"{result['coverage']:.1%} of the observations in {result['workspace']} are embedded under all of them"
    return f"{result_text.table(rows, ('perspective', 'put in front'), color=color)}\n{share}"
