"""Provide what all commands share: common options, one way to ask the daemon, results on stdout, messages on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.names import did_you_mean
from index.timings import now_ms
from syncd.cli.framework import help_text
from syncd.cli.framework.printed_commands import FLAGS, complete_commands
from syncd.cli.terminal import result_text
from syncd.clients.daemon_address import OPTIONS, init_command
from syncd.daemon import control_socket
from syncd.settings.known_vaults import choose_settings_file, known_vaults
from syncd.settings.settings import Settings, load
from syncd.state.folder import read_vault_path
from syncd.state.vault_claim import find_holder
from syncd.telemetry import log
from syncd.vault.path_rules import is_utf8

if TYPE_CHECKING:
    from syncd.app import App

TICK_S = 1.0  # seconds between two updates of a bar without steps
# Names that other programs have for a command: the first of these that the group has is meant.
OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("start", "restart", "run", "daemon"), ("serve",)),
    **dict.fromkeys(("kill", "quit", "shutdown"), ("stop",)),
    **dict.fromkeys(("add", "new"), ("capture", "create")),
    **dict.fromkeys(("ls", "list"), ("recent", "list")),
    **dict.fromkeys(("rm", "remove", "delete"), ("delete", "remove", "revoke")),
    **dict.fromkeys(("cat", "show", "read"), ("get", "show")),
    **dict.fromkeys(("edit", "update"), ("updatenote",)),
    **dict.fromkeys(("find", "query", "grep"), ("search",)),
    **dict.fromkeys(("setup", "install"), ("init",)),
    **dict.fromkeys(("page", "ui", "web", "dashboard"), ("open",)),
    **dict.fromkeys(("inbox", "approve", "reject", "dismiss", "archive"), ("review",)),
    **dict.fromkeys(("push", "pull"), ("sync",)),
    **dict.fromkeys(("check", "fix", "repair"), ("doctor",)),
    "revert": ("undo",),
    "history": ("log",),
    "note": ("capture",),
    "rebuild": ("index",),
    "accept": ("promote",),
    "token": ("key",),
    "clients": ("connect",),
    "settings": ("config",),
}
STARTING_S = 15.0  # how long to wait for a daemon that holds the lock and does not listen yet
# Operations that need neither the encoder nor the index. Operations in neither set wait for both.
WITHOUT_INDEX = frozenset(
    {
        *("status", "workspace.create", "workspace.list", "perspective.list"),
        *("share.add", "share.list", "share.preview"),
        *("key.create", "key.replace", "key.rename", "key.check", "key.list", "key.history"),
        *("key.revoke", "key.rotate"),
        *("audit.list", "audit.show", "audit.verify", "audit.prune", "commit", "sync"),
        *("job.list", "job.history", "queue.list", "queue.show", "queue.cancel"),
    }
)
# Operations that read the index, and need no encoder.
WITHOUT_ENCODER = frozenset(
    {
        *("get", "recent", "context.read", "workspace.count", "node.list", "node.open", "node.names", "relation.list"),
        *("graph.path", "graph.around", "graph.whole", "graph.export", "log", "folders", "file.check"),
        *("review.list", "review.show", "archived", "consolidate.list", "promote --dry-run", "undo --dry-run"),
        *("share.remove", "workspace.delete"),
    }
)
MAKES_INDEX = ("index", "check")
JSON, VAULT_SAID = "memex.json", "memex.vault"
Event = Mapping[str, Any]

logger = logging.getLogger("memex")


def _keep_flag(_: click.Context, option: click.Parameter, value: Any) -> None:
    set_flag(OPTIONS[option.opts[0]], value)


def _keep_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.find_root().meta[JSON] = True


def shared_options() -> list[click.Parameter]:
    """Return the options that every command accepts, before or after its name."""
    folder, file = click.Path(file_okay=False), click.Path(dir_okay=False)
    rows: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("vault", {"type": folder, "callback": _keep_flag}, "The vault: the folder of your notes."),
        ("state", {"type": folder, "callback": _keep_flag}, "The state folder, for index and keys."),
        ("config", {"type": file, "callback": _keep_flag}, "The settings file."),
        ("json", {"is_flag": True, "callback": _keep_json}, "Print JSON."),
    )
    return [
        click.Option([f"--{name}", f"shared_{name}"], expose_value=False, help=help, **kind)
        for name, kind, help in rows
    ]


def _refuse_empty_names(ctx: click.Context) -> None:
    """Refuse an empty name of a workspace or key, which an unset variable of a script gives: it would mean all, or the default."""
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        names = value if isinstance(value, tuple) else (value,)
        if "" in names and not {"--workspace", "--key"}.isdisjoint(parameter.opts):
            raise click.UsageError(f"{parameter.opts[0]} is empty: give a name, or leave the option out", ctx)


class Command(click.Command):
    """Give a command or a group the shared options, and help with examples."""

    def __init__(self, name: str | None, *, params: list[click.Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(name, params=[*(params or []), *shared_options()], **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; an error names the command, also one for an option without its value."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, unless a name is empty; the commands in an error act on the vault of this one."""
        _refuse_empty_names(ctx)
        try:
            return super().invoke(ctx)
        except MemexError as error:
            error.message = complete_commands(error.message)
            raise

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summary, the arguments or commands, examples, then the options."""
        help_text.write_help(self, ctx, formatter)


class Group(Command, click.Group):
    """Give a group and its commands the shared options."""

    command_class = Command
    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that a command line names; refuse an unknown one with the nearest name."""
        if ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        command = self.get_command(ctx, args[0])
        if not args[0].startswith("-") and command is None:
            known = self.list_commands(ctx)
            meant = next((name for name in OTHER_NAMES.get(args[0], ()) if name in known), args[0])
            near = did_you_mean(meant, known)
            raise click.UsageError(f"no command {args[0]!r} in `{ctx.command_path}`{near}", ctx)
        for option in self.params:
            # The command would ignore it.
            if option.expose_value and ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
                name, path = option.opts[0], f"{ctx.command_path} {args[0]}"
                taken = command is not None and any(name in parameter.opts for parameter in command.params)
                way_out = f"give it after `{path}`" if taken else f"`{path}` has no {name}; leave it out"
                raise click.UsageError(f"{name} before {args[0]} has no effect: {way_out}", ctx)
        return super().resolve_command(ctx, args)


def set_flag(name: str, value: Any) -> None:
    """Store a value from the command's own option as the flag of a setting."""
    if value is not None:
        click.get_current_context().find_root().meta.setdefault(FLAGS, {})[name] = value


def flags() -> dict[str, Any]:
    """Return the settings that were given as flags."""
    return dict(click.get_current_context().find_root().meta.get(FLAGS, {}))


def load_settings() -> Settings:
    """Load the settings for this command. At a terminal with several known vaults, print which one is the default."""
    chosen = load(flags(), os.environ)
    shared = click.get_current_context().find_root().meta
    if VAULT_SAID not in shared and sys.stderr.isatty():
        shared[VAULT_SAID] = True
        reason = choose_settings_file(flags(), os.environ, Path.cwd()).reason
        if reason == "default" and len(known_vaults(os.environ)) > 1:
            print_message(
                f"memex: using {chosen.vault.path}; to list the other vaults: memex vaults; to choose one: memex use"
            )
    return chosen


def require_set_up(chosen: Settings) -> None:
    """Raise NotFound, with the command that sets the vault up, if the state folder belongs to no vault yet."""
    if read_vault_path(chosen.state) is None:
        refuse_served(chosen)
        raise NotFound(f"{chosen.vault.path} is not set up for Memex yet: run `{init_command(chosen)}`")


def refuse_served(chosen: Settings) -> None:
    """Raise Conflict if a daemon serves the vault with another state folder than this command's, which belongs to no vault yet."""
    if pid := find_holder(chosen.vault.path):
        raise Conflict(
            f"process {pid} serves {chosen.vault.path} with another state folder: name that folder with --state, or stop the process: "
            f"kill {pid}"
        )


def wants_json() -> bool:
    """Check whether the answer is printed as JSON."""
    return bool(click.get_current_context().find_root().meta.get(JSON))


def has_color() -> bool:
    """Check whether stdout shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def terminal_width() -> int | None:
    """Return the width of the terminal that shows the result; None for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_text(text: str) -> None:
    """Print a result for people; text of a note can't control the terminal or hide characters in it."""
    print_data(result_text.sanitize_styled(text))


def print_data(text: str) -> None:
    """Print a result for programs unchanged; a path that is not UTF-8 keeps its bytes."""
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = text.encode("utf-8", "backslashreplace")
    click.echo(data)


def print_answer(result: Any, text: Callable[[], str]) -> None:
    """Print the result as JSON with --json, else the text that `text` returns."""
    if not wants_json():
        print_text(text())
        return
    shown = json.dumps(result, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    print_data(shown if shown.isascii() or is_utf8(shown) else json.dumps(result))


def print_note(note: Mapping[str, Any]) -> None:
    """Print the text of a note, `content`: safe for a terminal, or unchanged for a file or pipe; with --json the whole answer."""
    if wants_json() or sys.stdout.isatty():
        print_answer(note, lambda: result_text.sanitize(note["content"]))
    else:
        click.echo(note["content"].encode("utf-8", "surrogateescape"), nl=False)


def print_message(text: str) -> None:
    """Print a message to stderr, or log it if the log is structured; its commands act on the vault of this one.

    A closed terminal, or a pipe without a reader, does not end the command."""
    text = complete_commands(text)
    if log.is_structured():
        logger.info("%s", text.removeprefix("memex: "))
        return
    line = result_text.sanitize_styled(text)
    if not log.queue_line(line):
        with contextlib.suppress(OSError):
            click.echo(line, err=True)


def print_while_serving(text: str) -> None:
    """Print a text to stdout of a daemon; the daemon continues if stdout is closed."""
    log.flush()  # what was said before comes first
    with contextlib.suppress(OSError):
        print_text(text)
    flush_output()


def flush_output() -> None:
    """Flush the log, stdout and stderr. If a stream is closed, drop its buffered and later output."""
    log.flush()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # a stream in memory has no file descriptor
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


def reaches_stdout() -> bool:
    """Return whether printed text goes anywhere: stdout is the null device when it was closed, or after `flush_output` has dropped it."""
    with contextlib.suppress(OSError, ValueError):  # a stream in memory has no file descriptor
        return not os.path.samestat(os.fstat(sys.stdout.fileno()), os.stat(os.devnull))  # noqa: PTH116 - `samestat` takes both
    return True


def flush_output_in_time() -> bool:
    """Flush like `flush_output`, but wait only `log.FLUSH_S` for a reader; return whether everything is written."""
    flushing = threading.Thread(target=flush_output, name="flush", daemon=True)
    flushing.start()
    flushing.join(log.FLUSH_S)
    return not flushing.is_alive()


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[Event], None]]:
    """Show progress events as a bar, if stderr is a terminal and the answer is not JSON.

    An empty event removes the bar, so that other lines can be printed."""
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
    """Show the elapsed seconds of work that reports no progress, under the conditions of `show_progress`."""
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
    """Ask the running daemon; without a daemon, open the stores in this process and answer here.

    `fresh`: set up a vault that is not set up yet."""
    with open_session(fresh=fresh) as call:
        return call(operation, arguments)


@contextlib.contextmanager
def open_session(*, fresh: bool = False, current: bool = False) -> Iterator[Callable[[str, Mapping[str, Any]], Any]]:
    """Ask several operations in a row; without a daemon, open the stores once for all of them.

    `current`: without a daemon, first index what changed."""
    chosen, app = load_settings(), None
    with show_progress() as progress, contextlib.ExitStack() as kept:

        def call(operation: str, arguments: Mapping[str, Any]) -> Any:
            nonlocal app
            values = {name: value for name, value in arguments.items() if value is not None}
            needed = f"{operation} --dry-run" if values.get("dry_run") else operation
            end = time.monotonic() + STARTING_S
            while app is None:
                with contextlib.suppress(control_socket.NoDaemon):
                    return control_socket.call(chosen.state, operation, values, on_progress=progress)
                later = needed in WITHOUT_INDEX | WITHOUT_ENCODER
                try:
                    app = kept.enter_context(_open_app(chosen, fresh=fresh, later=later))
                except Conflict as error:  # a daemon is starting, or another command holds the lock
                    if "pid" not in error.details or time.monotonic() > end:
                        raise
                    time.sleep(0.2)
                else:
                    if current:
                        if not (later and app.opened.builds.is_complete):  # otherwise a changed note loads the encoder
                            _await_encoder(app, progress)
                        app.operations["index"]({}, progress)
            if app.later and not _suffices(app, needed):
                kept.close()
                app = kept.enter_context(_open_app(chosen, fresh=fresh, later=False))
            if not _suffices(app, needed):
                _prepare(app, operation, progress)
            return app.operations[operation](values, progress)

        yield call


def _suffices(app: App, operation: str) -> bool:
    """Check whether an operation can run with the opened stores, without the encoder."""
    return operation in WITHOUT_INDEX or (operation in WITHOUT_ENCODER and app.opened.builds.is_complete)


def _prepare(app: App, operation: str, progress: Callable[[Event], None]) -> None:
    """Wait for the encoder, and index a vault that was never indexed, unless `operation` does it."""
    _await_encoder(app, progress)
    if operation not in MAKES_INDEX and not app.opened.builds.is_complete:
        print_message("memex: this vault is not indexed yet; indexing it first")
        app.operations["index"]({}, progress)
        if not app.opened.builds.is_complete:
            raise Unavailable(
                "the vault could not be indexed, so there is nothing to search; for the reason: memex doctor"
            )


def _await_encoder(app: App, progress: Callable[[Event], None]) -> None:
    progress({"stage": "loading the model", "done": 0, "total": 1})
    app.opened.builds.wait_for_encoders()


def _open_app(chosen: Settings, *, fresh: bool, later: bool) -> contextlib.AbstractContextManager[App]:
    if not fresh:
        require_set_up(chosen)
    from syncd.app import App  # noqa: PLC0415 - as below
    from syncd.installation.vault_setup import set_up_vault  # noqa: PLC0415 - importing this takes longer than an answer of the daemon

    set_up_vault(chosen, now=now_ms())
    return App(chosen, later=later)
