"""A file by REST: streamed to the staging folder, refused early, cut, dripped; over real sockets."""

import http.client
import json
import os
import re
import socket
import time
from contextlib import contextmanager, suppress

import httpx2
import pytest

from mcp_server.rest import upload_form
from mcp_server.rest.upload_form import PATH
from syncd.settings.knowledge_base import KbSettings
from tests.support.live_server import running
from tests.support.world import until

MIB = 1_048_576
KB = KbSettings(max_file=8 * MIB, staged=20 * MIB, uploads=3, free=0)
SEAM = "xxSEAMxx"


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim") / "state", body_s=0.7, max_body=100_000, kb=KB) as served:
        served.world.app.worker.stop()  # what is queued stays queued
        yield served


@pytest.fixture(autouse=True)
def nothing_is_left(rim):
    yield
    until(lambda: not rim.agent_access.uploads._arriving)
    assert [path.name for path in (rim.world.state / "uploads").iterdir()] == []


def sent(rim, *files, key="full", data=None, **more):
    parts = [("file", file if isinstance(file, tuple) else ("a.md", file)) for file in files]
    return rim.rest("POST", PATH, key=key, files=parts, data=data or {}, **more)


def queued(rim, answer):
    """The job that was made, and the bytes that it holds."""
    assert answer.status_code == 202, answer.text
    assert set(answer.json()) == {"job_id", "status", "suspicious"}
    queue = rim.world.app.opened.queue
    job = queue.job(answer.json()["job_id"])
    file = queue.staged.find(job.id)
    try:
        return job, file.read_bytes()
    finally:
        file.unlink()
        queue.cancel(job.id)


def error_of(answer):
    return answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["message"]


@contextmanager
def connection(rim, *lines, length=None, key="full", boundary=SEAM, method="POST"):
    """A connection on which the head of a form has been sent."""
    host, _, port = rim.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=15) as link:
        head = [
            f"{method} {PATH} HTTP/1.1",
            f"Host: {host}:{port}",
            f"Authorization: Bearer {rim.secrets[key]}",
            f"Content-Type: multipart/form-data; boundary={boundary}",
            "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}",
            *lines,
        ]
        link.sendall("\r\n".join(head).encode() + b"\r\n\r\n")
        yield link


def ended(rim):
    """How many uploads have ended, however they did."""
    page = rim.rest("GET", "/metrics", key="owner").text
    return sum(
        float(count) for count in re.findall(r'^memex_tool_calls_total\{.*tool="upload".*\} (\S+)$', page, re.MULTILINE)
    )


def answer_on(link):
    answer = http.client.HTTPResponse(link)
    answer.begin()
    return answer.status, json.loads(answer.read())


def form(*parts, end=True):
    """A form's bytes; each part is its headers and its data."""
    made = b"".join(b"--%s\r\n%s\r\n\r\n%s\r\n" % (SEAM.encode(), head.encode(), data) for head, data in parts)
    return made + (b"--%s--\r\n" % SEAM.encode() if end else b"")


FILE = 'Content-Disposition: form-data; name="file"; filename="a.md"'


def posted(rim, body):
    with connection(rim, length=len(body)) as link:
        link.sendall(body)
        return answer_on(link)


def test_a_file_becomes_a_job_with_what_is_said_of_it(rim):
    data = b"%PDF-" + os.urandom(3 * MIB + 12)
    said = {"title": "Ein Títel", "tags": ["a b,c", "d"], "collection": "memory", "namespace": "Cafe\u0301"}
    job, held = queued(rim, sent(rim, ("Réport 会議.pdf", data), data=said, headers={"x-memory-workspace": "work"}))
    assert held == data
    assert (job.workspace, job.kind, job.status) == ("work", "file", "queued")
    assert {name: job.given[name] for name in ("name", "size", "title", "tags", "collection", "namespace")} == {
        "name": "Réport 会議.pdf",
        "size": len(data),
        "title": "Ein Títel",
        "tags": ["a-b", "c", "d"],
        "collection": "memory",
        "namespace": "Caf\u00e9",
    }
    assert job.key == rim.secrets["full"].split("_")[1]
    assert (job.author.surface, job.author.tool) == ("rest", "upload")


def test_fields_may_follow_the_file_and_bytes_may_look_like_boundaries(rim):
    data = b"\r\n--xxSEAMx\r\n--\r\n--xxSEAM\r\n" * 1_000 + b"\r\n--"
    body = form((FILE, data), ('content-disposition: form-data; name="title"', b"Later"))
    for size in (1, 7, 4_096, 70_000):
        with connection(rim, length=len(body)) as link:
            pieces = range(0, len(body), size) if size > 1 else range(0)
            for at in pieces:
                link.sendall(body[at : at + size])
            if size == 1:
                for at in range(200):
                    link.sendall(body[at : at + 1])
                link.sendall(body[200:])
            status, told = answer_on(link)
        assert status == 202, told
        job = rim.world.app.opened.queue.job(told["job_id"])
        assert rim.world.app.opened.queue.staged.find(job.id).read_bytes() == data
        assert job.given["title"] == "Later"
        rim.world.app.opened.queue.cancel(job.id)


def test_a_body_without_a_length_is_taken_as_well(rim):
    data = b"0123456\n" * (MIB // 4)
    body = form((FILE, data))

    def pieces():
        for at in range(0, len(body), 50_000):
            yield body[at : at + 50_000]

    headers = rim.headers() | {"content-type": f"multipart/form-data; boundary={SEAM}"}
    assert queued(rim, httpx2.post(rim.url + PATH, content=pieces(), headers=headers, timeout=30))[1] == data


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        pytest.param([], "no file", id="nothing"),
        pytest.param([('Content-Disposition: form-data; name="title"', b"x")], "no file", id="no file"),
        pytest.param([(FILE, b"")], "total_size", id="an empty file"),
        pytest.param([(FILE, b"x"), (FILE, b"y")], "more than one file", id="two files"),
        pytest.param([('Content-Disposition: form-data; name="file"', b"x")], "must name its file", id="no filename"),
        pytest.param([(FILE.replace("a.md", ".."), b"x")], "filename", id="a name that is none"),
        pytest.param(
            [(FILE.replace("a.md", "a\x1bb"), b"x")], "filename|well-formed", id="a name that hides something"
        ),
        pytest.param([(FILE.replace("a.md", "x" * 300), b"x")], "300 bytes", id="a name that is too long"),
        pytest.param(
            [(FILE.replace('name="file"', 'name="other"'), b"x")],
            "unknown part; the allowed parts are file, title",
            id="another file",
        ),
        pytest.param([('Content-Disposition: form-data; name="x"', b"")], "unknown part", id="another field"),
        pytest.param([("X: y", b"")], "unknown part", id="a part without a name"),
        pytest.param([(FILE + "\r\nContent-Transfer-Encoding: base64", b"eA==")], "encoding", id="encoded"),
        pytest.param(
            [(FILE, b"x"), *[('Content-Disposition: form-data; name="title"', b"x")] * 2], "more than once", id="twice"
        ),
        pytest.param([(FILE, b"x"), ('Content-Disposition: form-data; name="title"', b"\xff")], "UTF-8", id="no text"),
        pytest.param(
            [(FILE, b"x"), ('Content-Disposition: form-data; name="namespace"', b"../../x")],
            "namespace",
            id="a way out",
        ),
        pytest.param(
            [(FILE, b"x"), ('Content-Disposition: form-data; name="collection"', b"memos")],
            "documents",
            id="no collection",
        ),
        pytest.param(
            [(FILE, b"x"), ('Content-Disposition: form-data; name="title"', b"x" * 70_000)], "65,536", id="a huge field"
        ),
        pytest.param([('Content-Disposition: form-data; name="tags"', b"")] * 200, "128 parts", id="many parts"),
        pytest.param([(FILE + "".join(f"\r\nX{n}: y" for n in range(20)), b"x")], "well-formed", id="many headers"),
        pytest.param([(FILE + "\r\nX: " + "y" * 9_000, b"x")], "well-formed", id="a huge header"),
    ],
)
def test_a_form_that_is_wrong_is_refused_in_words_and_leaves_nothing(rim, parts, why):
    begun = time.monotonic()
    status, told = posted(rim, form(*parts))
    assert (status, told["error"]["code"]) == (400, "INVALID_ARGUMENT")
    assert re.search(why, told["error"]["message"])
    assert time.monotonic() - begun < 1.5  # nobody waits for the end of what has ended


@pytest.mark.parametrize("cut", [3, 20, 60, 100, 150])
def test_a_body_that_ends_too_early_is_refused(rim, cut):
    status, told = posted(rim, form((FILE, b"x" * 100))[:-cut])
    assert (status, told["error"]["code"]) == (400, "INVALID_ARGUMENT")


def test_what_follows_the_last_boundary_means_nothing(rim):
    assert posted(rim, form((FILE, b"x")) + b"--trailing\r\n" * 10)[0] == 202


@pytest.mark.parametrize("boundary", ["", "x" * 201])
def test_a_form_without_a_boundary_that_can_be_used_is_refused(rim, boundary):
    with connection(rim, length=3, boundary=boundary) as link:
        link.sendall(b"abc")
        status, told = answer_on(link)
    assert (status, "boundary" in told["error"]["message"]) == (400, True)


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(rim):
    with connection(rim, "Expect: 100-continue", length=10 * MIB) as link:
        status, told = answer_on(link)
    assert (status, told["error"]["code"]) == (413, "RESOURCE_EXHAUSTED")


def test_a_file_may_have_its_very_limit_and_not_a_byte_more(rim):
    _, held = queued(rim, sent(rim, b"." * (8 * MIB)))
    assert len(held) == 8 * MIB
    status, told = posted(rim, form((FILE, b"." * (8 * MIB + 1))))
    assert (status, told["error"]["details"]["limit"]) == (413, 8 * MIB)
    with connection(rim) as link:  # of an unknown length, with no end
        link.sendall(b"%x\r\n" % (len(form((FILE, b""), end=False)) - 2) + form((FILE, b""), end=False)[:-2] + b"\r\n")
        for _ in range(12):
            link.sendall(b"100000\r\n" + bytes(MIB) + b"\r\n")
        assert answer_on(link)[0] == 413


@pytest.mark.slow
@pytest.mark.parametrize("key", ["full", "reader"])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_who_sends_a_whole_file_before_reading_sees_the_refusal(rim, announced, key):
    """As many clients do; a reset in the middle of the file would cost them the answer."""
    size = 40 * MIB
    head = form((FILE, b""), end=False)[:-2]
    with connection(rim, length=len(head) + size if announced else None, key=key) as link:
        for piece in (head, *([bytes(MIB)] * (size // MIB))):
            link.sendall(piece if announced else b"%x\r\n%s\r\n" % (len(piece), piece))
        assert answer_on(link)[0] == (413 if announced or key == "full" else 403)


def test_only_this_route_takes_a_form_and_a_large_body(rim):
    for path in ("/capture", "/search", "/api/v1/jobs/", "/api/v1/search", "/mcp"):
        answer = rim.rest("POST", path, files={"file": ("a.md", b"x")})
        assert error_of(answer)[:2] == (415, "INVALID_ARGUMENT"), path
        assert "multipart" not in answer.text
    answer = rim.rest("POST", PATH, content=b"x", headers={"content-type": "application/pdf"})
    assert "or a file as `multipart/form-data`" in answer.json()["error"]["message"]
    assert rim.rest("POST", PATH, json={"text": "a note"}).status_code == 202
    body = b"x" * 200_000
    for kind in ("application/json", "text/plain", "multipart/mixed; boundary=x"):
        answer = rim.rest("POST", PATH, content=body, headers={"content-type": kind})
        assert answer.status_code in (413, 415)


@pytest.mark.parametrize(
    ("key", "status"),
    [(None, 401), ("bad", 401), ("expired", 401), ("revoked", 401), ("mcp-only", 403), ("static-mcp", 403)],
)
def test_nothing_of_a_file_is_read_before_the_key_is_known(rim, key, status):
    host, _, port = rim.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as link:
        secret = f"Authorization: Bearer {rim.secrets[key]}\r\n" if key else ""
        head = f"POST {PATH} HTTP/1.1\r\nHost: {host}:{port}\r\n{secret}Expect: 100-continue\r\n"
        link.sendall(f"{head}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 900000\r\n\r\n".encode())
        assert answer_on(link)[0] == status  # and no 100 before it


@pytest.mark.parametrize(("key", "status", "code"), [("reader", 403, "PERMISSION_DENIED"), ("gone", 404, "NOT_FOUND")])
def test_a_key_that_may_not_write_or_not_there_leaves_nothing(rim, key, status, code):
    answer = sent(rim, b"text", key=key)
    assert error_of(answer)[:2] == (status, code)
    assert error_of(sent(rim, b"text", key="work", headers={"x-memory-workspace": "secret"}))[:2] == (404, "NOT_FOUND")


@pytest.mark.slow
def test_a_connection_that_is_cut_at_any_place_leaves_nothing(rim):
    body = form((FILE, b"." * (3 * MIB)), ('Content-Disposition: form-data; name="title"', b"T"))
    before = rim.world.app.opened.queue.counts()
    for at in (0, 5, 40, 90, 100, 70_000, MIB, 2 * MIB + 77, 3 * MIB + 100, len(body) - 30, len(body) - 1):
        known = ended(rim)
        with connection(rim, length=len(body)) as link:
            link.sendall(body[:at])
        until(lambda known=known: ended(rim) == known + 1)  # the server may meet it long after its client has left
    assert rim.world.app.opened.queue.counts() == before


def test_a_client_that_drips_is_not_waited_for(rim):
    begun = time.monotonic()
    with connection(rim, length=5 * MIB) as link:
        link.sendall(form((FILE, b"")))
        try:
            while time.monotonic() - begun < 10:
                link.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - begun < 4
        status, told = answer_on(link)
    assert (status, told["error"]["code"], told["error"]["retryable"]) == (408, "RESOURCE_EXHAUSTED", True)


def test_a_client_that_stops_is_not_waited_for(rim):
    with connection(rim, length=5 * MIB) as link:
        link.sendall(form((FILE, bytes(100_000)))[:90_000])
        assert answer_on(link)[0] == 408


@pytest.mark.slow
def test_a_client_that_is_slow_but_steady_is_waited_for(rim):
    data = b"0123456789" * 10_000
    body = form((FILE, data))
    with connection(rim, length=len(body)) as link:
        begun = time.monotonic()
        for at in range(0, len(body), 20_000):
            time.sleep(0.3)
            link.sendall(body[at : at + 20_000])
        assert time.monotonic() - begun > 2 * rim.world.app.settings.server.body_s
        status, told = answer_on(link)
    assert status == 202
    assert rim.world.app.opened.queue.staged.find(told["job_id"]).read_bytes() == data


def test_a_key_has_so_many_uploads_at_once_and_others_are_not_touched(rim):
    space = rim.space()
    body = form((FILE, b"." * 200_000))
    with (
        connection(rim, length=len(body), key=space.name) as one,
        connection(rim, length=len(body), key=space.name) as two,
    ):
        with connection(rim, length=len(body), key=space.name) as three:
            for link in (one, two, three):
                link.sendall(body[:1_000])
            until(lambda: len(rim.agent_access.uploads._arriving) == 3)
            answer = sent(rim, b"x", key=space.name)
            assert error_of(answer)[:2] == (429, "RESOURCE_EXHAUSTED")
            queued(rim, sent(rim, b"x"))
            for link in (one, two, three):
                link.sendall(body[1_000:])
                assert answer_on(link)[0] == 202
    queued(rim, sent(rim, b"x", key=space.name))


def refused(link):
    """Whether a request ends without a word that it was taken."""
    answer = http.client.HTTPResponse(link)
    try:
        answer.begin()
    except (OSError, http.client.HTTPException):
        return True
    return answer.status >= 400


def test_a_key_that_is_revoked_takes_its_upload_with_it(rim, caplog):
    mine, theirs = rim.space(), rim.space()
    uploads, jobs = rim.agent_access.uploads, rim.world.app.opened.queue.counts()
    body = form((FILE, bytes(5 * MIB)))
    with (
        connection(rim, length=len(body), key=mine.name) as revoked,
        connection(rim, length=len(body), key=theirs.name) as kept,
    ):
        for link in (revoked, kept):
            link.sendall(body[:100_000])
        until(lambda: len(uploads._arriving) == 2)
        rim.agent_access.keys.revoke(mine.name, now=int(time.time() * 1000))
        at = 100_000
        while len(uploads._arriving) == 2:
            assert at < len(body) // 2, "an upload goes on though its key was revoked"
            for link in (revoked, kept):
                with suppress(OSError):
                    link.sendall(body[at : at + 20_000])  # steady, so that slowness ends neither
            at += 20_000
            time.sleep(0.1)
        status, told = answer_on(revoked)
        assert (status, told["error"]["code"]) == (401, "UNAUTHENTICATED")
        assert not [record for record in caplog.records if record.exc_info]
        assert rim.rest("GET", "/thoughts", key=mine.name).status_code == 401
        assert rim.world.app.opened.queue.counts() == jobs
        kept.sendall(body[at:])
        status, told = answer_on(kept)
    assert status == 202
    assert rim.world.app.opened.queue.staged.find(told["job_id"]).read_bytes() == bytes(5 * MIB)
    rim.world.app.opened.queue.cancel(told["job_id"])


def test_the_log_and_the_counts_tell_of_uploads(rim):
    queued(rim, sent(rim, b"some text"))
    sent(rim, b"")
    page = rim.rest("GET", "/metrics", key="owner").text
    assert re.search(r'memex_tool_calls_total\{.*tool="upload".*code="OK"|code="OK".*tool="upload"', page), page[:3000]


def test_a_form_is_meant_only_where_it_is_taken():
    form = upload_form.body_limit(1)
    assert form.covers("POST", PATH, b"Multipart/Form-Data ; boundary=x")
    for method, path, kind in (
        ("PUT", PATH, b"multipart/form-data"),
        ("POST", PATH + "/", b"multipart/form-data"),
        ("POST", PATH, b"multipart/form-datax"),
        ("POST", PATH, b""),
    ):
        assert not form.covers(method, path, kind)
