"""Provide what all commands share: common options, one way to ask the daemon, results on stdout, messages on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from index.errors import Conflict, NotFound, Unavailable
from index.names import did_you_mean
from syncd.cli.framework import help_text
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket
from syncd.settings.known_vaults import choose_settings_file, known_vaults
from syncd.settings.settings import Settings, load
from syncd.state.folder import read_vault_path
from syncd.telemetry import log
from syncd.vault.path_rules import is_utf8

if TYPE_CHECKING:
    from syncd.app import App

TICK_S = 1.0
STARTING_S = 15.0  # a daemon that holds the lock and is not yet listening gets this long
# Operations that need neither the encoder nor notes in the index. All that stands in no list here waits for both.
WITHOUT_INDEX = frozenset(
    {
        *("status", "workspace.create", "workspace.list", "perspective.list"),
        *("key.create", "key.check", "key.list", "key.revoke", "key.rotate", "key.history"),
        *("audit.list", "audit.verify", "audit.prune"),
        *("job.list", "job.history", "queue.list", "queue.show", "queue.cancel"),
    }
)
# Operations that read the index of a vault, and need no encoder.
WITHOUT_ENCODER = frozenset(
    {
        *("get", "recent", "node.list", "node.open", "node.names", "relation.list"),
        *("graph.path", "graph.around", "graph.whole", "graph.export"),
    }
)
MAKES_INDEX = ("index", "check")
FLAGS, JSON, VAULT_SAID = "memex.flags", "memex.json", "memex.vault"
Event = Mapping[str, Any]

logger = logging.getLogger("memex")


def _keep_flag(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep_value(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            ctx.find_root().meta.setdefault(FLAGS, {})[name] = value

    return keep_value


def _keep_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().meta[JSON] = True


def shared_options() -> list[click.Parameter]:
    """The options that every command takes, before or after its name."""
    folder, file = click.Path(file_okay=False), click.Path(dir_okay=False)
    return [
        click.Option(
            ["--vault", "shared_vault"],
            type=folder,
            callback=_keep_flag("vault.path"),
            expose_value=False,
            help="The folder of notes.",
        ),
        click.Option(
            ["--state", "shared_state"],
            type=folder,
            callback=_keep_flag("state"),
            expose_value=False,
            help="The folder for index and keys.",
        ),
        click.Option(
            ["--config", "shared_config"],
            type=file,
            callback=_keep_flag("config"),
            expose_value=False,
            help="The settings file.",
        ),
        click.Option(
            ["--json", "shared_json"], is_flag=True, callback=_keep_json, expose_value=False, help="Answer in JSON."
        ),
    ]


class Command(click.Command):
    """A command with the shared options, and a page of help that a person can work from."""

    def __init__(self, name: str | None, *, params: list[click.Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(name, params=[*(params or []), *shared_options()], **kwargs)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What it does, its arguments, examples, then its options."""
        help_text.write_help(self, ctx, formatter)


class Group(click.Group):
    """A group with the shared options, whose commands have them too."""

    command_class = Command
    group_class = type

    def __init__(self, name: str | None, *, params: list[click.Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(name, params=[*(params or []), *shared_options()], **kwargs)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What it does, its commands, then its options."""
        help_text.write_help(self, ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that a line names; an unknown one is refused with the nearest name."""
        if (
            args
            and not args[0].startswith("-")
            and self.get_command(ctx, args[0]) is None
            and not ctx.resilient_parsing
        ):
            near = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"no command {args[0]!r} in `{ctx.command_path}`{near}", ctx)
        return super().resolve_command(ctx, args)


def set_flag(name: str, value: Any) -> None:
    """Take a value that the command itself was given as that setting's flag."""
    if value is not None:
        click.get_current_context().find_root().meta.setdefault(FLAGS, {})[name] = value


def flags() -> dict[str, Any]:
    """The settings that were given as flags."""
    return dict(click.get_current_context().find_root().meta.get(FLAGS, {}))


def load_settings() -> Settings:
    """The settings in force for this command. At a terminal, a vault that nobody named among several is named."""
    chosen = load(flags(), os.environ)
    shared = click.get_current_context().find_root().meta
    if VAULT_SAID not in shared and sys.stderr.isatty():
        shared[VAULT_SAID] = True
        reason = choose_settings_file(flags(), os.environ, Path.cwd()).reason
        if reason == "default" and len(known_vaults(os.environ)) > 1:
            print_message(
                f"memex: this is about {chosen.vault.path}; `memex vaults` lists the others, `memex use` chooses"
            )
    return chosen


def wants_json() -> bool:
    """Whether the answer is for a script."""
    return bool(click.get_current_context().find_root().meta.get(JSON))


def has_color() -> bool:
    """Whether stdout shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def print_text(text: str) -> None:
    """One result for people on stdout: no text of a note steers their terminal, or hides what it says there."""
    print_data(result_text.sanitize_styled(text))


def print_data(text: str) -> None:
    """One result on stdout as it is, for programs: a path that is not UTF-8 comes out as the bytes it has."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "backslashreplace")
    click.echo(data)


def print_answer(result: Any, text: Callable[[], str]) -> None:
    """The result: as JSON for a script, else as `text` makes it."""
    if not wants_json():
        print_text(text())
        return
    shown = json.dumps(result, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    print_data(shown if shown.isascii() or is_utf8(shown) else json.dumps(result))


def print_message(text: str) -> None:
    """Something said on the way, on stderr; where nobody sits at a terminal, a record of the log.

    A terminal that was closed, or a pipe that nobody reads, ends nothing."""
    if log.is_structured():
        logger.info("%s", text.removeprefix("memex: "))
    else:
        with contextlib.suppress(OSError):
            click.echo(result_text.sanitize_styled(text), err=True)


def print_while_serving(text: str) -> None:
    """A text on stdout of a daemon, which works on whether or not anybody still reads that."""
    with contextlib.suppress(OSError):
        print_text(text)
    flush_output()


def flush_output() -> None:
    """Write what waits for stdout and stderr. Where nobody can read that any more, it is dropped, with all that follows."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # a stream in memory has no number
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[Event], None]]:
    """Show progress events as a bar while something is done, if stderr is a terminal and a person reads the answer.

    An empty event takes the bar away, for what is printed beside it."""
    if not sys.stderr.isatty() or wants_json():
        yield lambda _: None
        return
    last = 0.0

    def clear_bar() -> None:
        nonlocal last
        if last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        last = 0.0

    def update_bar(event: Event) -> None:
        nonlocal last
        if not event:
            clear_bar()
            return
        done, total = int(event.get("done", 0)), int(event.get("total", 0))
        if time.monotonic() - last > 0.1 or done == total:
            last = time.monotonic()
            width = shutil.get_terminal_size().columns
            sys.stderr.write(
                "\r\x1b[K"
                + result_text.progress_bar(result_text.line(str(event.get("stage", "")), 30), done, total, width - 1)
            )
            sys.stderr.flush()

    try:
        yield update_bar
    finally:
        clear_bar()


@contextlib.contextmanager
def show_elapsed(stage: str) -> Iterator[None]:
    """Show for how long something has gone on that doesn't tell how far it is, where `show_progress` would show a bar."""
    began, ended = time.monotonic(), threading.Event()
    with show_progress() as progress:

        def count_seconds() -> None:
            while not ended.wait(TICK_S):
                progress({"stage": f"{time.monotonic() - began:.0f} s, {stage}"})

        ticking = threading.Thread(target=count_seconds, daemon=True)
        ticking.start()
        try:
            yield
        finally:
            ended.set()
            ticking.join()


def ask(operation: str, arguments: Mapping[str, Any], *, fresh: bool = False) -> Any:
    """The answer of the running daemon, or of this process with the stores opened when none runs.

    `fresh`: a vault that Memex has never seen is set up first."""
    with open_session(fresh=fresh) as call:
        return call(operation, arguments)


@contextlib.contextmanager
def open_session(*, fresh: bool = False, current: bool = False) -> Iterator[Callable[[str, Mapping[str, Any]], Any]]:
    """Ask several things in a row; where no daemon runs, the stores are opened once for all of them.

    `current`: what changed while no daemon ran is indexed first."""
    chosen, app = load_settings(), None
    with show_progress() as progress, contextlib.ExitStack() as kept:

        def call(operation: str, arguments: Mapping[str, Any]) -> Any:
            nonlocal app
            values = {name: value for name, value in arguments.items() if value is not None}
            end = time.monotonic() + STARTING_S
            while app is None:
                with contextlib.suppress(control_socket.NoDaemon):
                    return control_socket.call(chosen.state, operation, values, on_progress=progress)
                later = not current and operation in WITHOUT_INDEX | WITHOUT_ENCODER
                try:
                    app = kept.enter_context(_open_app(chosen, fresh=fresh, later=later))
                except Conflict as error:  # a daemon is starting, or another command holds the lock
                    if "pid" not in error.details or time.monotonic() > end:
                        raise
                    time.sleep(0.2)
                else:
                    if current:
                        _await_encoder(app, progress)
                        app.operations["index"]({}, progress)
            if app.later and not _suffices(app, operation):
                kept.close()
                app = kept.enter_context(_open_app(chosen, fresh=fresh, later=False))
            if not _suffices(app, operation):
                _prepare(app, operation, progress)
            return app.operations[operation](values, progress)

        yield call


def _suffices(app: App, operation: str) -> bool:
    """Whether an operation can be carried out with what is opened, without the encoder."""
    return operation in WITHOUT_INDEX or (operation in WITHOUT_ENCODER and app.opened.builds.is_complete)


def _prepare(app: App, operation: str, progress: Callable[[Event], None]) -> None:
    """Wait for the encoder; index the vault if that was never done and `operation` does not do it."""
    _await_encoder(app, progress)
    if operation not in MAKES_INDEX and not app.opened.builds.is_complete:
        print_message("memex: this vault is not indexed yet, so it is indexed first")
        app.operations["index"]({}, progress)
        if not app.opened.builds.is_complete:
            raise Unavailable("the vault could not be indexed, so nothing can be found in it: `memex doctor` says why")


def _await_encoder(app: App, progress: Callable[[Event], None]) -> None:
    progress({"stage": "loading the model", "done": 0, "total": 1})
    app.opened.builds.wait_for_encoders()


def _open_app(chosen: Settings, *, fresh: bool, later: bool) -> contextlib.AbstractContextManager[App]:
    if not fresh and read_vault_path(chosen.state) is None:
        raise NotFound(f"{chosen.vault.path} is not set up for Memex yet: run `{_init_command(chosen)}`")
    from syncd.app import App  # noqa: PLC0415 - as below
    from syncd.installation.vault_setup import set_up_vault  # noqa: PLC0415 - this takes longer to import than the daemon to answer

    set_up_vault(chosen, now=now())
    return App.open(chosen, later=later)


def _init_command(chosen: Settings) -> str:
    """The command that sets this vault up where it was looked for."""
    named = chosen.origins.keys() & {"state"}
    return shlex.join(["memex", "init", str(chosen.vault.path), *(["--state", str(chosen.state)] if named else [])])


def now() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000
