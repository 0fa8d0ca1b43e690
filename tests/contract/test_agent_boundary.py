"""What an agent can reach: every route and tool, over the wire, with keys of every reach, against what they must not show.

The same calls are also made on a vault without the secret notes: but for ids and times the answers must be the same."""

from __future__ import annotations

import itertools
import json
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp.types import PromptReference, ResourceTemplateReference

from index.document_ids import path_id
from syncd.documents.owner_marks import read_owner_keys
from syncd.notes.front_matter import split
from syncd.notes.property_reader import PERSONS
from syncd.settings.automation import ReviewSettings
from tests.support.live_server import client, run, running
from tests.support.world import until

NOW = 1_700_000_000_000
TITLE = "Garden plan"  # of a note outside the inbox, and of one that an agent captures
SHARED = "The same words stand in both."  # in a note outside the inbox, and captured by an agent
ID = "11111111-2222-4333-8444-555555555555"
WAYS = [("http", "legacy", "/mcp"), ("http", "2026-07-28", "/mcp/thoughts"), ("sse", "legacy", "/sse")]
NOTE = ResourceTemplateReference(type="ref/resource", uri="note://{workspace}/{+path}")
PROMPTS = {
    "context": {},
    "recall": {"question": "what opens the safe"},
    "consolidate": {"topic": ""},
    "capture-session": {},
}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")


def word(kind: str) -> str:
    """A word that stands in one place only."""
    return f"xq{kind}zy"


def notes(folder: str, kind: str) -> dict[str, str]:
    """A note with a secret in every part: in its name, properties and text."""
    s = {
        part: word(kind + part) for part in ("name", "title", "tag", "alias", "key", "value", "source", "head", "body")
    }
    text = (
        f"---\ntitle: {s['title']}\ntags: [{s['tag']}]\naliases: [{s['alias']}]\n{s['key']}: {s['value']}\n"
        f"source: {s['source']}\nid: {ID[:-1]}{len(kind)}\nsummary: {word(kind + 'sum')}\n---\n"
        f"# {s['head']}\n\nThe safe is opened with {s['body']}. #{word(kind + 'inline')}\n\n"
        f"[[{word(kind + 'link')}]] ![[{word(kind + 'embed')}]] %%{word(kind + 'comment')}%%\n\n"
        f"```\n{word(kind + 'code')}\n```\n\n- [ ] {word(kind + 'task')}\n\n> [!note] {word(kind + 'callout')}\n"
    )
    return {f"{folder}{s['name']}.md": text}


OUTSIDE = {
    **notes("", "root"),
    **notes(f"{word('folder')}/Diary/", "deep"),
    **notes("Captures/Reports/", "report"),
    **notes("Captures/reports/", "small"),
    **notes("Captures/", "beside"),
    **notes(".obsidian/", "hidden"),
    **notes("Captures/work/.trash/", "trash"),
    f"{word('folder')}/Broken {word('brokenname')}.md": f"---\n{word('broken')}: [\n---\n{word('brokenbody')}\n",
    f"{word('canvasname')}.canvas": f'{{"nodes": [{{"text": "{word("canvas")}"}}]}}',
    f"Diary/{TITLE}.md": f"{word('garden')}\n",
    "Diary/Shared.md": f"---\nid: {ID}\n---\n{SHARED}",
}
# What Memex itself keeps for the owner, and notes of which suggestions speak.
KEPT = {
    **notes("Captures/Archive/work/", "archived"),
    "Captures/Review.base": f"views: [] # {word('table')}\n",
    f"Captures/Reports/{word('canvasreport')}.canvas": f'{{"nodes": [{{"text": "{word("cluster")}"}}]}}',
    f"{word('folder')}/Kin/{word('kinname')}.md": f"---\ntags: [{word('kintag')}]\naliases: [Kept]\n---\nA capture about a safe. {word('kinbody')}\n",
    f"{word('folder')}/Kin/{word('kinother')}.md": f"---\ntags: [{word('kintag')}]\n---\nAnother text about a safe, and a capture.\n",
}
# What stands in a capture for its owner alone; in every spelling that some program takes for the key.
OWNERS = {
    "promote_to": word("promoteto"), "review": word("review"), "promote_problem": word("problem"),
    "suggested_folder": word("sugfolder"), "suggested_tags": [word("sugtag")], "suggested_links": [f"[[{word('suglink')}]]"],
    "suggested_similar": [f"[[{word('sugsimilar')}|duplicate: {word('sugshown')}]]"], "Promoted_At": word("promotedat"),
}  # fmt: skip
SECRETS = sorted(set(re.findall(r"xq\w+?zy", json.dumps([OUTSIDE, KEPT, OWNERS], ensure_ascii=False))))

SHARE, FEW, FEWER = 7, 3, 5  # of all, every so many-th; no even number, as ids() has four kinds in turn


@dataclass
class Probe:
    """All that was said to and by a server."""

    rim: object
    every: int = 1  # of what there is to ask, each so many-th is asked
    heard: list[tuple[str, str]] = field(default_factory=list)

    def some(self, questions):
        return [*questions][:: self.every]

    def rest(self, method, path, *, key, **options):
        answer = self.rim.rest(method, path, key=key, **options)
        head = "\n".join(
            f"{name}: {value}" for name, value in answer.headers.items() if name not in ("date", "x-request-id")
        )
        self.hear(f"{key} {method} {path} {options}", f"{answer.status_code} {head}\n{answer.text}")
        return answer

    def hear(self, asked, answer):
        self.heard.append((asked, answer))

    def leaks(self):
        """Secrets that were told and not said by the caller itself."""
        return [
            (asked, secret)
            for asked, answer in self.heard
            for folded in [answer.casefold()]
            for secret in SECRETS
            if secret in folded and secret not in asked
        ]

    def told(self):
        """What was heard, but for ids, times and sizes."""
        return [(UUID.sub("ID", asked), settled(answer)) for asked, answer in self.heard]


def settled(answer):
    answer = UUID.sub("ID", answer)
    answer = re.sub(r"content-length: \d+|mcp-session-id: \S+", "", answer)
    answer = re.sub(r"(\(|%28)[0-9a-f]{8}(\)|%29)", "(ID)", answer)
    answer = re.sub(r"\b20\d\d-\d\d-\d\d(T[\d:.]+Z)?", "TIME", answer)
    answer = re.sub(r"\b1[6-9]\d{11}\b", "TIME", answer)
    # Whether a worker has already taken a job when its caller is answered is chance.
    answer = re.sub(r'"status":"(queued|running)"', '"status":"WAITING"', answer)
    # Scores depend on how far the full-text index has been built, and documents of one score come in any order.
    return sorted(re.split(r"[{}]", re.sub(r'\\*"score\\*": ?[\d.e-]+', "", answer)))


def ids():
    """Whatever might be taken for the id of a note outside the inbox."""
    known = [ID, *(f"{ID[:-1]}{n}" for n in range(1, 9))]
    for path in OUTSIDE:
        known += [path_id(path), path_id(f"Captures/work/{path}"), path.replace("/", "%2F"), f"..%2F..%2F{path}"]
    return known


SEARCHES = [
    one | {"top_k": 50}
    for one in (
        {"query": "the safe is opened with"},
        {"query": " ".join(SECRETS)[:1_900]},
        *({"query": " ".join(some), "mode": "text"} for some in (SECRETS[n::4] for n in range(4))),
        *({"query": SHARED, "mode": mode, "detail": "full"} for mode in ("hybrid", "vector", "text")),
        *({"query": "safe", "tags": [tag]} for tag in SECRETS if "tag" in tag or "inline" in tag),
        *({"query": "safe", "source": source} for source in SECRETS if "source" in source),
        *(
            {"query": "safe", "namespace": one}
            for one in ("", "..", "../..", word("folder"), "Reports", "default", "Diary")
        ),
        *({"query": "safe", "collection": one} for one in ("documents", "memory", "workspace", "vault")),
        {"query": "safe", "scope": "vault"},
        {"query": "safe", "scope": "all", "workspace": ""},
        {"query": "safe", "since": 0, "until": 8_000_000_000_000},
    )
]
LISTS = [{}, {"limit": 200, "detail": "full"}, {"limit": 200, "before": 8_000_000_000_000}, {"scope": "vault"}]
CAPTURES = [
    {"content": f"# {TITLE}\n\nmine"},
    {"content": "another text", "metadata": {"title": TITLE}},
    {"content": SHARED},
    {"content": f"![[{TITLE}]] and [[Shared]] are links to notes of the vault"},
    *(
        {"content": f"escape {n}", "namespace": one}
        for n, one in enumerate(("..", "../../Diary", "/Diary", "Reports", "a/../.."))
    ),
    {"content": "escape by title", "metadata": {"title": "../../Diary/Mine"}},
    {"content": "escape by source", "source": "../../Diary/Mine.md"},
    *({"content": "owned", "metadata": {name: "x"}} for name in ("promote", "id", "path", "workspace", "review")),
]
PASSAGES = [  # for kb_search
    one | {"top_n": 50}
    for one in (
        {"query": "the safe is opened with"},
        *({"query": SHARED, "mode": mode} for mode in ("hybrid", "vector", "text")),
        *({"query": " ".join(some), "mode": "text"} for some in (SECRETS[n::4] for n in range(4))),
        {"query": "safe", "tags": [tag for tag in SECRETS if "tag" in tag][:32], "tags_match": "any"},
        *({"query": "safe", "doc_type": one} for one in ("note", "file", "entity")),
        *({"query": "safe", "collection": one} for one in ("documents", "memory", "vault", word("folder"))),
        {"query": "safe", "scope": "vault"},
    )
]
PLACES = [  # for source_path
    *OUTSIDE,
    *(f"{TITLE}{number}.md" for number in ("", " 2", " 3")),
    "../../Diary/Shared.md",
    "/Diary/Shared.md",
    "Captures/Reports/x.md",
    "Captures/Archive/work/Gone.md",
    "../Archive/work/Gone.md",
    "../Review.base",
    "..",
    "Link.md",
    f"Linked/{TITLE}.md",
]
WORKSPACES = [None, "work", "default", "", ".", "..", "../Diary", "Reports", "reports", "Captures", "Diary", "/", "work/..",
              word("folder"), ".obsidian", "work/.trash", "*", "vault"]  # fmt: skip


def every_route(probe, key):
    """Each route of REST, and of what is described, with all that might lead out of the inbox."""
    for path in ("/healthz", "/readyz"):
        probe.rest("GET", path, key=key)
        probe.rest("GET", path, key=None)
    made = []
    for sent in CAPTURES:
        answer = probe.rest("POST", "/capture", key=key, json=sent)
        if answer.status_code == 200:
            made.append(answer.json()["id"])
    tended(probe.rim.world)  # what was just captured is given suggestions
    for sent in probe.some(SEARCHES):
        probe.rest("POST", "/search", key=key, json=sent)
    for sent in LISTS:
        probe.rest("GET", "/thoughts", key=key, params=sent)
    for sent in ({}, {"project": "Diary"}, {"project": TITLE}):
        probe.rest("GET", "/context", key=key, params=sent)
    for id in (*probe.some(ids()), *made):
        probe.rest("GET", f"/thought/{id}", key=key)
    for id in probe.some(ids()):
        assert probe.rest("DELETE", f"/thought/{id}", key=key).status_code == 404
    for sent in PASSAGES:
        probe.rest("POST", "/api/v1/search", key=key, json=sent)
    for sent in ({"text": SHARED}, {"text": f"queued, and called {TITLE}", "title": TITLE}, {"text": "../../Diary"}):
        answer = probe.rest("POST", "/api/v1/jobs", key=key, json=sent)
        made.append(_ended(probe.rim, answer.json()["job_id"]))
    # Of equal texts any may be the one that a search has no room for.
    for n, name in enumerate((f"{TITLE}.txt", "../../Diary/Mine.txt", ".obsidian/app.json", "Link.md")):
        data = b"a file about a safe" + b", and about another" * n
        answer = probe.rest("POST", "/api/v1/jobs", key=key, files={"file": (name, data)})
        if answer.status_code == 202:
            made.append(_ended(probe.rim, answer.json()["job_id"]))
    for query in ("", "?limit=200", "?tags=" + "&tags=".join(SECRETS[:5]), "?type=file", "?collection=vault"):
        probe.rest("GET", f"/api/v1/documents{query}", key=key)
    for id in (*probe.some(ids()), *made):
        probe.rest("GET", f"/api/v1/documents/{id}", key=key)
        probe.rest("GET", f"/api/v1/jobs/{id}", key=key)
    for id in probe.some(ids()[::FEW]):
        assert probe.rest("PATCH", f"/api/v1/notes/{id}", key=key, json={"text": "mine"}).status_code == 404
        assert probe.rest("PUT", f"/api/v1/documents/{id}/tags", key=key, json={"tags": []}).status_code == 404
    for path in ("/api/v1/status", "/api/v1/jobs"):
        probe.rest("GET", path, key=key)
    for path in (
        *(f"/{path}" for path in OUTSIDE),
        "/Captures/",
        "/thought/..%2f..%2fDiary",
        "/mcp/vault",
        "/mcp/kb",
        "/vault",
    ):
        probe.rest("GET", path, key=key)
        probe.rest("POST", path, key=key, json={"query": "safe"})
    for body in (b"{", b'{"query": "safe', b"[]", b"null", b"\xff"):
        for path in ("/capture", "/search", "/mcp"):
            probe.rest("POST", path, key=key, content=body, headers={"content-type": "application/json"})
    for id in made:
        probe.rest("DELETE", f"/thought/{id}", key=key)


def _ended(rim, job):
    """The document of a job that has ended, or the job."""
    queue = rim.world.app.opened.queue
    until(lambda: queue.job(job).status in ("done", "failed"))
    return queue.job(job).document_id or job


def every_method(probe, key):
    """Each path that is described, by each method, whether it is served or not."""
    described = probe.rest("GET", "/openapi.json", key=key).json()
    assert len(described["paths"]) >= 6
    for path, method in itertools.product(
        described["paths"], ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS")
    ):
        body = {"json": {}} if method in ("POST", "PUT", "PATCH") else {}
        probe.rest(method, path.replace("{id}", "x"), key=key, **body)


def every_workspace(probe, key):
    """Names that might lead out of the inbox, or into what is no workspace."""
    for name in WORKSPACES:
        headers = {} if name is None else {"X-Memory-Workspace": name}
        probe.rest("POST", "/search", key=key, json={"query": "the safe is opened with"}, headers=headers)
        probe.rest("GET", "/thoughts", key=key, headers=headers)
        probe.rest("GET", "/context", key=key, headers=headers)
        probe.rest("GET", f"/thought/{ID}", key=key, headers=headers)
        if name in ("work", "default", None):
            continue
        assert probe.rest("POST", "/capture", key=key, json={"content": "x"}, headers=headers).status_code == 404


async def watched(mcp, uri):
    """What the server says to a client that would watch a note."""
    async with mcp.listen(resource_subscriptions=[uri]) as stream:
        return stream.honored


def every_tool(probe, key, ways):
    """Each tool over each of these endpoints, and what else a protocol can ask for."""

    async def through(way, mode, path):
        named = {"X_Memory_Workspace": "work"} if way == "sse" else {}  # a connection there must have one
        async with client(probe.rim, key=key, way=way, mode=mode, path=path, **named) as mcp:

            async def ask(name, work):
                try:
                    answer = (await work).model_dump_json(by_alias=True)
                except Exception as error:
                    answer = str(error)
                probe.hear(f"{key} {way} {mode} {path} {name}", answer)
                return answer

            await ask("list", mcp.list_tools())
            await ask("resources", mcp.list_resources())
            await ask("templates", mcp.list_resource_templates())
            await ask("prompts", mcp.list_prompts())
            made = []
            for sent in probe.some(CAPTURES):
                answer = json.loads(await ask(f"capture {sent}", mcp.call_tool("capture_thought", sent)))
                made += [answer["structuredContent"]["id"]] if answer.get("structuredContent") else []
            for uri in probe.some(
                (
                    "file:///etc/passwd",
                    *(f"context://{name}" for name in ("work", "default", "Reports", "..", "work/../default", "")),
                    *(f"note://{root}/{path}" for root in ("work", "default", "work/..", ".", "") for path in OUTSIDE),
                    *(f"note://work/{TITLE}{number}.md" for number in ("", " 2", " 3")),
                )
            ):
                await ask(uri, mcp.read_resource(uri))
                if mode != "legacy":
                    await ask(f"watch {uri}", watched(mcp, uri))
            for reference, argument in (
                (NOTE, "workspace"),
                (NOTE, "path"),
                *((PromptReference(type="ref/prompt", name=name), "tags") for name in PROMPTS),
            ):
                for typed in ("", "s", "Diary", TITLE, f"{TITLE} 2", "../"):
                    await ask(
                        f"complete {argument} {typed}", mcp.complete(reference, {"name": argument, "value": typed})
                    )
            for name, given in PROMPTS.items():
                for space in probe.some(("Reports", "..", "", "work", "default")):
                    await ask(f"{name} {space}", mcp.get_prompt(name, given | {"workspace": space}))
            await ask("resources again", mcp.list_resources())
            for sent in probe.some(SEARCHES):
                await ask(f"search {sent}", mcp.call_tool("semantic_search", sent))
            for sent in LISTS:
                await ask(f"list {sent}", mcp.call_tool("list_recent", sent))
            for id in (*probe.some(ids()), *made):
                await ask(f"get {id}", mcp.call_tool("get_thought", {"id": id}))
                await ask(f"delete {id}", mcp.call_tool("delete_thought", {"id": id}))
            for sent in PASSAGES[:4]:
                await ask(f"kb_search {sent}", mcp.call_tool("kb_search", sent))
            for id in probe.some(ids()[::FEWER]):
                await ask(f"kb_get {id}", mcp.call_tool("kb_get", {"id": id}))
                await ask(f"kb_update_note {id}", mcp.call_tool("kb_update_note", {"id": id, "text": "mine"}))
            for place in PLACES:
                await ask(f"kb_get {place}", mcp.call_tool("kb_get", {"source_path": place}))
            await ask("kb_status", mcp.call_tool("kb_status", {}))
            for tool in ("memory.search", "vault_search", "semantic-search"):
                await ask(tool, mcp.call_tool(tool, {"query": "safe"}))

    for way, mode, path in ways:
        run(through(way, mode, path))


def outside(rim):
    """Every file and folder but the workspaces' own notes, and the contexts that Memex makes of them."""
    inside = re.compile(r"Captures/(work|default|secret|Context)/[^.]")
    folders = {str(one.relative_to(rim.world.vault)) for one in rim.world.vault.rglob("*") if one.is_dir()}
    folders -= {"Captures/work/Files", "Captures/default/Files", "Captures/Context"}
    return {path: raw for path, raw in rim.files().items() if not inside.match(path)}, folders


def set_aside(world, *, secrets):
    """A capture that its owner has archived; without the secrets it never was."""
    if secrets:
        front = f"id: gone\ncreated_at: {NOW}\nreview: dismissed\ntitle: {word('dismissedtitle')}"
        world.write("Captures/work/Gone.md", f"---\n{front}\n---\nThe safe is opened with {word('dismissed')}.\n")


def tended(world):
    """What the daemon does for its owner now and then, now."""
    services = world.app.services
    world.app.opened.sync.run()
    services.archive.run()
    services.review.run()
    services.consolidation.run(threading.Event())
    services.write_contexts()
    world.app.opened.sync.run()


def probed(folder: Path, key: str, *, secrets: bool, ways=WAYS, every: int = 1):
    """All that a key of this reach can learn of a vault, and whether anything beyond its workspaces changed."""

    def fill(world):
        for path, text in {**OUTSIDE, **KEPT}.items() if secrets else ():
            world.write(path, text)
        own = "".join(f"{key}: {json.dumps(value)}\n" for key, value in OWNERS.items()) if secrets else ""
        world.write(
            "Captures/work/Kept.md", f"---\nid: {ID[::-1]}\ncreated_at: {NOW}\n{own}---\nA capture about a safe.\n"
        )
        world.write(
            "Captures/work/Waits.md", f"---\nid: waits\ncreated_at: {NOW}\n---\nAnother capture, Kept about a safe.\n"
        )
        set_aside(world, secrets=secrets)
        for name in ("Diary", "Captures/Reports"):
            (world.vault / name).mkdir(parents=True, exist_ok=True)
        (world.vault / "Captures/work/Link.md").symlink_to(f"../../Diary/{TITLE}.md")
        (world.vault / "Captures/work/Linked").symlink_to("../../Diary")

    with running(folder, fill=fill, review=ReviewSettings()) as rim:
        probe = Probe(rim, every)
        if secrets:
            told = rim.world.found("the safe is opened with", scope="all", limit=50)
            assert len([path for path in told if path in OUTSIDE]) >= 4  # the owner does find them
        tended(rim.world)
        if secrets:
            said = (rim.world.vault / "Captures/work/Waits.md").read_text()
            assert all(word(kind) in said for kind in ("folder", "kintag", "kinname"))  # there is something to be told
            assert (rim.world.vault / "Captures/Archive/work/Gone.md").is_file()
        before = outside(rim)
        every_method(probe, key)
        every_route(probe, key)
        every_workspace(probe, key)
        every_tool(probe, key, ways)
        assert outside(rim) == before
    return probe


def test_a_share_of_the_ids_has_some_of_each_kind():
    """A note has four: its own id, the one of a capture, and two paths. Every second or fourth id would miss its own."""
    for step in (SHARE, FEW, FEWER):
        asked = set(ids()[::step])
        assert ID in asked
        for kind in range(4):
            assert asked & set(ids()[9 + kind :: 4]), (step, kind)


@pytest.mark.timeout(900)  # some thousand calls, twice
@pytest.mark.parametrize(
    ("ways", "every"),
    [pytest.param(WAYS[:1], SHARE, id="one way"), pytest.param(WAYS, 1, id="all ways", marks=pytest.mark.slow)],
)
def test_law_1_captures_only(tmp_path, ways, every):
    """No route and no tool returns a byte of a note outside the inbox, or lets such a note make a difference."""
    full = probed(tmp_path / "full", "work", secrets=True, ways=ways, every=every)
    assert full.leaks() == []
    bare = probed(tmp_path / "bare", "work", secrets=False, ways=ways, every=every)
    for (asked, answer), (_, other) in zip(full.told(), bare.told(), strict=True):
        assert [(asked, *parts) for parts in zip(answer, other, strict=True) if parts[0] != parts[1]] == []


SPELLINGS = (str, str.upper, str.title, lambda key: f" {key} ", lambda key: key.replace("o", "\uff4f"))


@pytest.mark.slow
def test_no_agent_sets_a_key_that_is_its_owner_s(tmp_path):
    """By no field, in no spelling, and by no text: neither of a note nor of a file."""
    with running(tmp_path) as rim:
        asked = 0
        for key in sorted(PERSONS):
            front = f"---\n{key}: true\n---\n"
            for spelt in dict.fromkeys(spell(key) for spell in SPELLINGS):
                answer = rim.rest(
                    "POST", "/capture", key="work", json={"content": f"{spelt} x", "metadata": {spelt: True}}
                )
                assert answer.status_code == 400, spelt
                asked += 1
            made = rim.rest("POST", "/capture", key="work", json={"content": f"{front}A text about {key}."}).json()[
                "id"
            ]
            sent = {"text": f"{front}Another text about {key}."}
            assert rim.rest("PATCH", f"/api/v1/notes/{made}", key="work", json=sent).status_code == 200
            _ended(
                rim,
                rim.rest("POST", "/api/v1/jobs", key="work", json={"text": f"{front}A third.", "title": key}).json()[
                    "job_id"
                ],
            )
            file = {"file": (f"{key}.md", f"{front}A file about {key}.".encode())}
            _ended(rim, rim.rest("POST", "/api/v1/jobs", key="work", files=file).json()["job_id"])

        async def saved():
            async with client(rim, key="work") as mcp:
                for key in sorted(PERSONS):
                    answer = await mcp.call_tool(
                        "memory_save", {"content": f"A memo, {key}.", "metadata": {key.upper(): True}}
                    )
                    assert answer.is_error and "can't be set" in str(answer.content[0].text), (key, answer)

        run(saved())
        rim.world.app.opened.sync.run()
        notes = [path for path in rim.files() if path.startswith("Captures/") and path.endswith(".md")]
        assert len(notes) >= 3 * len(PERSONS)
        for path in notes:
            said = read_owner_keys(split((rim.world.vault / path).read_text())[0])
            assert said in ({}, {"promote": [False]}), path
        services = rim.world.app.services
        services.marked_captures.run()
        services.archive.run()
        assert all(path in rim.files() for path in notes)


@pytest.mark.slow
def test_law_1_captures_only_whatever_workspaces_a_key_sees(tmp_path):
    assert probed(tmp_path, "full", secrets=True).leaks() == []
