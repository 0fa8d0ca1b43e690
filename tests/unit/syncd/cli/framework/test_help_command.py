"""syncd/cli/framework/help_command.py: help on topics and commands."""

from __future__ import annotations

import json

import pytest

from syncd.cli.main import run_command


def said(capsys, *words, fails=0):
    assert run_command(list(words)) == fails
    return capsys.readouterr()


def test_exit_codes_are_told_once_for_all_and_apart_for_those_that_differ(capsys):
    text = said(capsys, "help", "exit-codes").out
    assert "  4    not found: no such note, workspace, key or vault\n" in text
    assert "Of memex serve and memex demo:" in text


@pytest.mark.parametrize(("topic", "words"), [("environment", "MEMEX_VAULT"), ("files", "config.toml")])
def test_topics(capsys, topic, words):
    assert words in said(capsys, "help", topic).out


def test_help_on_a_command_is_that_command_s_own(capsys):
    assert said(capsys, "help", "job", "run").out == said(capsys, "job", "run", "--help").out
    assert said(capsys, "help").out == said(capsys, "--help").out


@pytest.mark.parametrize("words", [["help", "exit-codes"], ["help", "files"], ["help", "key", "list"]])
def test_help_is_valid_json_when_asked_for(capsys, words):
    text = said(capsys, *words).out
    assert json.loads(said(capsys, *words, "--json").out) == {"text": text.removesuffix("\n")}


@pytest.mark.parametrize("topic", ["exit-codes", "environment", "files"])
def test_a_word_after_a_topic_is_refused_with_the_topic(capsys, topic):
    err = said(capsys, "help", topic, "foo", fails=4).err
    assert err == f"memex: no help on '{topic} foo': the topic {topic} has no parts; to read it: memex help {topic}\n"


@pytest.mark.parametrize(
    ("words", "near"), [(["serach"], "search"), (["exit-code"], "exit-codes"), (["job", "lst"], "list")]
)
def test_an_unknown_word_is_refused_with_the_nearest(capsys, words, near):
    assert f'Did you mean "{near}"?' in said(capsys, "help", *words, fails=4).err
