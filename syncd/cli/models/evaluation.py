"""Define the commands of evaluation: `eval` measures changed settings of search on the owner's notes, `searches` shows the search log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

from index.errors import InvalidArgument
from index.names import did_you_mean
from syncd.cli.framework.arguments import YES, confirm
from syncd.cli.framework.commands import Command, flags, has_color, load_settings, print_answer
from syncd.cli.models.measurement_text import format_measurement
from syncd.cli.models.model import measure
from syncd.cli.terminal import result_text
from syncd.settings.settings import GivenValue, load

MEASURABLE: Final = (  # settings that decide what a search finds, or when
    *("embed.encoders", "embed.threads", "index.chunk_tokens", "index.chunk_overlap", "search.mode"),
    *("search.reranker", "search.rerank_pool", "search.rerank_s", "search.rerank_languages"),
)


@click.command("eval", cls=Command)
@click.option(
    "--set",
    "values",
    multiple=True,
    required=True,
    metavar="SETTING=VALUE",
    help="A changed setting; repeat for several.",
)
def evaluate(values: tuple[str, ...]) -> None:
    """Measure changed settings of search beside the present ones on your own notes; nothing is changed.

    The questions are those of `memex model try`. The settings are those that decide what a search finds: embed.encoders
    and embed.threads, index.chunk_tokens and index.chunk_overlap, search.mode, search.reranker, search.rerank_pool,
    search.rerank_s and search.rerank_languages. To keep a change, write it into the settings file.

    With --json: {"settings", "notes", "notes_in_all", "questions", "search", "meaning", "cost", "recorded", "verdict"}."""
    changes = dict(map(_parse_change, values))
    present = load_settings()
    entries = {name: GivenValue(value, "--set", True, Path.cwd()) for name, value in changes.items()}
    result = measure(present, load(flags() | entries, os.environ))
    change = ", ".join(f"{name} = {value}" for name, value in changes.items())
    print_answer(
        {"settings": changes, **result},
        lambda: (
            f"changed settings: {result_text.line(change)}\n"
            + format_measurement(result, "present settings", "changed settings", color=has_color())
        ),
    )


@click.command(cls=Command)
@click.option("--erase", is_flag=True, help="Erase all recorded searches.")
@YES
def searches(erase: bool, yes: bool) -> None:
    """List the recorded searches, the latest last, or erase them; Memex records searches only with search.log.

    A record holds the query, with known secrets replaced, and the ids of its hits. With --json: [{"query", "hits"}], or
    {"erased"}."""
    from syncd.telemetry.search_log import erase_searches, read_searches  # noqa: PLC0415 - the rules for secrets are slow to import

    chosen = load_settings()
    if erase:
        confirm("Erase all recorded searches?", yes=yes)
        count = erase_searches(chosen.state)
        print_answer({"erased": count}, lambda: f"recorded searches erased: {count:,}")
        return
    rows: list[dict[str, Any]] = read_searches(chosen.state)
    state = "on" if chosen.search.log else "off; to record searches, set it to true: memex config --open"
    print_answer(
        rows,
        lambda: (
            "\n".join(f"{len(row['hits']):>3}  {result_text.line(row['query'])}" for row in rows)
            or f"no recorded searches; search.log is {state}"
        ),
    )


def _parse_change(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign and name in MEASURABLE:
        raise InvalidArgument(f"{text!r} names no value; write SETTING=VALUE")
    if name not in MEASURABLE:
        near = did_you_mean(name, MEASURABLE) or "."
        raise InvalidArgument(
            f"{text!r} changes no setting of search{near} Write SETTING=VALUE with one of {', '.join(MEASURABLE)}"
        )
    return name, value
