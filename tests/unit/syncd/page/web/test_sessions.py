"""syncd/page/web/sessions.py: a link works once, within a minute; sessions are listed, revoked, and end unused."""

from __future__ import annotations

from itertools import count

import pytest

from syncd.page.web.sessions import LINK_S, LINKS, MOST, UNUSED_S, Sessions, Unshown


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sessions(clock):
    return Sessions(clock)


def test_a_session_with_a_visible_page_stays_in_use(sessions, clock):
    secret = sessions.redeem(sessions.make_link(), "Firefox")
    session = sessions.find(secret)
    for _ in range(3):
        clock.now += UNUSED_S - 1
        assert sessions.keep_open(session)
    assert sessions.find(secret) is session
    sessions.revoke(session.id)
    assert not sessions.keep_open(session)


def opened(sessions, browser="Firefox"):
    secret = sessions.redeem(sessions.make_link(), browser)
    assert secret
    return secret


def test_a_link_becomes_one_session(sessions):
    link = sessions.make_link()
    secret = sessions.redeem(link, "Firefox")
    assert sessions.find(secret).browser == "Firefox"
    assert sessions.redeem(link, "Firefox") is None
    assert len(sessions.list_open()) == 1


@pytest.mark.parametrize(("passed", "works"), [(0, True), (LINK_S, True), (LINK_S + 0.1, False), (-1, False)])
def test_a_link_works_for_a_minute(sessions, clock, passed, works):
    link = sessions.make_link()
    clock.now += passed
    assert (sessions.redeem(link, "") is not None) == works


@pytest.mark.parametrize("link", ["", "x", "\ud800"])
def test_other_text_is_no_link(sessions, link):
    sessions.make_link()
    assert sessions.redeem(link, "") is None


def test_only_the_newest_links_are_kept(sessions):
    links = [sessions.make_link() for _ in range(LINKS + 1)]
    assert sessions.redeem(links[0], "") is None
    assert sessions.redeem(links[1], "")


def test_neither_the_id_nor_the_token_of_changes_opens_a_session(sessions):
    session = sessions.find(opened(sessions))
    assert [sessions.find(text) for text in (session.id, session.csrf, "")] == [None] * 3


def test_a_revoked_session_is_gone_and_the_others_stay(sessions):
    first, second = opened(sessions), opened(sessions)
    session = sessions.find(first)
    assert sessions.revoke(session.id)
    assert not sessions.revoke(session.id)
    assert not sessions.keep_open(session)
    assert sessions.find(first) is None
    assert sessions.keep_open(sessions.find(second))


def test_an_unused_session_ends(sessions, clock):
    unused, used = opened(sessions), opened(sessions)
    clock.now += UNUSED_S
    sessions.find(used)
    clock.now += 1
    assert sessions.find(unused) is None
    assert sessions.find(used)
    assert len(sessions.list_open()) == 1


def test_the_list_has_no_secret_and_begins_with_the_session_used_last(sessions, clock):
    first, second = opened(sessions, "one"), opened(sessions, "two")
    clock.now += 5
    sessions.find(first)
    listed = sessions.list_open()
    assert [(entry["browser"], entry["seen_at"] - entry["created_at"]) for entry in listed] == [
        ("one", 5000),
        ("two", 0),
    ]
    assert not {first, second, sessions.find(first).csrf} & set(
        map(str, [v for entry in listed for v in entry.values()])
    )


def test_of_too_many_sessions_the_one_unused_longest_ends(sessions, clock):
    secrets = []
    for _, number in zip(range(MOST + 1), count(), strict=False):
        clock.now += number
        secrets.append(opened(sessions))
    assert sessions.find(secrets[0]) is None
    assert sessions.find(secrets[1])


def test_what_no_browser_asked_for_in_time_is_forgotten(sessions, clock):
    session = sessions.find(opened(sessions))
    session.shown_once |= {"old": Unshown("lines", clock.now + 10), "new": Unshown("lines", clock.now + 20)}
    clock.now += 11
    sessions.drop_overdue()
    assert list(session.shown_once) == ["new"]
