"""syncd/cli/framework/help_topics.py: every command is in one group, every argument is explained."""

from __future__ import annotations

import click

from syncd.cli.framework.help_topics import GROUPS, explain_argument
from syncd.cli.main import memex


def arguments(group=memex, words=()):
    for name, command in group.commands.items():
        path = " ".join((*words, name))
        for param in command.params:
            if isinstance(param, click.Argument):
                yield path, param.make_metavar(click.Context(command))
        if isinstance(command, click.Group):
            yield from arguments(command, (*words, name))


def test_every_command_is_in_one_group():
    named = [name for names in GROUPS.values() for name in names]
    assert sorted({*named}) == sorted({*memex.commands})
    assert len(named) == len(set(named))


def test_every_argument_is_explained():
    unexplained = [(path, label) for path, label in sorted(set(arguments())) if not explain_argument(path, label)]
    assert unexplained == [], "say in help_topics.py what these arguments of commands are"
