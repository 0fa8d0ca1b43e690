"""Two devices, each with a daemon, and a bare remote between them: agents capture, people edit, the network fails, daemons die.

What must hold in the end: no text that was acknowledged or saved is lost, no file holds a conflict marker, both devices
have equal files, and each index equals an index rebuilt from the files."""

from __future__ import annotations

import contextlib
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path

from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.timings import now_ms
from syncd.app import App
from syncd.daemon import background_jobs
from syncd.git import hooks
from syncd.installation.vault_setup import set_up_vault
from syncd.remote import branch_sync
from syncd.settings.access import LimitsSettings
from syncd.settings.automation import GitSettings
from syncd.settings.settings import ServerSettings, SyncSettings
from tests.support.fakes import fake_embedder
from tests.support.fast_daemon import Daemon
from tests.support.index_dump import dump_index
from tests.support.stop_signals import stop_on_signals
from tests.support.world import World, settings_of

PROGRAM = "tests.support.two_devices"
TOKEN = re.compile(r"\bzq[0-9]+x\b")
MARKER = re.compile(rb"^(<{7} |>{7} |={7}$|\|{7} )", re.MULTILINE)
COMMAND = re.compile(r"`([^`]+)`")
ID = re.compile(r"^id: (\S+)$", re.MULTILINE)
FOLDERS = ("Notes", "Sub", "Sub/Deeper")
ROUNDS = 60


def settings(vault, state):
    """Return settings with short waits for adoption, commits, and pulls after a push."""
    return settings_of(
        vault,
        state,
        server=ServerSettings(port=0),
        sync=SyncSettings(quiet_s=0.05, patience_s=0.2, adopt_s=0.3, listing_s=3600.0),
        limits=LimitsSettings(rate=0),
        git=GitSettings(quiet_s=0.2, every_s=0.0, pull_s=2.0, push=True, timeout_s=20.0),
    )


def hasten(put=setattr):
    """Shorten all waits of seconds and minutes to fractions of a second."""
    put(branch_sync, "BACKOFF_S", (0.5, 2.0))
    put(background_jobs, "TICK_S", 0.5)
    put(background_jobs, "MARKS_S", 0.5)
    put(background_jobs, "COMMITS_S", 0.5)
    put(background_jobs, "MINUTE_S", 1.0)


def serve(vault, state):
    """Run a daemon in its own process."""
    hasten()
    own = settings(vault, state)
    set_up_vault(own, now=now_ms())
    with App(own, embedder=fake_embedder()) as app:
        app.serve(lambda _: None, stop_on_signals())


class Apart(Daemon):
    """A daemon in a separate process, which tests can kill."""

    def __init__(self, folder):
        super().__init__(folder, program=PROGRAM)

    @property
    def alive(self):
        return self.process.poll() is None


class Here:
    """A daemon in this process without interfaces: it starts immediately, and no test kills it."""

    alive = True
    status, settled = Daemon.status, Daemon.settled

    def __init__(self, folder):
        own = settings(folder / "vault", folder / "state")
        self.world = World(folder, server=own.server, sync=own.sync, limits=own.limits, git=own.git)
        self.running = self.world.serving()
        self.running.__enter__()

    def ask(self, operation, **given):
        return self.world.app.operations[operation](given, lambda _: None)

    def stop(self):
        self.running.__exit__(None, None, None)
        self.world.close()

    kill = stop


class Device:
    """A clone, its daemon, and its user."""

    def __init__(self, folder, begin):
        self.folder, self.vault, self.state = folder, folder / "vault", folder / "state"
        self.begin, self.daemon = begin, None
        self.captures = {}  # id → path, of this device's agent

    def start(self):
        self.daemon = self.begin(self.folder)

    def stop(self, *, kill=False):
        daemon, self.daemon = self.daemon, None
        if daemon is not None and daemon.alive:
            daemon.kill() if kill else daemon.stop()

    @property
    def up(self):
        return self.daemon is not None and self.daemon.alive

    @property
    def said(self):
        """Return the log of the device's daemons."""
        log = self.folder / "log"
        return log.read_text() if log.exists() else ""

    def git(self, *words, check=True):
        """Run the person's Git command, and wait for another program's lock."""
        return self.shell(shlex.join(["git", "-C", str(self.vault), "-c", "core.quotepath=off", *words]), check=check)

    def shell(self, command, *, check=True):
        for _ in range(100):
            done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False)
            if ".lock': File exists" not in done.stderr and "cannot lock ref" not in done.stderr:
                break
            time.sleep(0.05)
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def notes(self, *, captures=False):
        return sorted(
            path
            for path in self.vault.rglob("*.md")
            if not any(part.startswith(".") for part in path.relative_to(self.vault).parts)
            and path.is_file()
            and (captures or "Captures" not in path.parts)
        )

    def inbox(self):
        """Return the captures in the inbox."""
        return [path for path in self.notes(captures=True) if path.parent == self.vault / "Captures/default"]

    def ids(self):
        """Return the ids of the captures that have one."""
        return [found[1] for path in self.inbox() if (found := ID.search(path.read_text()))]

    def files(self):
        return {
            str(path.relative_to(self.vault)): path.read_bytes()
            for path in sorted(self.vault.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }


class Story:
    """A random sequence of events, determined by a seed, with the expected final state."""

    def __init__(self, folder, seed, begin):
        self.dice = random.Random(seed)
        self.works = [*WORK, *(DYING if begin is Apart else ())]
        self.bare, self.away = folder / "remote.git", folder / "away.git"
        self.number = self.steps = 0
        self.wanted = {}  # a word → where it was written
        self.counts = {}
        first = folder / "A" / "vault"
        (first / "Captures/default").mkdir(parents=True)
        (first / "Captures/default/.keep").write_text("")
        (first / ".gitattributes").write_text("*.md text eol=lf\n")
        for n in range(12):
            (first / f"Note {n} ü.md").write_text(f"# Note {n}\n\n" + "".join(f"line {k}\n\n" for k in range(12)))
        self.devices = [Device(folder / name, begin) for name in "AB"]
        a, b = self.devices
        a.git("init", "-q", "-b", "main")
        a.git("add", "-A")
        a.git("commit", "-qm", "begin")
        a.shell(f"git clone -q --bare {a.vault} {self.bare}")
        a.git("remote", "add", "origin", str(self.bare))
        a.git("push", "-q", "-u", "origin", "main")
        b.folder.mkdir()
        b.shell(f"git clone -q {self.bare} {b.vault}")
        for device in self.devices:
            device.start()
            hooks.install(self.bare / "hooks", hooks.REMOTE_HOOKS, device.state)

    def word(self, where):
        self.number += 1
        word = f"zq{self.number}x"
        self.wanted[word] = f"{where}, step {self.steps}"
        return word

    def unwanted(self, text):
        """Stop expecting the words of a text that its writer removed or replaced."""
        for word in TOKEN.findall(text):
            self.wanted.pop(word, None)

    # What happens

    def step(self):
        device, self.steps = self.dice.choice(self.devices), self.steps + 1
        work = self.dice.choices(*zip(*self.works, strict=True))[0]
        self.count(work.__name__)
        sys.stderr.write(f"{self.steps}: {work.__name__} on {device.folder.name}\n")
        work(self, device)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def capture(self, device):
        if not device.up:
            return
        word = self.word(f"capture on {device.folder.name}")
        with self.lost(word, device):
            told = device.daemon.ask("capture", content=f"{word} was thought of\n\nand more of it")
            device.captures[told["id"]] = word

    def update(self, device):
        if not device.up or not device.captures:
            return
        id = self.dice.choice(sorted(device.captures))
        was, word = device.captures[id], self.word(f"update of {id} on {device.folder.name}")
        try:
            with self.lost(word, device):
                device.daemon.ask("updatenote", id=id, text=f"{word} is what it says now")
                self.wanted.pop(was, None)
                device.captures[id] = word
        except (Conflict, NotFound):  # a person has edited or deleted it
            self.wanted.pop(word, None)

    def forget(self, device):
        if not device.up or not device.captures:
            return
        id = self.dice.choice(sorted(device.captures))
        with contextlib.suppress(Conflict, NotFound, FileNotFoundError), self.lost("", device):
            record = device.daemon.ask("get", id=id)
            text = (device.vault / record["path"]).read_text()
            device.daemon.ask("delete", id=id)
            self.unwanted(text)
        del device.captures[id]

    @contextlib.contextmanager
    def lost(self, word, device):
        """Expect nothing of a call that a crashed daemon did not answer."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (Unavailable, OSError):
            assert not device.up
            self.wanted.pop(word, None)

    def edit(self, device):
        path = self.dice.choice(device.notes(captures=self.dice.random() < 0.2))
        lines = path.read_text().split("\n")
        word = self.word(f"edit of {path}")
        lines.insert(self.dice.randrange(len(lines) // 2, len(lines)), f"{word} by hand")
        path.write_text("\n".join(lines))

    def clash(self, _):
        """Let both persons edit the same place of a note, and commit the edits."""
        a, b = self.devices
        shared = {path.relative_to(a.vault) for path in a.notes()} & {path.relative_to(b.vault) for path in b.notes()}
        if shared:
            name = self.dice.choice(sorted(shared))
            for device in self.devices:
                path = device.vault / name
                path.write_text(f"{path.read_text()}\n{self.word(f'clash in {path}')} on {device.folder.name}\n")
                self.commit(device)

    def create(self, device):
        folder = self.dice.choice(["", "Sub/", "Sub/Deeper/", "Captures/default/"])
        path = device.vault / f"{folder}New {self.number} of {device.folder.name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{self.word(f'new {path}')} was made by hand\n")

    def rename(self, device):
        path = self.dice.choice(device.notes())
        target = path.with_name(f"{path.stem[:20]} moved {self.number}.md")
        self.number += 1
        path.rename(target)

    def delete(self, device):
        notes = device.notes()
        if len(notes) > 6:
            path = self.dice.choice(notes)
            self.unwanted(path.read_text())
            path.unlink()

    # What becomes of captures

    def promote(self, device):
        if device.up and (ids := device.ids()):
            with self.lost("", device):
                device.daemon.ask("promote", ids=[self.dice.choice(ids)], to=self.dice.choice(FOLDERS))

    def unpromote(self, device):
        if device.up:
            with self.lost("", device):
                if promoted := device.daemon.ask("promoted"):
                    device.daemon.ask("unpromote", ids=[self.dice.choice(promoted)["id"]])

    def mark(self, device):
        """Let a person mark a note for promotion or dismissal, possibly on both devices."""
        if inbox := device.inbox():
            path, said = self.dice.choice(inbox), self.dice.choice(["promote: true", "review: dismissed"])
            path.write_text(path.read_text().replace("---\n", f"---\n{said}\n", 1))

    def drag(self, device):
        if inbox := device.inbox():
            path = self.dice.choice(inbox)
            target = device.vault / self.dice.choice(FOLDERS) / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                path.rename(target)

    def dismiss(self, device):
        if device.up and (ids := device.ids()):
            with self.lost("", device):
                device.daemon.ask("review.dismiss", ids=[self.dice.choice(ids)])

    def bring_back(self, device):
        if device.up:
            with self.lost("", device):
                if archived := device.daemon.ask("archived"):
                    device.daemon.ask("unarchive", ids=[self.dice.choice(archived)["id"]])

    def undo(self, device):
        """Undo an agent's last write to a note: expect the replaced text instead of the agent's text."""
        if not device.up or not device.captures:
            return
        id = self.dice.choice(sorted(device.captures))
        with contextlib.suppress(Conflict, NotFound, FileNotFoundError), self.lost("", device):
            path = device.vault / device.daemon.ask("get", id=id)["path"]
            was = path.read_text()
            if device.daemon.ask("undo", id=id)["done"]:
                self.unwanted(was)
                now = TOKEN.findall(path.read_text()) if path.is_file() else []
                self.wanted |= dict.fromkeys(now, f"undo of {id}, step {self.steps}")
                if now:
                    device.captures[id] = now[0]
                else:
                    del device.captures[id]

    # Git

    def commit(self, device):
        if device.git("ls-files", "--unmerged"):
            return
        device.git("add", "-A", check=False)
        device.git("commit", "-qm", "by hand", check=False)

    def sync(self, device):
        if not device.up:
            return
        try:
            device.daemon.ask("sync")
        except Unavailable as error:
            assert not device.up or not self.bare.exists() or "Memex changed no file" in error.message, error.message
        except Conflict as error:
            self.mended(device, error.message)

    def mended(self, device, said):
        """Run the command that Memex recommends, as the person, and repair the paths that Git names."""
        self.count("mended")
        for _ in range(8):
            if unmerged := set(filter(None, device.git("diff", "--name-only", "--diff-filter=U", "-z").split("\0"))):
                for path in unmerged:
                    resolve(device.vault / path)
                    device.git("add", "-A", "--", path)
            found = device.daemon.status("git") if device.up else {}
            if found.get("state") in ("conflict", "mid-operation"):
                said = found["advice"]
            elif not said:
                return
            command = COMMAND.search(said)
            assert command, said
            with contextlib.suppress(AssertionError):
                device.shell(f"GIT_EDITOR=true {command[1]}" if "&&" not in command[1] else command[1])
            said = ""

    def offline(self, _):
        if self.bare.exists():
            self.bare.rename(self.away)

    def online(self, _):
        if self.away.exists():
            self.away.rename(self.bare)

    def kill(self, device):
        """Kill the daemon, possibly while it pulls, pushes, commits or promotes, and restart it some time later."""
        if not device.up:
            return
        if self.dice.random() < 0.8:
            ids, to = device.ids()[:4] or ["none"], self.dice.choice(FOLDERS)
            asks = {"sync": {}, "commit": {}, "promote": {"ids": ids, "to": to}, "review.dismiss": {"ids": ids}}
            asked = self.dice.choices([*asks], [4, 1, 4, 1])[0]
            self.count(f"killed in {asked}")
            thread = threading.Thread(target=self.asked, args=(device, asked, asks[asked]))
            thread.start()
            time.sleep(self.dice.uniform(0, 0.4))
            device.stop(kill=True)
            thread.join()
        else:
            device.stop(kill=True)

    @staticmethod
    def asked(device, operation, given):
        with contextlib.suppress(MemexError, OSError):
            device.daemon.ask(operation, **given)

    def start(self, device):
        if not device.up:
            device.start()

    # The end

    def end(self):
        self.online(None)
        for device in self.devices:
            self.start(device)
        for _ in range(ROUNDS):
            for device in self.devices:
                device.daemon.settled()
                self.commit(device)
                self.sync(device)
            if self.settled():
                return
            time.sleep(0.3)
        raise AssertionError(
            [(device.git("status", "--porcelain"), device.daemon.status("git")) for device in self.devices]
        )

    def settled(self):
        a, b = self.devices
        heads = {device.git("rev-parse", "HEAD") for device in self.devices}
        clean = not any(device.git("status", "--porcelain") for device in self.devices)
        calm = all(device.daemon.status("pending") == 0 for device in self.devices)
        return len(heads) == 1 and clean and calm and a.files() == b.files()

    def true(self, folder):
        """Check that no text is lost, no file has conflict markers, and the indexes match the files."""
        a, b = self.devices
        files = a.files()
        assert files == b.files()
        assert [path for path, raw in files.items() if MARKER.search(raw)] == []
        held = set(TOKEN.findall(" ".join(raw.decode() for raw in files.values())))
        history = set(TOKEN.findall(a.git("log", "--all", "-p", "-m") + b.git("log", "--all", "-p", "-m")))
        assert {word: where for word, where in self.wanted.items() if word not in held | history} == {}
        for device in self.devices:
            assert "Traceback" not in device.said
            device.stop()
            own = dumped(device.vault, device.state, run=False)
            again = dumped(device.vault, folder / f"again {device.folder.name}", run=True)
            assert own == again
        return len(set(self.wanted) - held)


def dumped(vault, state, *, run):
    """Return the content of all indexes of a state folder; with `run`, after an index pass."""
    app = App(settings_of(vault, state), embedder=fake_embedder())
    try:
        if run:
            app.opened.sync.run(accept=True)
        return {scope: dump_index(scope_index.index) for scope, scope_index in app.opened.builds.scopes.items()}
    finally:
        app.close()


def resolve(path):
    """Keep both sides, except one of two properties with the same name."""
    if not path.is_file():
        return
    lines, seen, front = [], set(), False
    for number, line in enumerate(path.read_text().split("\n")):
        if MARKER.match(line.encode()):
            continue
        if line == "---":
            front = number == 0 or (number <= 1 and not lines)
        key = line.partition(":")[0] if front and ":" in line and not line.startswith(" ") else ""
        if key and key in seen:
            continue
        seen.add(key)
        lines.append(line)
    path.write_text("\n".join(lines))


WORK = [
    (Story.capture, 14),
    (Story.update, 6),
    (Story.forget, 2),
    (Story.edit, 14),
    (Story.clash, 2),
    (Story.create, 6),
    (Story.rename, 4),
    (Story.delete, 2),
    (Story.promote, 4),
    (Story.mark, 4),
    (Story.drag, 3),
    (Story.unpromote, 2),
    (Story.dismiss, 2),
    (Story.bring_back, 1),
    (Story.undo, 3),
    (Story.commit, 8),
    (Story.sync, 12),
    (Story.offline, 3),
    (Story.online, 3),
]
DYING = [(Story.kill, 8), (Story.start, 10)]


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]))
