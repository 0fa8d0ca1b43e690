"""The daemon as a process on the real model, driven from outside only, as a person, Git and an agent do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time

import pytest

from syncd.state.process_lock import ProcessLock
from tests.support.daemon_process import Failed, Memex, daemon, tree
from tests.support.topic_notes import notes
from tests.support.world import until

STATUS = ["ready", "pending", "generation", "captures", "vault", "defects", "degraded"]
INDEX = ["added", "modified", "moved", "removed", "unchanged", "failed", "chunks", "embedded", "reused", "seconds"]
HIT = [
    *("id", "path", "title", "heading", "chunk", "score", "weak", "scope", "workspace"),
    *("stale", "superseded_by", "successor", "url"),
]


@pytest.fixture(scope="module")
def memex(tmp_path_factory, bundled, models):
    """A daemon that all tests of this file share; each keeps to notes of its own."""
    with daemon(tmp_path_factory.mktemp("daemon"), models) as one:
        notes(one, 30)
        one.write("Bad.md", "---\na: [\n---\nbad properties\n")
        one.commit("Begin")
        one.serve()
        yield one


def test_it_serves_with_nothing_but_a_vault_and_a_state_folder(memex):
    state = memex.readyz()
    assert (state["ready"], state["pending"], state["degraded"]) == (True, 0, [])
    assert state["vault"]["documents"] == 31
    assert memex.found("zq7x") == ["Notes/0/Note 7.md"]
    assert not list(memex.home.rglob("*"))
    assert memex.git("status", "--porcelain") == ""


def test_an_edit_a_rename_and_a_deletion_are_seen(memex):
    memex.write("Seen/Edited.md", "plovers nest on shingle\n")
    memex.until(lambda: memex.found("plovers shingle", mode="text") == ["Seen/Edited.md"])
    memex.write("Seen/Edited.md", "dotterels breed on fells\n")
    memex.until(lambda: memex.found("dotterels fells", mode="text") == ["Seen/Edited.md"])
    memex.settled()
    assert memex.found("plovers shingle", mode="text") == []
    (memex.vault / "Seen/Edited.md").rename(memex.vault / "Seen/Renamed.md")
    memex.until(lambda: memex.found("dotterels fells", mode="text") == ["Seen/Renamed.md"])
    (memex.vault / "Seen/Renamed.md").unlink()
    memex.until(lambda: memex.found("dotterels fells", mode="text") == [])
    memex.settled()


def test_a_save_by_replacing_the_file_is_an_edit(memex):
    memex.write("Saved.md", "first draft about turnstones\n")
    memex.until(lambda: memex.found("turnstones", mode="text") == ["Saved.md"])
    fresh = memex.write(".Saved.tmp", "second draft about sanderlings\n")
    fresh.replace(memex.vault / "Saved.md")
    memex.until(lambda: memex.found("sanderlings", mode="text") == ["Saved.md"])
    memex.settled()
    assert memex.found("turnstones", mode="text") == []


@pytest.mark.slow
def test_a_folder_is_moved_in_and_out(memex):
    outside = memex.folder / "Outside"
    for number in range(5):
        (outside / "deep").mkdir(parents=True, exist_ok=True)
        (outside / f"deep/Guest {number}.md").write_text(f"guests bring kohlrabi {number}\n")
    outside.rename(memex.vault / "Guests")
    memex.until(lambda: len(memex.found("kohlrabi", mode="text")) == 5)
    (memex.vault / "Guests").rename(memex.vault / "Lodgers")
    memex.until(lambda: {path.split("/")[0] for path in memex.found("kohlrabi", mode="text")} == {"Lodgers"})
    (memex.vault / "Lodgers").rename(outside)
    memex.until(lambda: memex.found("kohlrabi", mode="text") == [])
    memex.settled()


@pytest.mark.slow
def test_a_checkout_of_an_older_commit_and_back(memex):
    for number in range(3):
        memex.write(f"Git/Page {number}.md", f"the old page {number} speaks of basalt\n")
    old = memex.commit("Old pages")
    memex.write("Git/Page 0.md", "the new page 0 speaks of obsidian rock\n")
    (memex.vault / "Git/Page 1.md").rename(memex.vault / "Git/Page one.md")
    (memex.vault / "Git/Page 2.md").unlink()
    memex.commit("New pages")
    now = ["Git/Page one.md"]
    memex.until(lambda: memex.found("basalt", mode="text") == now)
    memex.git("checkout", "-q", old)
    memex.until(lambda: sorted(memex.found("basalt", mode="text")) == [f"Git/Page {n}.md" for n in range(3)])
    memex.git("checkout", "-q", "main")
    memex.until(lambda: memex.found("basalt", mode="text") == now)
    assert memex.found("obsidian rock", mode="text")[0] == "Git/Page 0.md"
    memex.settled()
    assert memex.git("status", "--porcelain") == ""


def test_a_capture_is_a_note_and_found_at_once(memex):
    content = "\ufeff 会議の決定:\r\nバックアップは毎晩 🌙\x00\u2028\n\n"
    made = memex.rest("POST", "/capture", json={"content": content}).json()
    answer = memex.rest("POST", "/search", json={"query": "バックアップ"}).json()
    assert [hit["document_id"] for hit in answer["results"]] == [made["id"]]
    assert memex.rest("GET", f"/thought/{made['id']}").json()["content"] == content
    assert memex.json("get", made["id"])["content"] == content
    assert memex.rest("DELETE", f"/thought/{made['id']}").status_code == 200
    assert memex.found("バックアップ", scope="captures", mode="text") == []


def test_a_note_dropped_into_the_inbox_gets_its_id_and_no_other_change(memex):
    file = memex.write("Captures/default/Dropped.md", "---\r\ntags: [a]   # mine\r\n---\r\nby hand\r\n")
    memex.until(lambda: b"id: " in file.read_bytes())
    memex.settled()
    lines = file.read_bytes().split(b"\r\n")
    added = [line for line in lines if line.startswith((b"id: ", b"created_at: "))]
    assert len(added) == 2
    assert b"\r\n".join(line for line in lines if line not in added) == (
        b"---\r\ntags: [a]   # mine\r\n---\r\nby hand\r\n"
    )
    assert memex.found("by hand", scope="captures") == ["Captures/default/Dropped.md"]


def test_the_shapes_for_scripts_hold_to_the_letter(memex):
    init = memex.json("init", str(memex.vault), "--config", str(memex.folder / "config.toml"))
    assert list(init) == ["vault", "state", "config", "key_file"]
    key = memex.json("key", "create", "--name", "claude", "--workspace", "default", "--scopes", "read,write")
    assert list(key) == ["name", "key"]
    status = memex.json("status")
    for state in (status, memex.readyz()):
        assert list(state) == STATUS
        assert list(state["captures"]) == list(state["vault"]) == ["documents", "chunks"]
    assert [list(one) for one in status["defects"]] == [["path", "defect"]]
    assert status["defects"][0]["path"] == "Bad.md"
    assert list(memex.json("index")) == INDEX
    hits = memex.json("search", "the heron and its keeper")
    assert len(hits) == 10
    assert all(list(hit) == HIT for hit in hits)


def test_a_second_daemon_is_refused_with_a_way_out(memex):
    assert memex.process is not None
    with memex.start("serve", "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as second:
        out, err = second.communicate(timeout=60)
    assert second.returncode == 69
    assert out == b""
    opening, refused = err.decode().splitlines()
    assert opening == f"memex: opening {memex.vault}"
    assert f"process {memex.process.pid}" in refused
    assert "stop it first" in refused


@pytest.mark.slow
def test_a_daemon_with_another_state_folder_is_refused_unless_it_is_forced(memex, tmp_path):
    (tmp_path / "link").symlink_to(memex.vault)
    other = Memex(tmp_path, vault=tmp_path / "link")
    with other.start("serve", "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as second:
        out, err = second.communicate(timeout=60)
    assert (second.returncode, out) == (69, b"")
    assert f"process {memex.process.pid} serves the vault {tmp_path / 'link'} with another state folder" in err.decode()
    assert "--force" in err.decode()


@pytest.mark.slow
def test_a_daemon_waits_for_a_command_that_works_without_one(memex):
    assert memex.stop()[0] == 0
    with ProcessLock.acquire(memex.state):  # as `memex index` holds it, for a moment
        process = memex.start("serve", "--port", "0", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert b"opening" in process.stderr.readline()
        time.sleep(0.7)  # it tries five times a second
        assert process.poll() is None
    try:
        until(lambda: memex.json("status")["ready"] and (memex.state / "control.sock").exists(), 60)
        assert process.poll() is None
    finally:
        process.terminate()
        assert process.wait(60) == 0
        memex.serve()


ASKED = [
    ("search", "capybaras and the gateway keeper", "--limit", "5"),
    ("search", "capybaras", "--scope", "captures", "--tag", "animal", "--mode", "text"),
    ("get", "ID"),
    ("recent",),
    ("status",),
]


@pytest.mark.slow  # each starts without the daemon, too
def test_commands_answer_alike_with_the_daemon_and_without(memex):
    id = memex.json("capture", "a thought about capybaras", "--tag", "animal/water", "--source", "cli")["id"]
    asked = [tuple(id if word == "ID" else word for word in words) for words in ASKED]
    memex.settled()
    with_daemon = [memex.json(*words) for words in asked]
    assert memex.stop()[0] == 0
    try:
        alone = [memex.json(*words) for words in asked]
        # Vectors have half precision, in the table and in memory alike, so the third digit may differ.
        for words, one, other in zip(asked, alone, with_daemon, strict=True):
            if words[0] == "search":
                assert [hit.pop("score") for hit in one] == pytest.approx([hit.pop("score") for hit in other], abs=5e-3)
        assert alone == with_daemon
        with pytest.raises(Failed) as failed:
            memex.json("get", "no-such-note")
        assert failed.value.code == 4
        assert json.loads(failed.value.err)["error"]["code"] == "NOT_FOUND"
    finally:
        memex.serve()
    with pytest.raises(Failed) as again:
        memex.json("get", "no-such-note")
    assert again.value.err == failed.value.err


@pytest.mark.slow
def test_a_stop_lets_a_capture_in_flight_finish(memex):
    def capture(number):
        content = f"in flight {number} " + "waders wade " * 150
        try:
            answer = memex.rest("POST", "/capture", json={"content": content})
        except OSError:
            return
        except Exception as error:
            assert type(error).__name__ in {"ConnectError", "ReadError", "RemoteProtocolError"}, error
            return
        if answer.status_code < 300:
            acknowledged[answer.json()["id"]] = content

    acknowledged = {}
    threads = [threading.Thread(target=capture, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: acknowledged)
    code, seconds = memex.stop()
    for thread in threads:
        thread.join()
    assert (code, seconds < 8) == (0, True)
    assert acknowledged
    assert "SIGTERM, stopping" in memex.said
    assert "Traceback" not in memex.said
    assert not (memex.state / "daemon.json").exists()
    memex.serve()
    for id, content in acknowledged.items():
        assert memex.rest("GET", f"/thought/{id}").json()["content"] == content


@pytest.mark.slow
def test_a_stop_that_is_told_twice_at_once_is_one_stop(memex):
    memex.process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    assert memex.stop()[0] == 0
    assert "Traceback" not in memex.said
    memex.serve()


@pytest.mark.slow
def test_all_that_it_writes_is_in_the_vault_and_the_state_folder(memex, tmp_path):
    """Last of the shared daemon: after all that the tests before made it do."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = tree(memex.home), tree(temporary)
    assert before == ({}, {})
    memex.stop()
    os.environ["TMPDIR"], was = str(temporary), os.environ.get("TMPDIR")
    try:
        memex.serve()
        memex.capture("a thought for the tree")
        memex.json("search", "thought")
        memex.json("index", "--full")
        memex.stop()
        memex.json("status")
    finally:
        os.environ.pop("TMPDIR")
        if was is not None:
            os.environ["TMPDIR"] = was
    assert (tree(memex.home), tree(temporary)) == before
    own = {path.relative_to(memex.vault).parts[0] for path in memex.vault.rglob("*")}
    assert own <= {"Notes", "Seen", "Git", "Captures", "Bad.md", "Saved.md", ".git"}
    assert memex.git("status", "--porcelain", "--", "Notes", "Seen", "Git", "Bad.md") == ""


def killed_in_bulk(memex: Memex, count: int, *, kills: int) -> None:
    """Index `count` notes with captures arriving, killed again and again; nothing acknowledged may be missing."""
    acknowledged: dict[str, str] = {}
    wild = [
        "plain words about avocets",
        "日本語のメモ🦩",
        "a\r\nb\x00c\u2028d\n",
        "---\nid: forged\n---\nbody",
        "  \n# T\n",
    ]
    notes(memex, count, words=300)
    memex.serve(wait=False)
    for round_ in range(kills):
        memex.until(lambda: memex.readyz()["pending"] > 0)
        dying = threading.Event()

        def work(number: int, dying: threading.Event = dying, round_: int = round_) -> None:
            for turn in range(1000):
                content = f"{wild[turn % len(wild)]} {round_} {number} {turn}"
                try:
                    acknowledged[memex.capture(content)] = content
                except Exception:
                    if dying.is_set():
                        return
                    raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        least = len(acknowledged) + 6
        memex.until(lambda least=least: len(acknowledged) >= least, 60)
        dying.set()
        memex.stop(signal.SIGKILL)
        for thread in threads:
            thread.join()
        if round_ < kills - 1:
            memex.serve(wait=False)
    memex.serve()
    state = memex.readyz()
    assert state["vault"]["documents"] == count
    # A note may have been written and not acknowledged, so there may be more.
    assert len(acknowledged) <= state["captures"]["documents"] <= len(acknowledged) + 2 * kills
    for id, content in acknowledged.items():
        assert memex.rest("GET", f"/thought/{id}").json()["content"] == content
    for number in range(0, count, max(1, count // 20)):
        assert memex.found(f"zq{number}x", mode="text") == [f"Notes/{number % 7}/Note {number}.md"]
    again = memex.json("index")
    assert (again["added"], again["modified"], again["removed"], again["failed"]) == (0, 0, 0, 0)


@pytest.mark.slow
def test_killed_in_the_middle_of_a_bulk_index_it_converges(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex:
        killed_in_bulk(memex, 100, kills=1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_killed_again_and_again_it_converges(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex:
        killed_in_bulk(memex, 600, kills=6)
        state = memex.readyz()
        assert memex.json("index", "--full")["added"] == 600 + state["captures"]["documents"]
        after = memex.readyz()
        assert (after["vault"], after["captures"]) == (state["vault"], state["captures"])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_checkout_of_a_thousand_files_and_back(tmp_path, bundled, models):
    with daemon(tmp_path, models) as memex:
        notes(memex, 1000)
        old = memex.commit("Old")
        for number in range(1000):
            memex.write(f"Notes/{number % 7}/Note {number}.md", f"# Note {number}\n\nrevised yz{number}w text\n")
        memex.commit("Revised")
        memex.serve()
        for commit, word, other in ((old, "zq{}x", "yz{}w"), ("main", "yz{}w", "zq{}x")):
            memex.git("checkout", "-q", commit)
            memex.until(lambda word=word: memex.found(word.format(999), mode="text"), 240)
            memex.settled(240)
            for number in (0, 333, 998):
                expected = [f"Notes/{number % 7}/Note {number}.md"]
                assert memex.found(word.format(number), mode="text") == expected
                assert memex.found(other.format(number), mode="text") == []
        memex.git("rm", "-q", "-r", "Notes/1", "Notes/2", "Notes/3", "Notes/4", "Notes/5")
        memex.git("commit", "-q", "-m", "Most are gone")
        memex.until(lambda: memex.readyz()["vault"]["documents"] < 400, 240)
        memex.git("checkout", "-q", "main~1")
        memex.until(lambda: memex.readyz()["vault"]["documents"] == 1000, 240)
        memex.settled(240)
        assert memex.git("status", "--porcelain", "--", "Notes") == ""  # the table of reviews comes when its job does
        assert memex.readyz()["degraded"] == []
