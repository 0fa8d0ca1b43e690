"""Update notifications of notes, to both eras over real transports: who is told of what, and what is left when they go."""

import asyncio
import contextlib
import gc
import os
import time

import httpx2
import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types import ResourceUpdatedNotification

from index.errors import Unavailable
from index.timings import now_ms
from mcp_server import server
from mcp_server.guard.guard import WATCH_SECONDS
from mcp_server.protocol import subscriptions
from mcp_server.protocol.resources import context_uri, note_uri
from mcp_server.protocol.subscriptions import Updates
from syncd.context import contexts
from syncd.settings.automation import ContextSettings
from tests.support.live_server import client, run, running
from tests.support.until import until

MODES = ("legacy", "2026-07-28")
WAYS = [(way, mode) for way in ("http", "sse", "stdio") for mode in MODES]
pytestmark = pytest.mark.filterwarnings("ignore:resources/:mcp.shared.exceptions.MCPDeprecationWarning")


class Known(Updates):
    """The one of the running server."""

    last: "Known"

    def __init__(self, runner):
        super().__init__(runner)
        Known.last = self


@contextlib.contextmanager
def served(folder, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Updates", Known)
        with running(folder, **options) as rim:
            rim.updates = Known.last
            yield rim


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with served(tmp_path_factory.mktemp("rim") / "state") as one:
        yield one


@pytest.fixture
def space(rim):
    yield rim.space()
    settled(rim)


def settled(rim):
    """Nobody listens any more, and nothing is left of those who did."""
    deadline = time.monotonic() + 20
    while rim.updates._watched or rim.updates._held or rim.updates._sessions:
        assert time.monotonic() < deadline, vars(rim.updates)
        time.sleep(0.02)
    gc.collect()


@contextlib.asynccontextmanager
async def listening(rim, key, uris, *, mode, way="http", **headers):
    """A client that watches; what it yields waits for the next URI that it is told of."""
    told = asyncio.Queue()

    async def heard(message):
        if isinstance(message, ResourceUpdatedNotification):
            told.put_nowait(message.params.uri)

    async def pump(stream):
        async for event in stream:
            told.put_nowait(event.uri)

    async with client(rim, key=key, mode=mode, way=way, heard=heard if mode == "legacy" else None, **headers) as mcp:
        if mode == "legacy":
            for one in uris:
                await mcp.subscribe_resource(one)
            yield mcp, told.get
        else:
            async with mcp.listen(resource_subscriptions=uris) as stream:
                task = asyncio.create_task(pump(stream))
                yield mcp, told.get
                task.cancel()


async def hears(change, next_one):
    """What is told after `change`; made again as long as nothing is, as an older client's stream may open late."""
    for _ in range(20):
        await asyncio.to_thread(change)
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(next_one(), 1.0)
    raise AssertionError("nothing was told")


async def drain(next_one):
    """Take what has been told, until nothing comes for a second."""
    with contextlib.suppress(TimeoutError):
        while await asyncio.wait_for(next_one(), 1.0):
            pass


@pytest.mark.parametrize(("way", "mode"), WAYS)
def test_a_change_by_anybody_is_told_on_every_way(rim, space, way, mode):
    note = space.capture("# Heron\n\nstands")["id"]
    mine = space.file_of(note)
    named = note_uri(space.name, "Heron.md")
    numbers = iter(range(1_000))

    def editor():
        mine.write_text(mine.read_text() + f"line {next(numbers)}\n")

    def agent():
        space.capture(rim.agent_access.workspace(space.name).get(note).content)

    def owner():
        rim.world.app.operations["delete"]({"id": note, "workspace": space.name}, lambda _: None)

    async def work():
        async with listening(rim, space.name, [named], mode=mode, way=way) as (mcp, next_one):
            assert await hears(editor, next_one) == named
            assert "line" in (await mcp.read_resource(named)).contents[0].text
            assert await hears(agent, next_one) == named
            assert await hears(owner, next_one) == named
            with pytest.raises(MCPError):
                await mcp.read_resource(named)

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_each_is_told_of_its_own_notes_by_its_own_spelling(rim, space, mode):
    other = rim.space()
    files = [each.file_of(each.capture(f"# Wren\n\nof {each.name}")["id"]) for each in (space, other)]
    named = [note_uri(space.name, "Wren.md"), f"note://{other.name}/Wren.md"]
    numbers = iter(range(1_000))

    def edit(file):
        file.write_text(file.read_text() + f"line {next(numbers)}\n")

    async def work():
        async with (
            listening(rim, space.name, named[:1], mode=mode) as (_, first),
            listening(rim, other.name, named[1:], mode=mode) as (_, second),
        ):
            assert await hears(lambda: edit(files[1]), second) == named[1]
            assert await hears(lambda: edit(files[0]), first) == named[0]
            assert await hears(lambda: edit(files[1]), second) == named[1]

    run(work())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_each_change_in_a_workspace_is_an_update_of_its_context(rim, space, mode):
    other = rim.space()
    named = [context_uri(space.name), context_uri(other.name)]
    for each in (space, other):
        each.capture(f"# Heron\n\nThe heron of {each.name} stands at the weir.")
    numbers = iter(range(1_000))

    def capture(where):
        where.capture(f"# Weir {next(numbers)}\n\nThe weir was opened.")

    async def work():
        async with (
            listening(rim, space.name, named[:1], mode=mode) as (mcp, first),
            listening(rim, other.name, named[1:], mode=mode) as (_, second),
        ):
            assert await hears(lambda: capture(space), first) == named[0]
            assert str((await mcp.read_resource(named[0])).contents[0].uri) == named[0]
            await drain(first)
            assert await hears(lambda: capture(other), second) == named[1]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(first(), 1.0)

    run(work())


@pytest.mark.slow
def test_what_the_owner_decides_in_the_note_of_a_context_is_an_update_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(contexts, "QUIET_S", 0.0)
    with served(tmp_path / "state", context=ContextSettings()) as rim:
        decides_in_a_context(rim, rim.space())


def decides_in_a_context(rim, space):
    named = context_uri(space.name)
    for number in range(20):
        space.capture(f"# Heron {number}\n\nThe heron {number} stands at weir {number}.")
    note = rim.world.vault / f"Captures/Context/{space.name}.md"
    until(lambda: rim.world.app.services.write_contexts() or note.exists())

    def leave_out_one():
        kept = note.read_text().splitlines()
        kept.remove(next(line for line in kept if "The heron" in line))
        note.write_text("\n".join(kept))
        past = time.time() - 3_600
        os.utime(note, (past, past))
        rim.world.app.services.write_contexts()

    async def work():
        async with listening(rim, space.name, [named], mode=MODES[1]) as (_, next_one):
            await drain(next_one)
            assert await hears(leave_out_one, next_one) == named

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_key_of_one_namespace_is_offered_the_context_last_and_can_not_watch_it(rim, space, mode):
    _, rim.secrets["bound"] = rim.agent_access.keys.create(
        f"bound {space.name}", workspaces=(space.name,), namespace="alpha", now=now_ms()
    )
    space.capture("# Heron\n\nstands", namespace="alpha")

    async def work():
        async with client(rim, key="bound", mode=mode) as mcp:
            assert str((await mcp.list_resources()).resources[0].uri) == note_uri(space.name, "alpha/Heron.md")
            with pytest.raises(MCPError) as caught:
                if mode == "legacy":
                    await mcp.subscribe_resource(context_uri(space.name))
                else:
                    async with mcp.listen(resource_subscriptions=[context_uri(space.name)]):
                        pass
            assert caught.value.error.data["code"] == "PERMISSION_DENIED"

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_what_can_not_be_read_can_not_be_watched(rim, space, mode):
    space.capture("# Mine\n\nmine")
    rim.agent_access.workspace("secret").capture("# Hidden\n\nhidden")
    forbidden = [
        note_uri("secret", "Hidden.md"),
        note_uri("secret", "Nope.md"),
        note_uri(space.name, "Nope.md"),
        context_uri("secret"),
        context_uri("nope"),
        "file:///etc/passwd",
        "",
    ]

    async def refused(key, uris, **headers):
        async with client(rim, key=key, mode=mode, **headers) as mcp:
            with pytest.raises(MCPError) as caught:
                if mode == "legacy":
                    for one in uris:
                        await mcp.subscribe_resource(one)
                else:
                    async with mcp.listen(resource_subscriptions=uris):
                        pass
        return caught.value.error.code, caught.value.error.data["code"], caught.value.error.message

    told = {run(refused(space.name, [one])) for one in forbidden}
    told |= {run(refused(space.name, [note_uri(space.name, "Mine.md"), forbidden[0]]))}
    told |= {run(refused("full", [forbidden[0]], X_Memory_Workspace="work"))}
    assert len(told) == 1
    assert told.pop()[:2] == (-32602, "NOT_FOUND")
    assert run(refused("writer", [note_uri("default", "x.md")]))[:2] == (-32000, "PERMISSION_DENIED")


def test_a_key_holds_so_many_streams_and_each_so_many_notes(rim, space, monkeypatch):
    assert (subscriptions.STREAMS, subscriptions.WATCHED) == (32, 100)
    monkeypatch.setattr(subscriptions, "STREAMS", streams_at_most := 4)
    monkeypatch.setattr(subscriptions, "WATCHED", watched := 10)
    for number in range(watched + 1):
        space.folder.joinpath(f"N{number}x.md").write_text(f"note {number}\n")
    rim.world.run()
    every = [note_uri(space.name, f"N{number}x.md") for number in range(watched + 1)]

    async def work():
        async with contextlib.AsyncExitStack() as stack:
            mcp = await stack.enter_async_context(client(rim, key=space.name, mode=MODES[1]))
            with pytest.raises(MCPError, match="10 notes"):
                await stack.enter_async_context(mcp.listen(resource_subscriptions=every))
            async with contextlib.AsyncExitStack() as streams:
                for _ in range(streams_at_most):
                    await streams.enter_async_context(mcp.listen(resource_subscriptions=every[:watched]))
                with pytest.raises(MCPError, match="already has"):
                    await stack.enter_async_context(mcp.listen(resource_subscriptions=every[:1]))
                old = await stack.enter_async_context(client(rim, key=space.name))
                with pytest.raises(MCPError, match="already has"):
                    await old.subscribe_resource(every[0])
            await asyncio.to_thread(settled, rim)
            for one in every[:watched]:
                await old.subscribe_resource(one)
            await old.subscribe_resource(every[0])
            with pytest.raises(MCPError, match="10 notes"):
                await old.subscribe_resource(every[watched])
            await old.unsubscribe_resource(every[0])
            await old.unsubscribe_resource("note://never/was")
            await old.subscribe_resource(every[watched])

    run(work())


def test_an_older_session_is_told_no_more_once_it_unsubscribed(rim, space):
    files = [space.file_of(space.capture(f"# {name}\n\nstands")["id"]) for name in ("One", "Two")]
    named = [note_uri(space.name, "One.md"), note_uri(space.name, "Two.md")]

    async def work():
        async with listening(rim, space.name, named, mode="legacy") as (mcp, next_one):
            assert await hears(lambda: files[0].write_text("once\n"), next_one) == named[0]
            await mcp.unsubscribe_resource(named[0])
            files[0].write_text("twice\n")
            assert await hears(lambda: files[1].write_text("other\n"), next_one) == named[1]

    run(work())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_revoked_key_is_told_nothing_more(tmp_path, mode):
    with served(tmp_path / "state") as rim:
        space = rim.space()
        file = space.file_of(space.capture("# Heron\n\nstands")["id"])
        named = note_uri(space.name, "Heron.md")
        numbers = iter(range(1_000))

        def edit():
            file.write_text(f"text {next(numbers)}\n")

        told = []

        async def work():
            async with listening(rim, space.name, [named], mode=mode) as (_, next_one):
                told.append(await hears(edit, next_one))
                rim.agent_access.keys.revoke(space.name, now=now_ms())
                await asyncio.sleep(2 * WATCH_SECONDS + 0.5)
                edit()
                await asyncio.to_thread(rim.world.run)
                with contextlib.suppress(TimeoutError):
                    told.append(await asyncio.wait_for(next_one(), 0.5))
                told.append("then nothing")

        with contextlib.suppress(
            BaseExceptionGroup, MCPError, SubscriptionLost
        ):  # how a client says that it was cut off
            run(work())
        assert told == [named, "then nothing"]
        if mode != "legacy":
            settled(rim)


def test_a_daemon_that_stops_ends_its_streams_in_good_order(tmp_path):
    with served(tmp_path / "state", grace_s=20.0) as rim:
        space = rim.space()
        space.capture("# Heron\n\nstands")

        async def work():
            async with (
                client(rim, key=space.name, mode=MODES[1]) as mcp,
                mcp.listen(resource_subscriptions=[note_uri(space.name, "Heron.md")]) as stream,
            ):
                began = time.monotonic()
                stop = asyncio.create_task(asyncio.to_thread(rim.stop))
                assert [event async for event in stream] == []
                await stop
                return time.monotonic() - began

        assert run(work()) < 15


def test_an_index_built_anew_may_have_changed_every_note(rim, space):
    space.capture("# Heron\n\nstands")
    named = note_uri(space.name, "Heron.md")

    async def work():
        async with listening(rim, space.name, [named], mode=MODES[1]) as (_, next_one):
            return await hears(lambda: rim.world.app.opened.sync.rebuild(fresh=True), next_one)

    assert run(work()) == named


@pytest.mark.parametrize("mode", MODES)
def test_what_is_for_the_owner_alone_is_told_to_nobody(rim, space, mode):
    """Suggestions follow from the vault proper: that one was written is as much a secret as what it says."""
    files = [space.file_of(space.capture(f"# {name}\n\nstands")["id"]) for name in ("Heron", "Ibis")]
    heron, ibis = (note_uri(space.name, f"{name}.md") for name in ("Heron", "Ibis"))

    def write(file, line):
        file.write_text(file.read_text().replace("\n---\n", f"\n{line}\n---\n", 1))
        rim.world.app.opened.sync.run([str(file.relative_to(rim.world.vault))])

    def decide():
        write(files[0], f"suggested_tags: [x{time.monotonic_ns()}]")
        write(files[1], f"key{time.monotonic_ns()}: x")
        files[0].write_text(files[0].read_text().replace("suggested_tags", "review", 1))

    async def work():
        async with listening(rim, space.name, [heron, ibis], mode=mode) as (_, told):
            return [await hears(decide, told)]

    assert run(work()) == [ibis]


@pytest.mark.slow
def test_who_does_not_read_holds_up_nobody(rim, space):
    """However much there is to tell, a client that does not read delays no writer and no other listener."""
    space.capture("# Heron\n\nstands")
    named = note_uri(space.name, "Heron.md")
    meta = {"protocolVersion": MODES[1], "clientCapabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}
    asked = {
        "jsonrpc": "2.0",
        "id": "deaf",
        "method": "subscriptions/listen",
        "params": {
            "notifications": {"resourceSubscriptions": [named]},
            "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()},
        },
    }
    sent = rim.headers(space.name, mcp_protocol_version=MODES[1], mcp_method="subscriptions/listen")
    sent["accept"] = "application/json, text/event-stream"

    async def work():
        async with (
            httpx2.AsyncClient(timeout=30) as http,
            http.stream("POST", f"{rim.url}/mcp", json=asked, headers=sent) as deaf,
            listening(rim, space.name, [named], mode="legacy") as (_, old),
            listening(rim, space.name, [named], mode=MODES[1]) as (_, new),
        ):
            assert deaf.status_code == 200
            assert await hears(lambda: rim.updates.note_changes(None), old) == named
            for _ in range(20_000):
                rim.updates.note_changes(None)
            await asyncio.to_thread(space.capture, "# Other\n\nwritten meanwhile")
            assert await asyncio.wait_for(new(), 20) == named
            assert await asyncio.wait_for(old(), 20) == named
            assert len(rim.updates._handler._streams) == 2  # a burst ends no stream: it is told as one change

    run(work())


@pytest.mark.parametrize("mode", MODES)
def test_a_write_succeeds_and_every_update_arrives_while_no_row_can_be_read(rim, space, monkeypatch, mode):
    """The listener runs inside the commit: its failure must neither refuse the write nor hide later updates."""
    heron, ibis = (space.capture(f"# {name}\n\nstands")["id"] for name in ("Heron", "Ibis"))
    named = [note_uri(space.name, f"{name}.md") for name in ("Heron", "Ibis")]
    numbers = iter(range(1_000))

    def fail(path):
        raise Unavailable("the catalog can't be used")

    def write(note):
        with monkeypatch.context() as patch:
            patch.setattr(rim.agent_access, "record_at", fail)
            space.tools.update_note(note, f"text {next(numbers)}")

    async def work():
        async with listening(rim, space.name, named, mode=mode) as (_, next_one):
            assert await hears(lambda: write(heron), next_one) == named[0]
            assert await hears(lambda: write(ibis), next_one) == named[1]

    run(work())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_notes_whose_rows_can_not_be_read_are_watched_and_then_forgotten(rim, space, monkeypatch, mode):
    files = [space.file_of(space.capture(f"# {name}\n\nstands")["id"]) for name in ("Heron", "Ibis")]
    named = [note_uri(space.name, f"{name}.md") for name in ("Heron", "Ibis")]
    numbers = iter(range(1_000))

    def fail(path):
        raise Unavailable("the catalog can't be used")

    def edit(file):
        file.write_text(f"text {next(numbers)}\n")

    async def work():
        with monkeypatch.context() as patch:
            patch.setattr(rim.agent_access, "record_at", fail)
            async with listening(rim, space.name, named, mode=mode) as (_, next_one):
                assert await hears(lambda: edit(files[0]), next_one) == named[0]
                await drain(next_one)
                assert await hears(lambda: edit(files[1]), next_one) == named[1]

    run(work())
    settled(rim)
