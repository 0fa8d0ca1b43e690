"""Who may do what on the page: every route with every kind of credential, hosts, origins, tokens, and what a session does not open."""

from __future__ import annotations

import http.client
import re
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx2
import pytest

from syncd.cli.page.process import ask_page
from syncd.page.application import EVENTS, VIEWS
from syncd.page.web.access_guard import POLICY
from tests.support.local_daemon import local_page
from tests.support.page_browser import Browser

ROUTES = sorted(
    {(method, route.path) for view in VIEWS for route in view.routes for method in route.methods - {"HEAD"}}
)
ALL = [
    *ROUTES,
    ("GET", EVENTS),
    ("GET", "/open"),
    ("GET", "/nothing"),
    ("POST", "/"),
    ("DELETE", "/"),
    ("OPTIONS", "/"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with local_page(tmp_path_factory.mktemp("page")) as memex:
        used, browser = memex.one_time_link(), memex.browser()
        Browser(used)
        revoked = memex.browser()
        secret = revoked.client.cookies[cookie(browser)]
        ask_page(memex.state, "revoke", id=ask_page(memex.state, "sessions")[0]["id"])
        yield SimpleNamespace(memex=memex, browser=browser, revoked=secret, used=used)


def cookie(browser):
    return f"memex-page-{urlsplit(browser.page).port}"


def credentials(page):
    """The credentials that open nothing, each as headers and parameters of a request."""
    key, name = page.memex.key, cookie(page.browser)
    valid = page.browser.client.cookies[name]
    return {
        "none": {},
        "a key as bearer": {"headers": {"authorization": f"Bearer {key}"}},
        "a key as x-api-key": {"headers": {"x-api-key": key, "x-memory-workspace": "default"}},
        "a key as the cookie": {"headers": {"cookie": f"{name}={key}"}},
        "a guess": {"headers": {"cookie": f"{name}=x"}},
        "a revoked session": {"headers": {"cookie": f"{name}={page.revoked}"}},
        "a session under another name": {"headers": {"cookie": f"memex-page-1={valid}"}},
        "a session sent twice": {"headers": {"cookie": f"{name}={valid}; {name}=x"}},
        "a session as bearer": {"headers": {"authorization": f"Bearer {valid}"}},
        "a session in the address": {"params": {name: valid, "csrf": page.browser.csrf}},
        "a used link": {"params": {"link": re.search("link=([^&]+)", page.used)[1]}},
    }


CREDENTIALS = (
    "none", "a key as bearer", "a key as x-api-key", "a key as the cookie", "a guess", "a revoked session",
    "a session under another name", "a session sent twice", "a session as bearer", "a session in the address", "a used link",
)  # fmt: skip


@pytest.mark.parametrize("name", CREDENTIALS)
def test_no_other_credential_opens_a_route(page, name):
    how = credentials(page)[name]
    with httpx2.Client(base_url=page.browser.page, trust_env=False) as client:
        for method, path in ALL:
            headers = {"origin": page.browser.page, **how.get("headers", {})}
            answer = client.request(method, path, headers=headers, params=how.get("params"))
            assert answer.status_code == 401, (method, path)
            assert "memex open" in answer.text
            assert "set-cookie" not in answer.headers


def test_a_session_opens_every_page(page):
    for method, path in ROUTES:
        if method == "GET":
            assert page.browser.get(path).status_code in (200, 400, 404), path


def test_a_session_opens_neither_mcp_nor_rest(page):
    secret = page.browser.client.cookies[cookie(page.browser)]
    for headers in ({"authorization": f"Bearer {secret}"}, {"cookie": f"{cookie(page.browser)}={secret}"}):
        for method, path in (("POST", "/mcp"), ("GET", "/sse"), ("GET", "/thoughts"), ("GET", "/api/v1/documents")):
            answer = httpx2.request(method, page.memex.url + path, headers=headers, json={}, trust_env=False)
            assert answer.status_code == 401, path


def test_the_daemon_serves_no_page_even_with_a_key(page):
    headers = {"authorization": f"Bearer {page.memex.key}"}
    for _, path in ROUTES:
        answer = httpx2.get(page.memex.url + path, headers=headers, trust_env=False)
        assert "text/html" not in answer.headers.get("content-type", ""), path


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "host", ["localhost:{}", "127.0.0.1:{}.evil.example", "evil.example", "127.0.0.1", "[::1]:{}", "127.0.0.1:{}:80"]
)
def test_another_host_name_is_refused(page, method, host):
    port = urlsplit(page.browser.page).port
    answer = page.browser.client.request(method, "/", headers={"host": host.format(port), "origin": page.browser.page})
    assert answer.status_code == 421


def test_two_hosts_are_refused(page):
    connection = http.client.HTTPConnection(urlsplit(page.browser.page).netloc)
    connection.putrequest("GET", "/", skip_host=True)
    connection.putheader("Host", urlsplit(page.browser.page).netloc)
    connection.putheader("Host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status >= 400
    connection.close()


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://127.0.0.1:1",
        "https://127.0.0.1:{}",
        "http://localhost:{}",
        "http://127.0.0.1:{}.evil.example",
        "",
    ],
)
def test_another_origin_is_refused(page, origin):
    headers = {"origin": origin.format(urlsplit(page.browser.page).port)}
    assert page.browser.client.get("/", headers=headers).status_code == 403
    assert page.browser.client.post("/", headers=headers).status_code == 403


def test_a_change_without_an_origin_is_refused(page):
    assert page.browser.client.post("/").status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_a_request_that_another_site_caused_is_refused(page, site):
    assert page.browser.client.get("/", headers={"sec-fetch-site": site}).status_code == 403
    assert httpx2.get(page.memex.one_time_link(), headers={"sec-fetch-site": site}, trust_env=False).status_code == 403


@pytest.mark.parametrize("token", [{}, {"csrf": ""}, {"csrf": "x"}, {"csrf": ["x", "y"]}])
def test_a_change_without_the_token_of_its_session_is_refused(page, token):
    headers = {"origin": page.browser.page, "sec-fetch-site": "same-origin"}
    other = page.memex.browser()
    for method, path in ROUTES:
        if method == "POST":
            for fields in (token, {"csrf": other.csrf}):
                answer = page.browser.client.post(path, data=fields, headers=headers)
                assert answer.status_code == 403, path
                assert "nothing was changed" in answer.text


def test_every_answer_has_the_headers_of_the_guard(page):
    answers = [
        page.browser.get(path) for path in ("/", "/nothing", "/static/style.css", "/static/nothing", "/static/../x")
    ]
    answers += [httpx2.get(page.browser.page, trust_env=False), page.browser.client.post("/"), page.browser.opened]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_the_policy_allows_no_foreign_source_and_no_inline_code():
    sources = {source for part in POLICY.split("; ") for source in part.split()[1:]}
    assert sources == {"'none'", "'self'"}
    assert {"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(
        POLICY.split("; ")
    )


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(page):
    browser = page.memex.browser()
    (given,) = browser.opened.headers.get_list("set-cookie")
    assert given.startswith(f"{cookie(browser)}=")
    attributes = {part.strip().casefold() for part in given.split(";")[1:]}
    assert attributes == {"httponly", "path=/", "samesite=strict"}


def test_a_link_leads_only_to_the_page(page):
    for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\n/evil"):
        link = re.sub("to=.*", "", page.memex.one_time_link())
        answer = httpx2.get(link, params={**dict(httpx2.URL(link).params), "to": target}, trust_env=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"


def test_a_link_that_this_browser_has_used_leads_to_the_page_again(page):
    link = page.memex.one_time_link()
    browser = Browser(link)
    assert browser.client.get(link).status_code == 303
    assert httpx2.get(link, trust_env=False).status_code == 401


def test_static_files_hold_no_data_and_need_no_session(page):
    answer = httpx2.get(f"{page.browser.page}/static/style.css", trust_env=False)
    assert answer.status_code == 200
    assert httpx2.get(f"{page.browser.page}/static/%2e%2e/web/view.py", trust_env=False).status_code in (401, 404)


def test_a_page_without_a_session_does_not_name_the_vault(page):
    name = page.memex.vault.name
    shown = (f"· {name} ·", f'title="{name}"', f"<span>{name}</span>")
    assert all(text in page.browser.text("/") for text in shown)
    for path in ("/", "/review", "/nothing", "/static/nothing"):
        answer = httpx2.get(page.browser.page + path, trust_env=False).text
        assert ("<title>Open the page with memex open · Memex</title>" in answer) is not path.startswith("/static")
        assert not any(text in answer for text in shown)


def test_no_address_ends_the_page_or_makes_a_link(page):
    for path in ("/link", "/stop", "/sessions", "/revoke"):
        assert page.browser.get(path).status_code == 404
