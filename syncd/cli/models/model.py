"""Define the command `model`: list the models for search by meaning, measure one on the owner's notes, and choose one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from index.timings import now_ms
from syncd.cli.framework.commands import (
    Group,
    flags,
    has_color,
    load_settings,
    print_answer,
    print_message,
    require_set_up,
    show_progress,
)
from syncd.cli.framework.completion import models
from syncd.cli.models.measurement_text import format_measurement
from syncd.cli.terminal import result_text
from syncd.settings.settings import Settings, load
from syncd.state.folder import expand_home
from syncd.state.process_lock import holder_pid

if TYPE_CHECKING:
    from index.encoders.settings import EncoderSettings

# ruff: noqa: PLC0415 - encoders and measurements take longer to import than most commands to run
SETTING = "embed.encoders"
PROMPTS = ("query_prompt", "document_prompt")
F = TypeVar("F", bound=Callable[..., Any])


def _model_options(command: F) -> F:
    """Add the options that describe a model, which are the fields of ModelOptions."""
    options = (
        click.option("--download", is_flag=True, help="Fetch the model from its hub if it is not on this machine."),
        click.option(
            "--document-prompt", metavar="TEXT", help="The text before each passage. Default: the model's own."
        ),
        click.option("--query-prompt", metavar="TEXT", help="The text before each query. Default: the model's own."),
        click.option("--api-key-env", metavar="VARIABLE", help="The environment variable with the server's key."),
        click.option(
            "--base-url", default="", metavar="URL", help="A server with OpenAI's embeddings API that has NAME."
        ),
    )
    for option in options:  # the first one is the last in the help
        command = option(command)
    return command


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def model(ctx: click.Context) -> None:
    """List the models for search by meaning, with their prompts, and mark the one in use.

    `ollama:NAME` is a model of Ollama on this machine. Any other sentence-transformers model works by its folder or by
    its name on the hub, and a model of any server with OpenAI's embeddings API with --base-url. Memex downloads a model only
    with --download. With --json: [{"name", "model", "in_use", "dimensions", "languages", "parameters_m", "licence",
    "query_prompt", "document_prompt"}]."""
    if ctx.invoked_subcommand is None:
        rows = list(_list_models(load_settings()))
        print_answer(rows, lambda: _format_models(rows))


@model.command("try")
@click.argument("name", shell_complete=models)
@_model_options
def model_try(name: str, **options: Any) -> None:
    """Measure the model NAME beside the present one on your own notes; nothing is changed.

    Questions with known answers are made from titles, headings, aliases and link texts of up to 3,000 notes; each model
    indexes these notes, without such names, in a temporary folder. The command takes at most about ten minutes: slow
    models get a smaller sample, which the answer names. Ctrl-C ends it. `memex model use` looks at the result.

    With --json: {"present", "changed", "notes", "notes_in_all", "questions", "search", "meaning", "cost", "recorded", "verdict"}."""
    chosen = load_settings()
    encoder = _choose(name, options)
    present, changed = _table(_present_encoder(chosen)), _table(encoder)
    if present == changed:
        raise InvalidArgument(f"{name} is the model in use; `memex model` lists others")
    try:
        result = measure(chosen, load(flags() | {SETTING: json.dumps([changed])}, os.environ))
    except Unavailable as error:
        if changed["kind"] != "local" or options["download"] or expand_home(changed["model"]).is_dir():
            raise
        raise Unavailable(f"{error.message}; to fetch it from its hub: --download", retryable=False) from error
    from syncd.measurement.last_measurements import keep_measurement

    keep_measurement(chosen.state, present, changed, result, now_ms())
    labels = _label(_present_encoder(chosen)), _label(encoder)
    print_answer(
        {"present": present, "changed": changed, **result},
        lambda: format_measurement(result, *labels, color=has_color()),
    )


@model.command("use")
@click.argument("name", shell_complete=models)
@click.option("--force", is_flag=True, help="Switch without a measurement, or in spite of a measured loss.")
@_model_options
def model_use(name: str, force: bool, **options: Any) -> None:
    """Choose the model NAME: write it into the settings file, before the other encoders.

    The next start of the daemon, or `memex index`, builds a new index beside the old one, which answers meanwhile. The
    command refuses a model that is not on this machine without --download and, without --force, one that `memex model try` did
    not measure beside the present one, or that found less.
    With --json: {"name", "config", "changed", "verdict"}."""
    chosen = load_settings()
    encoder = _choose(name, options)
    origin = chosen.origins.get(SETTING)
    if origin not in (None, str(chosen.file)):
        raise InvalidArgument(f"{SETTING} is set by {origin}, which overrides the settings file: change it there")
    present = _present_encoder(chosen)
    if _table(present) == _table(encoder):
        answer = {"name": name, "config": str(chosen.file or ""), "changed": False, "verdict": None}
        print_answer(answer, lambda: f"{result_text.line(name)} is in use already")
        return
    _require_present(name, encoder)
    verdict = None if force else _require_no_loss(chosen, name, present, encoder)
    load(flags() | {SETTING: json.dumps([_table(encoder)])}, os.environ)  # other settings may not fit this encoder
    file = _write_choice(chosen, encoder)
    print_answer(
        {"name": name, "config": file, "changed": True, "verdict": verdict},
        lambda: f"{result_text.line(name)} is now the first encoder in {result_text.line(file, 300)}",
    )
    restart = "restart the daemon" if holder_pid(chosen.state) else "run `memex index`, or start the daemon"
    print_message(f"memex: to build an index with it beside the present one, {restart}")


def measure(present: Settings, changed: Settings) -> dict[str, Any]:
    """Measure two settings on the notes of the vault, with a progress bar. Raises NotFound for a vault that is not set up."""
    from syncd.measurement.comparison import compare_setups, make_setup, read_sample
    from syncd.telemetry.search_log import read_searches

    require_set_up(present)
    searches = [entry["query"] for entry in read_searches(present.state)]
    with show_progress() as progress:
        notes = read_sample(present, progress)
        return compare_setups(make_setup(present), make_setup(changed), notes, searches, progress=progress)


def _require_present(name: str, encoder: EncoderSettings) -> None:
    """Raise NotFound for a model that is neither on this machine nor to be downloaded: the daemon could not load it."""
    from index.encoders import model_files
    from index.encoders.settings import LocalSettings

    if not isinstance(encoder, LocalSettings) or encoder.download:
        return
    try:
        model_files.locate(encoder.model, owner="sentence-transformers")
    except (ImportError, OSError, ValueError):
        raise NotFound(
            f"no model {name!r} on this machine; to fetch it from its hub: --download; `memex model` lists others"
        ) from None


def _require_no_loss(chosen: Settings, name: str, present: EncoderSettings, encoder: EncoderSettings) -> str:
    """Return the verdict of the last measurement. Raises Conflict if there is none, or it found a loss."""
    from syncd.measurement.last_measurements import find_verdict

    measured = find_verdict(chosen.state, _table(present), _table(encoder))
    if measured is None:
        raise Conflict(
            f"{name} was not measured beside {_label(present)} on these notes: `memex model try` measures it, --force switches without"
        )
    verdict, at = measured
    if verdict == "worse":
        when = result_text.format_time(at, None)
        raise Conflict(f"{name} found less than {_label(present)} on these notes ({when}): --force switches anyway")
    return verdict


def _write_choice(chosen: Settings, encoder: EncoderSettings) -> str:
    """Write the encoder into the settings file of the vault, and return the path of the file."""
    from syncd.indexes.build_inputs import from_table
    from syncd.installation.encoder_choice import write_first_encoder
    from syncd.installation.vault_setup import ensure_settings_file

    named = flags().get("config") or os.environ.get("MEMEX_CONFIG")
    file, _ = ensure_settings_file(chosen, named, os.environ)
    write_first_encoder(file, _table(encoder), lambda table: from_table(table) == encoder)
    return str(file)


def _choose(name: str, options: Mapping[str, Any]) -> EncoderSettings:
    from index.encoders.model_presets import ModelOptions, choose_encoder

    return choose_encoder(name, ModelOptions(**options))


def _present_encoder(chosen: Settings) -> EncoderSettings:
    """Return the first encoder of the settings; unlike `Settings.embed`, this does not import numpy."""
    from index.encoders.settings import BundledSettings

    encoder: EncoderSettings = (*chosen.embed_section.encoders, BundledSettings())[0]
    return encoder


def _table(encoder: EncoderSettings) -> dict[str, Any]:
    """Return an encoder's settings as the settings file has them: without defaults and secrets."""
    from syncd.indexes.build_inputs import to_table

    usual = {field.name: field.default for field in fields(encoder) if field.default is not MISSING}
    return {name: value for name, value in to_table(encoder).items() if name not in usual or usual[name] != value}


def _label(encoder: EncoderSettings) -> str:
    from index.encoders.model_presets import find_preset
    from index.encoders.settings import model_name

    preset = find_preset(encoder)
    return preset.name if preset else model_name(encoder)


def _list_models(chosen: Settings) -> Iterator[dict[str, Any]]:
    """Yield the presets, and first the model in use if it is none of them."""
    from index.encoders.model_presets import PRESETS, find_preset
    from index.encoders.settings import model_name

    encoder = _present_encoder(chosen)
    in_use = find_preset(encoder)
    if in_use is None:
        name = model_name(encoder)
        unknown = dict.fromkeys(("dimensions", "languages", "parameters_m", "licence"))
        yield {"name": name, "model": name, "in_use": True} | unknown | _prompts(encoder)
    for preset in PRESETS:
        yield {
            "name": preset.name,
            "model": getattr(preset.encoder, "model", model_name(preset.encoder)),
            "in_use": preset is in_use,
            "dimensions": preset.dimensions,
            "languages": preset.languages,
            "parameters_m": preset.parameters,
            "licence": preset.licence,
        } | _prompts(preset.encoder)


def _prompts(encoder: EncoderSettings) -> dict[str, str | None]:
    return {name: getattr(encoder, name, "") for name in PROMPTS}


def _format_models(rows: list[dict[str, Any]]) -> str:
    cells = [
        (
            "*" if row["in_use"] else "",
            row["name"],
            *(row[name] or "?" for name in ("dimensions", "languages", "licence")),
            f"{row['parameters_m']:g} million" if row["parameters_m"] else "?",
            *(json.dumps(row[name], ensure_ascii=False) if row[name] else "" for name in PROMPTS),
        )
        for row in rows
    ]
    head = ("", "name", "dimensions", "languages", "licence", "parameters", "query prompt", "passage prompt")
    return "\n".join(
        [
            result_text.table(cells, head, color=has_color()),
            "",
            "Also: ollama:NAME, a folder or a name on the hub, or NAME with --base-url URL. To measure one: memex model try NAME",
        ]
    )
