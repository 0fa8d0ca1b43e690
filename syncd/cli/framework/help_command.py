"""Define the command `help`, which explains a command or a topic, such as exit codes."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem

from index.errors import NotFound
from index.names import did_you_mean
from syncd.cli.framework.commands import Command, print_answer
from syncd.cli.framework.help_topics import ENVIRONMENT, EXIT_CODES, FILES, OWN_EXIT_CODES

TOPICS = {"environment": ENVIRONMENT, "files": FILES}


def _complete_topic(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the commands and topics that may follow the words before."""
    try:
        place = _find_context(ctx.find_root(), tuple(ctx.params.get("words") or ()))
    except NotFound:
        return []
    return [CompletionItem(name) for name in sorted(_names_at(place)) if name.startswith(typed)]


@click.command("help", cls=Command)
@click.argument("words", metavar="[TOPIC]...", nargs=-1, shell_complete=_complete_topic)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explain a command, or a topic: exit-codes, environment, files. With --json: {"text"}."""
    root = ctx.find_root()
    if words == ("exit-codes",):
        text = "\n".join(_exit_code_lines())
    elif len(words) == 1 and words[0] in TOPICS:
        text = "\n".join(_format_rows(TOPICS[words[0]]))
    else:
        text = _find_context(root, words).get_help()
    print_answer({"text": text}, lambda: text)


def _find_context(root: click.Context, words: tuple[str, ...]) -> click.Context:
    """Find the context of the command that `words` name. Raises NotFound with the nearest name."""
    place = root
    for word in words:
        commands = place.command.commands if isinstance(place.command, click.Group) else {}
        topics = (*TOPICS, "exit-codes") if place is root else ()
        if word in topics:
            raise NotFound(
                f"no help on {' '.join(words)[:64]!r}: the topic {word} has no parts; to read it: memex help {word}"
            )
        if word not in commands:
            near = did_you_mean(word[:64], _names_at(place))
            raise NotFound(f"no help on {word[:64]!r}{near or ';'} `memex --help` lists the commands")
        place = click.Context(commands[word], info_name=word, parent=place)
    return place


def _names_at(place: click.Context) -> list[str]:
    """Return the names of the commands at `place`, and of the topics if it is `memex` itself."""
    commands = place.command.commands if isinstance(place.command, click.Group) else {}
    return [*commands, *((*TOPICS, "exit-codes") if place.parent is None else ())]


def _exit_code_lines() -> Iterator[str]:
    yield from _format_rows(EXIT_CODES)
    alike = {
        codes: [name for name, others in OWN_EXIT_CODES.items() if others == codes] for codes in OWN_EXIT_CODES.values()
    }
    for codes, names in alike.items():
        yield ""
        yield f"Of {' and '.join(f'memex {name}' for name in names)}:"
        yield from _format_rows(codes)


def _format_rows(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    width = max(len(name) for name, _ in rows)
    yield from (f"  {name:<{width}}  {does}" for name, does in rows)
