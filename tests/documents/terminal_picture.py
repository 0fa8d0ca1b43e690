"""Draw a picture of a terminal: run commands at a real terminal on a copy of the demo vault, and draw their output as SVG."""

from __future__ import annotations

import html
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.support.paths import DAEMON_PYTHON, ROOT

WIDTH: Final = 116  # columns
PICTURES: Final[Mapping[str, Sequence[str]]] = {
    "two-minutes": (
        "memex search 'how do we keep the battery boxes cool' --limit 2",
        "memex capture 'The west box needs a wider vent before May.' --title 'West vent' --tag heron",
        "memex promote 'West vent' --to Projects/Heron",
        "memex log 'West vent'",
        "memex unpromote 'West vent'",
    ),
    "status": ("memex status",),
}
THEME: Final = TerminalTheme(
    (250, 250, 250),
    (40, 42, 54),
    [(40, 42, 54), (190, 50, 60), (30, 130, 76), (165, 105, 0), (40, 90, 180), (140, 60, 150), (20, 125, 140), (90, 92, 104)],
    [(110, 112, 124), (210, 70, 80), (40, 150, 90), (185, 125, 10), (60, 110, 200), (160, 80, 170), (40, 145, 160), (20, 22, 34)],
)  # fmt: skip
# rich's own frame, without the fonts that it would fetch from another host.
SVG: Final = """<svg class="terminal" viewBox="0 0 {width} {terminal_height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>NAME</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#fafafa" stroke="#d0d4da"/>
<g transform="translate(14, 4)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def write_pictures(folder: Path) -> None:
    """Record every picture into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with served_demo(8765) as environment:
        for name, commands in PICTURES.items():
            shown = [(command, run_at_terminal(command, environment)) for command in commands]
            (folder / f"{name}.svg").write_text(draw(name, shown), encoding="utf-8")


def draw(name: str, shown: Sequence[tuple[str, str]]) -> str:
    """Return the SVG of commands and what each printed, with its colours."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for command, output in shown:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")), soft_wrap=False)
        console.print(Text.from_ansi(output.replace("\r\n", "\n").rstrip("\n") + "\n"))
    title = html.escape("; ".join(command for command, _ in shown))
    return console.export_svg(theme=THEME, code_format=SVG, unique_id=name).replace("NAME", title, 1)


def run_at_terminal(command: str, environment: Mapping[str, str]) -> str:
    """Return what a command prints when its output is a terminal."""
    reader, writer = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
        env=environment,
        cwd=environment["HOME"],
    ) as process:
        os.close(writer)
        printed = bytearray()
        while chunk := _read(reader):
            printed += chunk
    os.close(reader)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}: {printed.decode()}")
    return printed.decode("utf-8")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""


@contextmanager
def served_demo(port: int) -> Iterator[dict[str, str]]:
    """The environment of a shell beside a daemon that serves a copy of the demo vault, as ~/MyVault; port 0 is any free one."""
    with tempfile.TemporaryDirectory(prefix="memex-picture-") as folder:
        home = Path(folder)
        shutil.copytree(ROOT / "vault_fixtures" / "demo", home / "MyVault")
        path = f"{DAEMON_PYTHON.parent}:{os.environ['PATH']}"
        environment = {"HOME": folder, "PATH": path, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LANG": "C.UTF-8"}
        (home / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n", encoding="utf-8")
        run_at_terminal("memex init ~/MyVault --git && memex index", environment)
        with subprocess.Popen(
            ["memex", "serve", "--port", str(port)], env=environment, stderr=subprocess.DEVNULL
        ) as daemon:
            try:
                _wait_until_ready(environment)
                yield environment
            finally:
                daemon.send_signal(signal.SIGTERM)


def _wait_until_ready(environment: Mapping[str, str]) -> None:
    """Wait until the daemon answers with its model, and has looked for suggestions once."""
    for _ in range(120):
        asked = subprocess.run(
            ["memex", "status", "--json", "--all"], env=environment, check=False, capture_output=True
        )
        state = json.loads(asked.stdout or "{}")
        if (
            state.get("encoder", {}).get("state") == "ready"
            and not state["pending"]
            and state["daemon"]["state"] == "running"
        ):
            return
        time.sleep(1)
    raise RuntimeError("the daemon did not become ready")
