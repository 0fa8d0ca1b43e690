"""Times of cron: what is taken means what a crontab means by it, and what is not is told in words."""

from __future__ import annotations

import pytest

from syncd.settings.cron_schedule import find_mistake, parse_cron

WEEK = "sun,mon,tue,wed,thu,fri,sat"


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("0 3 * * *", ("0", "3", "*", "*", WEEK)),
        ("*/15 * * * *", ("0,15,30,45", "*", "*", "*", WEEK)),
        ("5/20 0 1 1 *", ("5,25,45", "0", "1", "1", WEEK)),
        ("0 8-18/5 * * 1-5", ("0", "8,13,18", "*", "*", "mon,tue,wed,thu,fri")),
        ("5-5/20 0 * * *", ("5", "0", "*", "*", WEEK)),
        ("0 0 * * 0", ("0", "0", "*", "*", "sun")),
        ("0 0 * * 7", ("0", "0", "*", "*", "sun")),
        ("0 0 * * 5-7", ("0", "0", "*", "*", "sun,fri,sat")),
        ("0 0 * jan,JUL Mon,wed", ("0", "0", "*", "1,7", "mon,wed")),
        ("  0   3  29 2 *", ("0", "3", "29", "2", WEEK)),
    ],
)
def test_an_expression_allows_what_it_does_in_a_crontab(expression, told):
    assert tuple(parse_cron(expression).values()) == told
    assert not find_mistake(expression)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("daily", "five words"),
        ("0 3 * * * *", "it has 6"),
        ("60 3 * * *", "'60' as minute, which is 0 to 59"),
        ("0 24 * * *", "as hour"),
        ("0 3 0 * *", "as day"),
        ("0 3 * 13 *", "as month"),
        ("0 3 * * 8", "as day of week, which is 0 to 7"),
        ("0 3 * * foo", "'foo' as day of week"),
        ("0 5-3 * * *", "which never occurs"),
        ("*/0 * * * *", "which never occurs"),
        ("*/00 * * * *", "which never occurs"),
        ("0 3 31 2,4 *", "a day that none of its months has"),
        ("0 3 1 * 1", "not both"),
        ("@daily", "five words"),
        ("0 3 L * *", "'l' as day"),
        ("0 3 * * 1#2", "'1#2' as day of week"),
        ("٣ 3 * * *", "as minute"),
        ("0;rm 3 * * *", "as minute"),
    ],
)
def test_what_is_none_is_told_in_a_sentence(expression, words):
    assert words in find_mistake(expression)


def test_no_expression_is_never():
    assert not find_mistake("")
