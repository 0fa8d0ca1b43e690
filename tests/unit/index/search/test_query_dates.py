"""index/search/query_dates.py: the times that queries name, in six languages, and texts that name none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.search.query_dates import FIRST_YEAR, LONGEST, find_periods

NOW = datetime(2026, 11, 24, 15, 30, tzinfo=UTC)  # a Tuesday


def days(text, now=NOW):
    """The first and the last day of each period, as ISO dates."""
    periods, _ = find_periods(text, now)
    first = [datetime.fromtimestamp(period.start / 1000, UTC) for period in periods]
    last = [datetime.fromtimestamp(period.end / 1000, UTC) - timedelta(days=1) for period in periods]
    return [f"{a:%Y-%m-%d}..{b:%Y-%m-%d}" for a, b in zip(first, last, strict=True)]


DAY, MAY_2023 = "2023-05-08..2023-05-08", "2023-05-01..2023-05-31"
MAY, OCTOBER = "2026-05-01..2026-05-31", "2026-10-01..2026-10-31"
WEEK, YEAR = "2026-11-16..2026-11-22", "2025-01-01..2025-12-31"
TODAY, YESTERDAY, EARLIER = "2026-11-24..2026-11-24", "2026-11-23..2026-11-23", "2026-11-22..2026-11-22"


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        (
            DAY,
            """2023-05-08|2023/5/8|8.5.2023|08.05.2023|8 May 2023|8th of May, 2023|May 8, 2023|May 8th 2023|8. Mai 2023
            |8 mai 2023|8 de mayo de 2023|2023年5月8日|２０２３年５月８日|what did Ann say on 8 May 2023?""",
        ),
        (MAY_2023, "2023-05|May 2023|in May, 2023|Mai 2023|mai 2023|mayo de 2023|2023年5月"),
        ("2023-01-01..2023-12-31", "2023|in 2023|the plan of 2023|2023年"),
        (MAY, "last May|in May|since May|im Mai|letzten Mai|en mai|mai dernier|en mayo|mayo pasado|5月|5月の会議"),
        ("2026-05-08..2026-05-08", "8 May|May 8th|8. Mai|8 mai|8 de mayo|5月8日"),
        ("2025-12-24..2025-12-24", "24 December|24. Dezember|12月24日"),
        ("2024-02-29..2024-02-29", "29 February|29. Februar"),
        (TODAY, "today|heute|aujourd'hui|aujourd’hui|hoy|今日|今天"),
        (YESTERDAY, "yesterday|gestern|hier|ayer|昨日|昨天|a day ago|vor einem Tag|il y a un jour|hace 1 día|1日前"),
        (EARLIER, "the day before yesterday|vorgestern|avant-hier|anteayer|一昨日|前天|two days ago|vor 2 Tagen|2天前"),
        (
            WEEK,
            "last week|letzte Woche|la semaine dernière|la semana pasada|先週|上周|a week ago|vor einer Woche|1週間前",
        ),
        ("2026-11-23..2026-11-29", "this week|diese Woche|cette semaine|esta semana|今週|本周"),
        (
            OCTOBER,
            "last month|letzten Monat|le mois dernier|el mes pasado|先月|上个月|one month ago|il y a un mois|1か月前|1ヶ月前",
        ),
        ("2026-11-01..2026-11-30", "this month|diesen Monat|ce mois|este mes|今月|in November"),
        (
            YEAR,
            "last year|letztes Jahr|l'année dernière|el año pasado|去年|昨年|a year ago|vor einem Jahr|hace un año|1年前",
        ),
        (EARLIER, "last Sunday|on Sunday|am Sonntag|letzten Sonntag|dimanche dernier|domingo pasado|日曜日"),
        ("2026-11-17..2026-11-17", "on Tuesday|last Tuesday|am Dienstag|火曜"),
    ],
)
def test_a_time_is_read(wanted, texts):
    assert {text: days(text) for text in map(str.strip, texts.split("|"))} == {
        text: [wanted] for text in map(str.strip, texts.split("|"))
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "what may help",
        "a march through the woods",
        "version 2.5.2023.1",
        "192.168.20.26",
        "port 20235",
        "id 2023-13-45\n    ",
        "room 1234",
        "2999",
        "1 May 1901",
        "5月間",
        "6か月",
        "日本",
        "10000 years ago",
        "sun and moon",
        "a second ago\n    ",
        "the last day of school",
        "the orchestra of Mars",
        "agua de mar",
        "wer wohnt hier?",
        "de sept ans",
        "iPhone 8 may break",
        "Python 3 march",
        "第1月曜日",
        "毎月第3月曜日",
        "日本周辺",
        "今日本では",
        "目前天气",
        "早上周会",
        "上上周",
        "person of the year",
        "port 2024",
        "2000 words",
        "twenty-five years ago",
        "half a year ago",
        "令和5年5月8日",
    ],
)
def test_a_text_without_a_time_names_none(text):
    assert days(text.strip()) == []


def test_last_may_is_the_latest_that_has_ended():
    now = NOW.replace(month=5, day=20)
    assert days("last May", now) == ["2025-05-01..2025-05-31"]
    assert days("in May", now) == [MAY]


TIMES_ALONE = """8 May 2023|the 8th of May 2023|in May|last week|in the last week|from yesterday|la semaine dernière|el mes pasado
|im letzten Jahr|5月|日曜日|昨日の""".replace("\n", "").split("|")


def test_several_times_are_read_and_the_rest_is_returned():
    periods, rest = find_periods("what did Ann say yesterday and in May 2023?", NOW)
    assert (len(periods), rest) == (2, "what did ann say and")
    assert [find_periods(text, NOW)[1] for text in TIMES_ALONE] == [""] * len(TIMES_ALONE)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("8 May 2023: the roof", [DAY]),
        ("4 July 1776", []),
        ("in July 1789", []),
        ("May last year", ["2025-05-01..2025-05-31"]),
        ("last year in May", ["2025-05-01..2025-05-31"]),
        ("letztes Jahr im Mai", ["2025-05-01..2025-05-31"]),
        ("im Mai letzten Jahres", ["2025-05-01..2025-05-31"]),
        ("en mai de l'année dernière", ["2025-05-01..2025-05-31"]),
        ("去年の5月8日", ["2025-05-08..2025-05-08"]),
        ("2023年の5月", [MAY_2023]),
        ("2023 年 5 月 8 日", [DAY]),
        ("2023年5月8日月曜日", [DAY]),
        ("on Monday, 8 May 2023", [DAY]),
        ("2023-05-08の会議", [DAY]),
        ("先週の月曜日", [WEEK]),
        ("in the year 2023", ["2023-01-01..2023-12-31"]),
        ("room 3 2023-05-08 may", [DAY]),
        ("the last 3 days", ["2026-11-21..2026-11-24"]),
        ("上週", [WEEK]),
        ("上個月", [OCTOBER]),
        ("6ヵ月前", ["2026-05-01..2026-05-31"]),
    ],
)
def test_what_stands_beside_a_time_belongs_to_it(text, wanted):
    assert days(text) == wanted


def test_a_day_that_a_zone_left_out_is_no_period():
    assert find_periods("2011-12-30", datetime(2026, 11, 24, tzinfo=ZoneInfo("Pacific/Apia")))[0] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [("8 May 2023" + " dough" * 99, 1), ("x " * 197 + "in marble halls", 0), ("x " * 196 + "8 May 2023", 0)],
)
def test_what_follows_the_longest_part_counts_as_words(text, count):
    periods, rest = find_periods(text, NOW)
    assert (len(periods), bool(rest)) == (count, True)


def test_days_begin_in_the_zone_of_the_clock():
    zone = datetime.strptime("+0900", "%z").tzinfo
    (period,), _ = find_periods("today", datetime(2026, 11, 24, 3, tzinfo=zone))
    assert datetime.fromtimestamp(period.start / 1000, UTC) == datetime(2026, 11, 23, 15, tzinfo=UTC)


WORDS = st.sampled_from(
    [
        "last",
        "this",
        "may",
        "in",
        "on",
        "8",
        "08",
        "2023",
        "31",
        "5月",
        "年",
        "月",
        "日",
        "前",
        "ago",
        "days",
        "9999",
        "year",
        "week",
        "monday",
        "passé",
        "dernier",
        "vor",
        "il",
        "y",
        "a",
        ".",
        ",",
        "/",
        "-",
        "th",
        "of",
        "de",
        "0",
        "00",
    ]
)


# Counts of each unit in every language, with each of the words that say from when they count.
UNITS = "day days weeks month years tag tagen wochen monate jahre jours semaine mois ans días semanas meses años 日 天 週間 周 か月 个月 年"
COUNTED = st.builds(
    str.format,
    st.sampled_from(
        [
            "the last {} {}",
            "letzten {} {}",
            "{} {} ago",
            "vor {} {}",
            "il y a {} {}",
            "hace {} {}",
            "{}{}前",
            "{}{}之前",
        ]
    ),
    st.integers(1, 9_999),
    st.sampled_from(UNITS.split()),
)


@given(
    st.lists(WORDS, max_size=12).map(" ".join)
    | st.lists(WORDS, max_size=8).map("".join)
    | st.lists(COUNTED, min_size=1, max_size=3).map(" ".join)
    | st.text(max_size=500),
    st.integers(1900, 9998),
)
@example("the last 3000 years", 2026)
def test_whatever_the_text_each_period_begins_before_it_ends(text, year):
    periods, rest = find_periods(text, NOW.replace(year=year))
    assert all(period.start < period.end for period in periods)
    assert len(rest) <= 40 * LONGEST
    if year < FIRST_YEAR:
        assert periods == []
