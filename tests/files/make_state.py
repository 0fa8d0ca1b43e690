"""Make `state-b1ced60.tar.gz`: a vault and all that Memex keeps beside it, as the version of commit b1ced60 leaves them.

Run in a clone of that commit that `make setup` has prepared:

    git clone . /tmp/clone && git -C /tmp/clone checkout b1ced60 && make -C /tmp/clone setup
    /tmp/clone/.venv/bin/python tests/files/make_state.py /tmp/clone tests/files/state-b1ced60.tar.gz

The script drives the commands of the clone from outside and imports nothing of the project, so that it runs on every
commit. In the archive, @ROOT@ stands for the folder of everything, and @BIN@ for the folder of the Python that ran it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

NOTES = {
    "Garden/Ferns.md": "# Ferns\n\nThe ferns want water twice a week; ask the neighbour in August. See [[Compost]].\n",
    "Garden/Compost.md": "# Compost\n\nTurn the heap every second Sunday.\n\n## In winter\n\nCover it with straw.\n",
    "Work/Tide table.md": "---\ntags: [harbour]\n---\nHigh water at the mole is twenty minutes after the port's.\n",
    "Captures/default/Kettle.md": "---\nid: memo-kettle\nrelations:\n  - target: '[[Filter]]'\n    tag: needs\n"
    "    weight: 0.8\n---\nThe kettle scales up within a month when the filter is old.\n",
    "Captures/default/Filter.md": "---\nid: memo-filter\n---\nThe water filter is due in May.\n",
}
PERSON = {"NAME": "Ada", "EMAIL": "ada@example.org"}
QUEUED = "The lighthouse lens was cleaned on the third of June.\n"
SETTINGS = "\n[server]\nport = 0\n\n[limits]\nrate = 0\n\n[kb]\ncollections = ['recipes']\n"
TEXTS = ("state/vault", "state/key", "agent.key", "home/", "vault/.git/hooks/", "vault/.git/config")
LEFT_OUT = ("state/lock", "state/control.sock", "state/control.token", "state/models", "serve.log", "report.txt")


class Memex:
    """The commands of the clone `code` on the vault and the state folder below `root`."""

    def __init__(self, code: Path, root: Path) -> None:
        self.code, self.root = code, root
        self.vault, self.state, self.home = root / "vault", root / "state", root / "home"
        for folder in (self.vault, self.home):
            folder.mkdir()
        person = {f"GIT_{who}_{what}": word for who in ("AUTHOR", "COMMITTER") for what, word in PERSON.items()}
        quiet = {"PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_NOSYSTEM": "1"}
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONPATH": str(code)} | quiet | person

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "syncd.cli", *words, "--vault", str(self.vault), "--state", str(self.state)]

    def run(self, *words: str, command: list[str] | None = None, **environ: str) -> str:
        """What a command prints; it ends the script when it fails."""
        line = command or self.command(*words)
        return subprocess.run(
            line, env=self.environ | environ, cwd=self.vault, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def serve(self) -> subprocess.Popen[bytes]:
        """A daemon that is ready and has indexed everything."""
        with (self.root / "serve.log").open("ab") as log:
            process = subprocess.Popen(self.command("serve"), env=self.environ, cwd=self.vault, stdout=log, stderr=log)
        for _ in range(600):
            time.sleep(0.2)
            if self.calm():
                return process
        raise SystemExit((self.root / "serve.log").read_text())

    def calm(self) -> bool:
        """Whether the daemon answers and nothing waits to be indexed."""
        try:
            url = json.loads((self.state / "daemon.json").read_text())["url"]
            headers = {"authorization": f"Bearer {(self.state / 'key').read_text().strip()}"}
            with urllib.request.urlopen(urllib.request.Request(f"{url}/readyz", headers=headers)) as answer:
                told = json.load(answer)
        except (OSError, ValueError):
            return False
        return bool(told["ready"]) and told["pending"] == 0


def filled(memex: Memex) -> None:
    """Notes, captures, an entity, keys, and a file that waits in the queue; the daemon has run and was stopped."""
    for path, text in NOTES.items():
        file = memex.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    memex.run("init", "--yes", "--git")
    config = memex.home / ".config/memex/config.toml"
    config.write_text(config.read_text() + SETTINGS)
    memex.run("hook", "install")
    memex.run("hook", "secret")
    process = memex.serve()
    memex.run("capture", "The spare key hangs behind the barometer.", "--title", "Spare key", "--tag", "home")
    memex.run("node", "add", "Heron", "--type", "device")
    memex.run("node", "observe", "Heron", "Passed the salt test in the harbour.")
    (memex.root / "agent.key").write_text(memex.run("key", "create", "--name", "claude", "-w", "default", "--json"))
    memex.run("commit")
    while not memex.calm():
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    if process.wait(60):
        raise SystemExit((memex.root / "serve.log").read_text())


def kept_beside(memex: Memex) -> None:
    """Two service units, as a script and as a module; a backup; and a file queued that no daemon has read yet."""
    (memex.root / "report.txt").write_text(QUEUED)
    memex.run("addfile", str(memex.root / "report.txt"), "--no-wait")
    memex.run("service", "install", "--file-only")
    bare = memex.root / "bare-python"  # a Python that has no script `memex` beside it
    bare.symlink_to(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))
    words = [str(bare), *memex.command("service", "install", "--file-only", "--name", "module")[1:]]
    packages = sysconfig.get_paths()["purelib"]
    memex.run(command=words, PYTHONPATH=f"{memex.code}:{packages}")
    bare.unlink()
    memex.run("backup", str(memex.root / "backup.tar.gz"))


def packed(root: Path, target: Path) -> None:
    """Write the archive, with no path of the machine that made it in what is text."""
    places = {str(root / "bare-python"): "@BIN@/python", str(root): "@ROOT@", str(Path(sys.executable).parent): "@BIN@"}
    with tarfile.open(target, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=9) as archive:
        for file in sorted(root.rglob("*")):
            name = str(file.relative_to(root))
            if file.is_symlink() or not (file.is_dir() or file.is_file()) or name.startswith(LEFT_OUT):
                continue
            if name.endswith(".sample"):  # Git's own hooks, which run nothing
                continue
            member = archive.gettarinfo(file, name)
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            content = file.read_bytes() if file.is_file() else b""
            if name.startswith(TEXTS):
                for place, mark in places.items():
                    content = content.replace(place.encode(), mark.encode())
            member.size = len(content)
            for place in places:
                if place.encode() in content:
                    raise SystemExit(f"{name} holds the path {place}")
            archive.addfile(member, io.BytesIO(content) if file.is_file() else None)


if __name__ == "__main__":
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="memex-") as folder:
        made = Memex(Path(sys.argv[1]).resolve(), Path(folder).resolve())
        filled(made)
        kept_beside(made)
        packed(made.root, Path(sys.argv[2]))
