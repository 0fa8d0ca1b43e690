"""The outcome of a command is an exit code, and for an error a message on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from index.errors import InvalidArgument, MemexError, Unavailable, from_os_error
from index.names import did_you_mean
from syncd.cli.terminal import result_text
from syncd.telemetry import log

EXIT = {
    "INVALID_ARGUMENT": 2,
    "UNAUTHENTICATED": 3,
    "PERMISSION_DENIED": 3,
    "NOT_FOUND": 4,
    "CONFLICT": 5,
    "RESOURCE_EXHAUSTED": 6,
    "UNAVAILABLE": 7,
}
# Exit codes for service managers. A restart does not help after 64, 65, 77 and 78.
USAGE, DATA, GONE, PERMISSION, CONFIG = 64, 65, 69, 77, 78
SERVE_EXIT = dict.fromkeys(EXIT, GONE) | {
    "INVALID_ARGUMENT": CONFIG,
    "UNAUTHENTICATED": PERMISSION,
    "PERMISSION_DENIED": PERMISSION,
}
INTERRUPTED, PIPE_CLOSED, BUG = 130, 141, 1
_EXTRA_ARGUMENTS = re.compile(r"Got unexpected extra arguments? \((.*)\)\Z", re.DOTALL)  # how click reports them


def run(command: click.Command, words: Sequence[str], *, name: str = "memex", serving: bool = False) -> int:
    """Run a command line of the program `name`, print its errors to stderr, and return the exit code."""
    try:
        done = command.main(args=list(words), prog_name=name, standalone_mode=False)
        if not serving:  # a daemon must end although nobody reads its output
            sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        _print_error("")
        return INTERRUPTED
    except SystemExit:
        if "_MEMEX_COMPLETE" in os.environ:  # shell completion has printed its words
            raise
        return PIPE_CLOSED  # click exits this way when nobody reads its output
    except BrokenPipeError:
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the top of the program: print a sentence, and the traceback on request
        return _report_error(error, serving=serving, as_json="--json" in words)
    return done if isinstance(done, int) else 0


def _report_error(error: Exception, *, serving: bool, as_json: bool) -> int:
    failure = _as_memex_error(error)
    if failure is None:
        return _report_bug(error, serving=serving)
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and not as_json:
        _print_error(error.format_message())
    else:
        text = f"memex: {result_text.sanitize(failure.message)}"
        shown = json.dumps({"error": failure.as_dict()}, default=str) if as_json else text
        if log.is_structured():
            logging.getLogger("memex").error("%s", failure.message, extra={"fields": {"code": failure.code}})
        else:
            _print_error(shown)
    if not serving:
        return EXIT[failure.code]
    if isinstance(error, click.ClickException):
        return USAGE
    return DATA if isinstance(failure, Unavailable) and not failure.retryable else SERVE_EXIT[failure.code]


def _as_memex_error(error: Exception) -> MemexError | None:
    match error:
        case MemexError():
            return error
        case click.ClickException():
            context: Any = getattr(error, "ctx", None)
            path = context.command_path if context else "memex"
            if isinstance(error, click.exceptions.NoArgsIsHelpError) or error.message == "Missing command.":
                return InvalidArgument(f"`{path}` needs a command; see `{path} --help`")
            text = _describe_usage(error, context)
            return InvalidArgument(f"{text}{' See' if text.endswith('?') else '; see'} `{path} --help`")
        case OSError():
            return from_os_error(error)
        case _:
            return None


def _describe_usage(error: click.ClickException, context: click.Context | None) -> str:
    """Return what is wrong with a command line, and which values are allowed."""
    match error:
        case click.NoSuchOption():
            near = did_you_mean(error.option_name, error.possibilities or ())
            return f"no option {error.option_name!r} in `{context.command_path if context else 'memex'}`{near}"
        case click.BadOptionUsage() if context:
            options = (option for option in context.command.params if error.option_name in option.opts)
            values = next((f": {_describe_values(option, context)}" for option in options), "")
            return f"{error.option_name} needs a value{values}"
        case click.MissingParameter():
            text = " ".join(error.format_message().split()).rstrip(".")  # click puts each choice on a line
            return text[0].lower() + text[1:]
        case click.BadParameter(param=click.Parameter() as parameter) if context:
            return _describe_wrong_value(error.message, parameter, context)
        case click.UsageError() if extra := _EXTRA_ARGUMENTS.match(error.message):
            return f"too many arguments: {extra[1]}; a name with blanks needs quotes"
        case _:
            return error.format_message().rstrip(".")


def _describe_wrong_value(message: str, parameter: click.Parameter, context: click.Context) -> str:
    """Return what is wrong with the value of a parameter; `message` is click's."""
    name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(context)
    if not (isinstance(parameter.type, click.Choice) or _is_number(parameter)):
        return f"{name}: {message.rstrip('.')}"
    value, _, _ = message.rpartition(" is not ")
    shown = "the argument" if name.startswith("{") else name  # click's name of an argument with choices lists them
    return f"{shown} is {_describe_values(parameter, context)}, and not {value}"


def _is_number(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType)


def _describe_values(parameter: click.Parameter, context: click.Context) -> str:
    """Return the values that a parameter allows."""
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(map(str, kind.choices))}"
    if not _is_number(parameter):
        return parameter.make_metavar(context)
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    bounds = "" if least is None else f" of at least {least:,}"
    if most is not None:
        bounds = f" of at most {most:,}" if least is None else f" from {least:,} to {most:,}"
    return f"a {'whole ' if isinstance(kind, click.types.IntParamType) else ''}number{bounds}"


def _report_bug(error: Exception, *, serving: bool) -> int:
    if serving and log.is_installed():
        logging.getLogger("memex").error("an unexpected error ended the daemon", exc_info=error)
    elif serving or os.environ.get("MEMEX_DEBUG"):
        traceback.print_exc()
    else:
        text = f"memex: internal error: {type(error).__name__}: {error} (for the traceback: MEMEX_DEBUG=1)"
        _print_error(result_text.sanitize(text))
    return BUG


def _print_error(text: str) -> None:
    """Print one line to stderr; if stderr is closed, only the exit code reports the error."""
    if log.queue_line(text):
        log.flush()
    else:
        with contextlib.suppress(OSError):
            click.echo(text.encode("utf-8", "backslashreplace"), err=True)
