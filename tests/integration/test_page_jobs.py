"""Files and jobs of a running daemon on the page: files that are added, the queue, retry, and the scheduled jobs."""

from __future__ import annotations

import html
import re
import socket
from urllib.parse import urlsplit

import pytest

from syncd.settings.knowledge_base import KbSettings
from tests.support.local_daemon import local_page
from tests.support.until import until

LARGEST = 300_000


@pytest.fixture(scope="module")
def memex(tmp_path_factory):
    with local_page(tmp_path_factory.mktemp("jobs"), kb=KbSettings(max_file=LARGEST)) as running:
        running.json("workspace", "create", "work")
        yield running


@pytest.fixture(scope="module")
def browser(memex):
    return memex.browser()


def send(browser, *files, json=False, **fields):
    """Send files as the form does, each (name, bytes), after its fields."""
    headers = {"origin": browser.page, "sec-fetch-site": "same-origin"} | (
        {"accept": "application/json"} if json else {}
    )
    sent = [("file", file) for file in files] or [("file", ("", b""))]
    return browser.client.post("/jobs/files", data={"csrf": browser.csrf, **fields}, files=sent, headers=headers)


def staged(memex):
    return [file.name for file in (memex.state / "uploads").iterdir() if file.name.endswith(".file")]


def test_files_of_a_form_are_queued_and_become_notes(memex, browser):
    answer = send(
        browser, ("tide.csv", b"place,level\nhere,3\n"), ("Plan.md", b"# Plan\n\nSow in May.\n"), workspace="work"
    )
    assert answer.status_code == 303
    text = browser.text(answer.headers["location"])
    assert "2 files are queued." in text
    assert re.search(r"<option selected>work</option>", text)
    until(lambda: memex.ask("queue.list")["counts"]["done"] == 2)
    assert memex.found("sow in May", scope="captures")[0].startswith("Captures/work/")
    listed = browser.text("/jobs", status="done")
    assert "tide.csv" in listed
    again = send(browser, ("other.csv", b"place,level\nhere,3\n"), workspace="work")
    assert "is already there as" in browser.text(again.headers["location"])
    assert staged(memex) == []


def test_a_script_gets_what_became_of_each_file(memex, browser):
    answer = send(browser, ("one.txt", b"One."), ("big.txt", b"x" * (LARGEST + 1)), ("two.txt", b"Two."), json=True)
    assert answer.status_code == 200
    assert [(row["name"], row["status"]) for row in answer.json()["files"]] == [
        ("one.txt", "queued"),
        ("big.txt", "failed"),
        ("two.txt", "queued"),
    ]
    assert "more than 300,000 bytes" in answer.json()["files"][1]["reason"]
    assert staged(memex) == []


@pytest.mark.parametrize(
    ("file", "status", "reason"),
    [
        (("big.bin", b"x" * (LARGEST * 20)), 413, "more than 300,000 bytes, the limit of a file"),
        (("empty.txt", b""), 400, "it is empty"),
        (("film.mp4", b"\0\1\2\3"), 400, "film.mp4"),
        (("..", b"text"), 400, "is not a file name"),
    ],
)
def test_a_file_that_can_not_be_added_is_named_with_the_reason(memex, browser, file, status, reason):
    for json in (False, True):
        answer = send(browser, file, json=json)
        assert answer.status_code == status
        assert reason in html.unescape(answer.text)
    assert staged(memex) == []


def test_a_form_without_a_file_and_one_for_no_workspace_are_answered(browser):
    assert "No file was chosen" in browser.text(send(browser).headers["location"])
    assert send(browser, ("a.txt", b"text"), workspace="nowhere").status_code == 404


def test_nothing_is_written_without_the_token(memex, browser):
    headers = {"origin": browser.page, "sec-fetch-site": "same-origin"}
    before = sum(memex.ask("queue.list")["counts"].values())  # those of other tests may still run
    for fields in ({}, {"csrf": "x"}):
        answer = browser.client.post(
            "/jobs/files", data=fields, files={"file": ("a.txt", b"stranger")}, headers=headers
        )
        assert answer.status_code == 403
    assert browser.client.post("/jobs/files", content=b"x", headers=headers).status_code == 403
    assert staged(memex) == []
    assert sum(memex.ask("queue.list")["counts"].values()) == before


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\nTOKEN\r\n',
        b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n' + b"x" * 70_000 + b"\r\n--b--\r\n",
    ],
)
def test_a_damaged_form_is_refused(memex, browser, body):
    headers = {"origin": browser.page, "content-type": "multipart/form-data; boundary=b", "x-csrf-token": browser.csrf}
    answer = browser.client.post("/jobs/files", content=body, headers=headers)
    assert answer.status_code == 400
    assert staged(memex) == []


def test_a_browser_that_leaves_in_the_midst_leaves_nothing_behind(memex, browser):
    address = urlsplit(browser.page)
    cookies = "; ".join(f"{name}={value}" for name, value in browser.client.cookies.items())
    head = (
        f"POST /jobs/files HTTP/1.1\r\nHost: {address.netloc}\r\nOrigin: {browser.page}\r\nCookie: {cookies}\r\n"
        f"X-CSRF-Token: {browser.csrf}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 200000\r\n\r\n"
    )
    part = '--b\r\nContent-Disposition: form-data; name="file"; filename="half.txt"\r\n\r\n' + "half " * 1000
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall((head + part).encode())
        until(lambda: staged(memex))
    until(lambda: not staged(memex))


def test_a_failed_file_shows_its_reason_and_is_tried_again(memex, browser):
    answer = send(browser, ("broken.pdf", b"%PDF-1.7\nnot a document\n"), json=True)
    id = answer.json()["files"][0]["job"]
    until(lambda: memex.ask("queue.show", id=id)["status"] == "failed")
    text = browser.text("/jobs", status="failed")
    reason = memex.ask("queue.show", id=id)["error"]["message"]
    assert "broken.pdf" in text
    assert html.escape(reason)[:40] in text
    answer = browser.post("/jobs/retry", id=id)
    assert answer.status_code == 303
    assert "queued again" in browser.text("/jobs")
    until(lambda: memex.ask("queue.show", id=id)["status"] == "failed")
    assert browser.post("/jobs/retry", id="0" * 32).status_code == 404
    assert browser.post("/jobs/cancel", id=id).status_code in (400, 404, 409)


def test_scheduled_jobs_are_listed_and_run_now(memex, browser):
    text = browser.text("/jobs")
    assert "list the vault" in text
    before = next(job["started_at"] for job in memex.ask("job.list") if job["name"] == "listing")
    assert browser.post("/jobs/run", name="listing").status_code == 303
    assert "was started" in browser.text("/jobs")
    until(lambda: next(job for job in memex.ask("job.list") if job["name"] == "listing")["started_at"] != before)
    until(lambda: "Last runs" in browser.text("/jobs/runs", name="listing"))
    assert browser.get("/jobs/runs", name="nothing").status_code == 404
    assert browser.post("/jobs/run", name="nothing").status_code == 404


def test_a_long_queue_has_pages(memex, browser):
    names = [f"page {number}.txt" for number in range(30)]
    answer = send(browser, *((name, f"Text of {name}".encode()) for name in names), json=True)
    assert {row["status"] for row in answer.json()["files"]} == {"queued"}
    first = browser.text("/jobs")
    older = html.unescape(re.search(r'rel="next" href="([^"]+)"', first)[1])
    shown = [name for name in names if f">{name}<" in first]
    assert len(shown) == 25
    assert all(f">{name}<" in browser.text(older.partition("#")[0]) for name in set(names) - set(shown))


@pytest.mark.slow
def test_a_form_that_is_too_long_is_refused_after_it_was_sent(browser):
    answer = browser.post("/jobs/run", name=["x" * 7_000_000] * 5)
    assert answer.status_code == 413
    assert "nothing was changed" in answer.text
