"""Read the settings from one TOML file, the environment and flags, as typed values; report all mistakes at once.

Law, tested: flags override the environment, the environment overrides the file, and the file overrides the defaults."""

from __future__ import annotations

import functools
import os
import tomllib
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from index.errors import InvalidArgument
from syncd.settings.access import AccessSettings, LimitsSettings, ShareSettings
from syncd.settings.automation import (
    ConsolidateSettings,
    ContextSettings,
    GitSettings,
    PromoteSettings,
    ReviewSettings,
    WatchSettings,
)
from syncd.settings.knowledge_base import KbSettings
from syncd.settings.known_vaults import choose_settings_file, is_same_folder
from syncd.settings.logs_and_traces import AuditSettings, LogSettings, TelemetrySettings
from syncd.settings.server_addresses import hosts_objection, origins_objection, url_objection
from syncd.settings.values import Setting, Variants, convert, did_you_mean, setting, settings_of
from syncd.state.folder import default_state_folder, read_named_file, read_vault_path
from syncd.vault.path_rules import objection, patterns_objection

if TYPE_CHECKING:
    from index.encoders.embedder import EmbedSettings

ENCODERS = Variants(
    "index.encoders.settings", {"bundled": "BundledSettings", "local": "LocalSettings", "endpoint": "EndpointSettings"}
)
Toolset = Literal["core", "thoughts", "kb", "memory", "graph"]
TOOLSETS: tuple[str, ...] = get_args(Toolset)
NO_VAULT = "no vault is set: run `memex init VAULT` once, or pass --vault VAULT (or set MEMEX_VAULT)"


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """Holds the section `vault`: the folder of notes."""

    path: Path = setting(None, "The vault: the folder that holds your notes. Also --vault and MEMEX_VAULT.", kind=Path)  # noqa: RUF009 - it is dataclasses.field
    name: str = setting("", "The vault's name in Obsidian, for links that open a note. Empty: the name of the folder.")
    inbox: str = setting(
        "Captures",
        "The folder of the vault that agents read and write; they see nothing else, unless you share it.",
        wrong=objection,
    )
    ignore: tuple[str, ...] = setting(
        (), "Folders and files that are not indexed, as patterns like `Archive/**`.", wrong=patterns_objection
    )
    max_bytes: int = setting(
        5_000_000, "Memex skips notes larger than this many bytes, and lists them as skipped.", least=1_000
    )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Holds the section `server`: the address of the daemon, and the limits of requests."""

    host: str = setting("127.0.0.1", "The address to listen on. Also --host.")
    port: int = setting(8765, "The port to listen on; 0 picks a free one. Also --port.", least=0, most=65_535)
    public_url: str = setting(
        "",
        "The public address of the daemon behind a proxy, if there is one, such as `https://notes.example`.",
        wrong=url_objection,
    )
    allowed_hosts: tuple[str, ...] = setting(
        (), "Further host names that the daemon answers to, such as `notes.example:8765`.", wrong=hosts_objection
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Proxies whose `X-Forwarded-For` header the daemon trusts: addresses or networks, such as `127.0.0.1` or `10.0.0.0/8`.",
    )
    allowed_origins: tuple[str, ...] = setting(
        (),
        "Web origins whose pages may call the daemon, such as `https://app.example`; none by default.",
        wrong=origins_objection,
    )
    max_body: int = setting(4_194_304, "The largest request that the daemon reads, in bytes.", least=1_024)
    head_s: float = setting(5.0, "Seconds within which the headers of a request must arrive.", least=0.1)
    body_s: float = setting(
        10.0, "Seconds within which the body of a request, or each 16 KiB of an uploaded file, must arrive.", least=0.1
    )
    connections: int = setting(256, "The most simultaneous connections; the daemon refuses further ones.", least=1)
    sessions: int = setting(256, "The most open sessions of older MCP clients.", least=1)
    grace_s: float = setting(
        5.0, "Seconds that requests in progress may take to finish when the daemon stops.", least=0
    )


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Holds the section `page`: the page that `memex open` shows in a browser."""

    port: int = setting(
        8766, "The port of the page on 127.0.0.1; 0 picks a free one at each start.", least=0, most=65_535
    )
    always: bool = setting(
        False, "Whether the page keeps running without a browser; otherwise it ends after 30 unused minutes."
    )


@dataclass(frozen=True, slots=True)
class McpSettings:
    """Holds the section `mcp`: how MCP clients see the tools."""

    toolsets: tuple[Toolset, ...] = setting(
        (), "The families of tools that `/mcp` lists, or `core`, the few that most sessions need. Empty: all."
    )
    tool_names: Literal["safe", "dotted"] = setting(
        "safe", "The form of tool names: `dotted` is `memory.save`, `safe` is `memory_save`."
    )


@dataclass(frozen=True, slots=True)
class EmbedSection:
    """Holds the section `embed`: the encoders that turn text into vectors."""

    encoders: tuple[Any, ...] = setting(
        (), "The encoders, in the order in which Memex tries them. Empty: the bundled model.", kind=ENCODERS
    )
    threads: int = setting(0, "Threads for encoding; 0 = depends on the number of cores.", least=0, most=256)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Holds the section `index`: the location of the index, and the size of its passages."""

    uri: str = setting("", "The location of the vectors: empty for the state folder, or `s3://bucket/prefix`.")
    storage_options: Mapping[str, str] = setting(
        {},
        "Options of the storage in index.uri, such as `region`. Each option also has its own environment variable.",
        secret=True,
    )
    chunk_tokens: int | None = setting(
        None,
        "Tokens of a passage, including title and headings; at most what the encoder reads. Unset: 512, or the limit of an "
        "encoder that reads less (the bundled model: 254).",
        least=16,
    )
    chunk_overlap: int | None = setting(
        None,
        "Tokens that neighbouring passages share; at most half a passage. Unset: an eighth of a passage, 64 of 512 (the "
        "bundled model: 31).",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Holds the section `search`: the defaults and limits of searches."""

    mode: Literal["hybrid", "vector", "text"] = setting("hybrid", "The search mode when a call names none.")
    budget: int = setting(
        8_000,
        "Characters of note text in one answer; longer notes are cut to the parts around their matching passages.",
        least=0,
    )
    reranker: str = setting(
        "", "A cross-encoder that improves the order of search results: a folder or a name. Empty: none."
    )
    rerank_pool: int = setting(30, "The most results that the reranker judges for one search.", least=2, most=200)
    rerank_s: float = setting(
        1.0,
        "Seconds that a search waits for the reranker; after that, the order stays as the search has it.",
        least=0.05,
        most=10,
    )
    rerank_languages: tuple[str, ...] = setting(
        ("en",),
        "The languages of the reranker as two-letter codes, or `all`. It does not judge queries and passages in other languages.",
    )
    log: bool = setting(
        False,
        "Whether Memex records each query with the ids of its hits, so that `memex model try` and `memex eval` can use them. "
        "`memex searches` lists and erases them.",
    )


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Holds the section `sync`: how the index follows the vault."""

    quiet_s: float = setting(0.4, "Seconds without further changes after which Memex reads a changed note.", least=0)
    patience_s: float = setting(2.0, "Seconds after which Memex reads a note even if it keeps changing.", least=0)
    listing_s: float = setting(
        600.0, "Seconds between two listings of the whole vault, which find changes that the watcher missed.", least=1
    )
    adopt_s: float = setting(
        3.0,
        "Seconds without changes after which a new note in the inbox gets an id, a new fact a number, and an edit a "
        "new version.",
        least=0,
    )
    removal_share: float = setting(
        0.5,
        "The share of notes whose simultaneous removal waits until Git explains it, ten minutes have passed, or you confirm it.",
        least=0,
        most=1,
    )


@dataclass(frozen=True, slots=True)
class EnrichSettings:
    """Holds the section `enrich`: how a capture gets the summary and tags that its author left out."""

    by: Literal["local", "endpoint", "off"] = setting(
        "local",
        "How summary and tags are made: `local` derives them from the note, `endpoint` asks the model below, `off` makes none.",
    )
    base_url: str = setting("", "A server with OpenAI's chat completions API, such as `http://127.0.0.1:11434/v1`.")
    model: str = setting("", "The name of the model on this server.")
    api_key_env: str = setting("", "The environment variable with the server's key, if it needs one.")
    api_key_file: Path | None = setting(None, "The file with the server's key, if no variable has it.")  # noqa: RUF009 - it is dataclasses.field
    timeout_s: float = setting(
        8.0, "Seconds that a capture waits for the model; after that, summary and tags are added later.", least=0.1
    )
    vocabulary: int = setting(
        100, "The number of most used tags of the workspace that new captures prefer.", least=0, most=1_000
    )
    vault_tags: bool = setting(
        False,
        "Whether new captures also prefer the most used tags of your vault. Agents and the model above then see these tags.",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds all settings, and the origin of each one that is not a default (`name` → origin)."""

    vault: VaultSettings
    state: Path
    server: ServerSettings = field(default_factory=ServerSettings)
    page: PageSettings = field(default_factory=PageSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    embed_section: EmbedSection = field(default_factory=EmbedSection)
    index: IndexSettings = field(default_factory=IndexSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    enrich: EnrichSettings = field(default_factory=EnrichSettings)
    log: LogSettings = field(default_factory=LogSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    kb: KbSettings = field(default_factory=KbSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    share: ShareSettings = field(default_factory=ShareSettings)
    git: GitSettings = field(default_factory=GitSettings)
    promote: PromoteSettings = field(default_factory=PromoteSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)
    consolidate: ConsolidateSettings = field(default_factory=ConsolidateSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def embed(self) -> EmbedSettings:
        """Return the section `embed` in the form that the embedder takes; only this imports numpy."""
        from index.encoders.embedder import EmbedSettings  # noqa: PLC0415 - it takes longer to import than most commands to run

        arguments = {"encoders": self.embed_section.encoders} if self.embed_section.encoders else {}
        return EmbedSettings(threads=self.embed_section.threads, passage=self.index.chunk_tokens or 0, **arguments)


FIELDS = {"embed": "embed_section"}  # sections that have another name in Settings
_DEFAULTS: dict[str, Any] = {part.name: part.default_factory for part in fields(Settings)}
SECTIONS: dict[str, type[Any]] = {
    "vault": VaultSettings,
    **{
        name.removesuffix("_section"): kind
        for name, kind in _DEFAULTS.items()
        if isinstance(kind, type) and is_dataclass(kind)
    },
}
STATE = Setting("state", Path, None, "The folder for index, keys and logs of the vault. Also --state and MEMEX_STATE.")
SHORT = {"MEMEX_VAULT": "vault.path", "MEMEX_STATE": "state"}


@functools.cache
def all_settings() -> dict[str, Setting]:
    """Return every setting by its name, in the order of the documentation."""
    settings = [STATE, *(entry for section, cls in SECTIONS.items() for entry in settings_of(cls, section))]
    return {entry.name: entry for entry in settings}


@dataclass(frozen=True, slots=True)
class GivenValue:
    """Holds a value as it was written, and its origin."""

    value: Any
    origin: str
    text: bool  # whether it is text from the environment or a flag
    folder: Path  # the base of relative paths


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """Holds a named folder, and the origin of the name."""

    path: Path
    origin: str
    in_file: bool  # whether the origin is the settings file


def load(flags: Mapping[str, Any], environ: Mapping[str, str], *, cwd: Path | None = None) -> Settings:
    """Load the settings in force. `flags`: setting name -> value, which may state its origin, `config` -> path of the file; None = not given.

    Raises one InvalidArgument that lists every mistake."""
    cwd = cwd or Path.cwd()
    mistakes: list[str] = []
    file = choose_settings_file(flags, environ, cwd).file
    written = _read_file(file, mistakes, must=bool(flags.get("config") or environ.get("MEMEX_CONFIG")))
    sources = [written, _read_environment(environ, written, cwd, mistakes), _read_flags(flags, cwd)]  # a later one wins
    typed_sources = [_convert_source(source, mistakes) for source in sources]
    if mistakes:
        count = "1 setting needs" if len(mistakes) == 1 else f"{len(mistakes)} settings need"
        raise InvalidArgument("\n  ".join([f"{count} attention:", *mistakes]), mistakes=mistakes)
    values = {name: value for source in typed_sources for name, value in source.items()}
    origins = {name: entry.origin for source in sources for name, entry in source.items()}
    state, vault = (
        NamedFolder(values[name], origins[name], not any(name in source for source in sources[1:]))
        if name in values
        else None
        for name in ("state", "vault.path")
    )
    in_file = typed_sources[0].get("vault.path")
    if vault and in_file and is_same_folder(vault.path, in_file):
        # Another name for the same folder; the default state folder depends on the name in the file.
        vault = replace(vault, path=in_file)
    state, vault = resolve_state_and_vault(state, vault, in_file, read_vault_path)
    if vault is None:
        raise InvalidArgument(NO_VAULT)
    values |= {"vault.path": vault.path, "state": state.path if state else default_state_folder(vault.path, environ)}
    origins["vault.path"] = vault.origin
    sections = {
        FIELDS.get(section, section): cls(
            **{name.split(".", 1)[1]: value for name, value in values.items() if name.startswith(f"{section}.")}
        )
        for section, cls in SECTIONS.items()
    }
    _check_chunk_size(sections["index"], sections[FIELDS["embed"]].encoders, origins)
    return Settings(state=values["state"], file=file if file.exists() else None, origins=origins, **sections)


def _check_chunk_size(index: IndexSettings, encoders: tuple[Any, ...], origins: Mapping[str, str]) -> None:
    """Raise InvalidArgument if a passage has more tokens than a known encoder reads; other encoders are checked once loaded."""
    if index.chunk_tokens is None and index.chunk_overlap is None:
        return
    from index.encoders import settings as encoder  # noqa: PLC0415 - as in `Settings.embed`
    from index.text.chunking import MOST  # noqa: PLC0415 - likewise

    windows = map(encoder.known_window, encoders or (encoder.BundledSettings(),))
    least, tokens = min(filter(None, windows), default=None), index.chunk_tokens
    if least is not None and tokens is not None and tokens > least:
        raise InvalidArgument(
            f"index.chunk_tokens is {tokens} ({origins['index.chunk_tokens']}), but the encoder reads only {least} tokens: set it to "
            f"{least} or less, or leave it unset"
        )
    passage = tokens or min(least or MOST, MOST)
    if index.chunk_overlap is not None and index.chunk_overlap > passage // 2:
        raise InvalidArgument(
            f"index.chunk_overlap is {index.chunk_overlap} ({origins['index.chunk_overlap']}), more than half of a passage of "
            f"{passage} tokens: set it to {passage // 2} or less, or leave it unset"
        )


def resolve_state_and_vault(
    state: NamedFolder | None,
    vault: NamedFolder | None,
    vault_in_file: Path | None,
    remembered: Callable[[Path], Path | None],
) -> tuple[NamedFolder | None, NamedFolder | None]:
    """Return the state folder and the vault in force among the named ones; `remembered` gives the vault of a state folder.

    The state folder of the settings file belongs to the vault of that file, and is not used for another vault. If a flag
    or a variable names a state folder but no vault, its vault is used."""
    if state and state.in_file and vault and vault_in_file not in (None, vault.path):
        state = None
    if state and (vault is None or (vault.in_file and not state.in_file)) and (own_vault := remembered(state.path)):
        vault = NamedFolder(own_vault, str(state.path), in_file=False)
    return state, vault


def _read_file(file: Path, mistakes: list[str], *, must: bool) -> dict[str, GivenValue]:
    try:
        raw = read_named_file(file)
    except FileNotFoundError:
        mistakes += [f"the settings file {file} does not exist"] if must else []
        return {}
    except (OSError, ValueError) as error:  # ValueError: no file can have this path
        mistakes.append(f"the settings file {file} can't be read: {getattr(error, 'strerror', error)}")
        return {}
    try:
        data = tomllib.loads(raw.decode())
    except UnicodeDecodeError:
        mistakes.append(f"the settings file {file} is not UTF-8 text: save it as UTF-8")
        return {}
    except tomllib.TOMLDecodeError as error:
        reason = "it begins with a byte order mark: save it as UTF-8 without one" if raw.startswith(BOM_UTF8) else error
        mistakes.append(f"the settings file {file} is not TOML: {reason}")
        return {}
    except (ValueError, RecursionError):
        mistakes.append(f"the settings file {file} has a number that is too long, or values that are nested too deep")
        return {}
    source = {}
    for key, value in data.items():
        entries = {f"{key}.{name}": entry for name, entry in value.items()} if isinstance(value, dict) else {key: value}
        for name, entry in entries.items():
            if name in all_settings():
                source[name] = GivenValue(entry, str(file), False, file.parent)
            else:
                mistakes.append(f"{name} in {file} is not a setting{did_you_mean(name, all_settings())}")
        if isinstance(value, dict) and not value and key not in SECTIONS:
            mistakes.append(f"[{key}] in {file} is not a section{did_you_mean(key, SECTIONS)}")
    return source


def _read_environment(
    environ: Mapping[str, str], before: Mapping[str, GivenValue], cwd: Path, mistakes: list[str]
) -> dict[str, GivenValue]:
    source: dict[str, GivenValue] = {}
    for variable, value in sorted(environ.items()):
        if variable in SHORT and value:
            source.setdefault(SHORT[variable], GivenValue(value, variable, True, cwd))
        if not variable.startswith("MEMEX_") or "__" not in variable:
            continue
        name, _, entry = variable.removeprefix("MEMEX_").lower().replace("__", ".").partition("storage_options.")
        if entry and name == "index.":  # MEMEX_INDEX__STORAGE_OPTIONS__REGION: one entry of the table
            name = "index.storage_options"
            table = source.get(name, before.get(name))
            with suppress(ValueError):  # `_convert_source` reports a table that is not one
                earlier = convert(all_settings()[name], table.value, text=table.text) if table else {}
                source[name] = GivenValue({**earlier, entry: value}, variable, True, cwd)
        elif (name := variable.removeprefix("MEMEX_").lower().replace("__", ".")) in all_settings():
            source[name] = GivenValue(value, variable, True, cwd)
        else:
            hint = did_you_mean(name, all_settings()).replace(".", "__").replace(" mean ", " mean MEMEX_")
            mistakes.append(f"{variable} is not a setting{hint.upper().replace('; DID YOU MEAN', '; did you mean')}")
    return source


def _read_flags(flags: Mapping[str, Any], cwd: Path) -> dict[str, GivenValue]:
    return {
        name: value
        if isinstance(value, GivenValue)
        else GivenValue(value, f"--{name.rsplit('.', 1)[-1] if name != 'vault.path' else 'vault'}", True, cwd)
        for name, value in flags.items()
        if value is not None and name != "config"
    }


def _convert_source(source: Mapping[str, GivenValue], mistakes: list[str]) -> dict[str, Any]:
    values = {}
    for name, entry in source.items():
        try:
            values[name] = _expand_path(convert(all_settings()[name], entry.value, text=entry.text), entry.folder)
        except ValueError as error:
            mistakes.append(f"{name} = {_format_value(name, entry.value)} in {entry.origin}: {error}")
    return values


def _expand_path(value: Any, folder: Path) -> Any:
    if not isinstance(value, Path):
        return value
    try:
        return Path(os.path.abspath(folder / value.expanduser()))  # noqa: PTH100 - resolve() would follow links
    except RuntimeError:
        raise ValueError("begins with the home folder of an unknown user") from None


def _format_value(name: str, value: Any) -> str:
    if all_settings()[name].secret:
        return "…"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
