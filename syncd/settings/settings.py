"""Read the settings from one TOML file, the environment and flags, as typed values; report all mistakes at once.

Law, tested: flags override the environment, the environment overrides the file, and the file overrides the defaults."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from index.errors import InvalidArgument
from syncd.settings.access import AccessSettings, LimitsSettings
from syncd.settings.automation import ConsolidateSettings, GitSettings, PromoteSettings, ReviewSettings
from syncd.settings.knowledge_base import KbSettings
from syncd.settings.known_vaults import choose_settings_file, is_same_folder
from syncd.settings.logs_and_traces import AuditSettings, LogSettings, TelemetrySettings
from syncd.settings.values import Setting, Variants, convert, did_you_mean, setting, settings_of
from syncd.state.folder import default_state_folder, read_vault_path

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
    """The folder of notes."""

    path: Path = setting(None, "The vault: the folder that holds your notes. Also --vault and MEMEX_VAULT.", kind=Path)  # noqa: RUF009 - it is dataclasses.field
    name: str = setting(
        "", "What Obsidian calls the vault, in the links that open a note; the folder's name when empty."
    )
    inbox: str = setting("Captures", "The folder of the vault that agents write to; they see nothing else.")
    ignore: tuple[str, ...] = setting((), "Folders and files that are not indexed, as patterns like `Archive/**`.")
    max_bytes: int = setting(
        5_000_000, "Notes larger than this many bytes are skipped, and listed as skipped.", least=1_000
    )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where agents reach the daemon, and what it takes from them."""

    host: str = setting("127.0.0.1", "The address to listen on. Also --host.")
    port: int = setting(8765, "The port to listen on; 0 picks a free one. Also --port.", least=0, most=65_535)
    public_url: str = setting("", "The address under which a proxy shows the daemon to others, if there is one.")
    allowed_hosts: tuple[str, ...] = setting(
        (), "Host names to answer to besides the address listened on, as `notes.example:8765`."
    )
    trusted_proxies: tuple[str, ...] = setting(
        (), "Addresses or networks of proxies whose `X-Forwarded-For` is believed, as `127.0.0.1` or `10.0.0.0/8`."
    )
    allowed_origins: tuple[str, ...] = setting((), "Web origins whose pages may call the daemon; none by default.")
    max_body: int = setting(4_194_304, "The largest request that is read, in bytes.", least=1_024)
    head_s: float = setting(5.0, "Seconds in which a request's head must arrive.", least=0.1)
    body_s: float = setting(10.0, "Seconds in which a request's body must arrive, or each 16 KiB of a file.", least=0.1)
    connections: int = setting(256, "Connections that are served at once; more are turned away.", least=1)
    sessions: int = setting(256, "Sessions that older MCP clients may hold open at once.", least=1)
    grace_s: float = setting(5.0, "Seconds that requests under way get to finish when the daemon stops.", least=0)


@dataclass(frozen=True, slots=True)
class McpSettings:
    """How the tools look to MCP clients."""

    toolsets: tuple[Toolset, ...] = setting(
        (), "The families of tools that `/mcp` lists, or `core`, the few that most sessions need; all when empty."
    )
    tool_names: Literal["safe", "dotted"] = setting(
        "safe", "`dotted` lists `memory.save` where `safe` lists `memory_save`."
    )


@dataclass(frozen=True, slots=True)
class EmbedSection:
    """What turns text into vectors."""

    encoders: tuple[Any, ...] = setting(
        (), "Encoders in the order to try them; the bundled model when there is none.", variants=ENCODERS
    )
    threads: int = setting(0, "Threads for encoding; 0 picks by the number of cores.", least=0, most=256)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Where the index lies, and the size of its passages."""

    uri: str = setting("", "Where the vectors lie: empty for the state folder, or `s3://bucket/prefix`.")
    storage_options: Mapping[str, str] = setting(
        {}, "Options of that storage, such as `region`; each has a variable of its own.", secret=True
    )
    chunk_tokens: int | None = setting(
        None,
        "Tokens of a passage, with its title and headings; not more than the encoder reads. Unset: 512, and with one that "
        "reads less as many as it does (the bundled model: 254).",
        least=16,
    )
    chunk_overlap: int | None = setting(
        None,
        "Tokens that neighbouring passages share, at most half of one. Unset: 64 of 512, and of less an eighth (the bundled "
        "model: 31).",
        least=0,
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a search answers with."""

    mode: Literal["hybrid", "vector", "text"] = setting("hybrid", "How to search when a call does not say.")
    budget: int = setting(
        8_000, "Characters of whole documents in one answer; beyond it they are cut around their passages.", least=0
    )
    reranker: str = setting(
        "", "A cross-encoder that puts what was found into a better order: its folder, or its name; none when empty."
    )
    rerank_pool: int = setting(30, "The most documents that it reads for one search.", least=2, most=200)
    rerank_s: float = setting(
        1.0, "Seconds that a search waits for it; then the order is that of the search.", least=0.05, most=10
    )


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """How the index follows the vault."""

    quiet_s: float = setting(0.4, "Seconds without a further change after which a note is read.", least=0)
    patience_s: float = setting(2.0, "Seconds after which a note that keeps changing is read all the same.", least=0)
    listing_s: float = setting(
        600.0, "Seconds between two listings of the whole vault, for what the watcher missed.", least=1
    )
    adopt_s: float = setting(
        3.0,
        "Seconds of quiet after which a note dropped into the inbox gets its id, a new observation its ordinal, "
        "and an edit its version.",
        least=0,
    )
    removal_share: float = setting(0.5, "Share of the notes whose removal at once must be confirmed.", least=0, most=1)


@dataclass(frozen=True, slots=True)
class EnrichSettings:
    """Who gives a capture its summary and tags, when its writer gives none."""

    by: Literal["local", "endpoint", "off"] = setting(
        "local", "Who finds summary and tags: `local` reads the note itself, `endpoint` asks the model below."
    )
    base_url: str = setting("", "A server that speaks OpenAI's chat completions, as `http://127.0.0.1:11434/v1`.")
    model: str = setting("", "The model that it is asked for.")
    api_key_env: str = setting("", "The environment variable that holds its key, if it needs one.")
    api_key_file: Path | None = setting(None, "The file that holds its key, if no variable does.")  # noqa: RUF009 - it is dataclasses.field
    timeout_s: float = setting(8.0, "Seconds that a capture waits for it; then summary and tags come later.", least=0.1)
    vocabulary: int = setting(100, "Most used tags of the workspace that new captures prefer.", least=0, most=1_000)
    vault_tags: bool = setting(
        False,
        "Whether new captures also prefer the most used tags of your vault. Agents, and the model above, then see those tags.",
    )


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How changes of the vault are noticed."""

    mode: Literal["auto", "events", "poll"] = setting(
        "auto", "`events` trusts the system to tell of changes, `poll` only lists; `auto` does both where it must."
    )
    poll_s: float = setting(15.0, "Seconds between two listings where events can't be had or trusted.", least=0.1)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, and where each of those that were set was set (`name` -> origin)."""

    vault: VaultSettings
    state: Path
    server: ServerSettings = field(default_factory=ServerSettings)
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
    git: GitSettings = field(default_factory=GitSettings)
    promote: PromoteSettings = field(default_factory=PromoteSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)
    consolidate: ConsolidateSettings = field(default_factory=ConsolidateSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    file: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def embed(self) -> EmbedSettings:
        """The section `embed` as the embedder takes it; numpy is imported only for this."""
        from index.encoders.embedder import EmbedSettings  # noqa: PLC0415 - it takes longer to import than most commands to run

        arguments = {"encoders": self.embed_section.encoders} if self.embed_section.encoders else {}
        return EmbedSettings(threads=self.embed_section.threads, passage=self.index.chunk_tokens or 0, **arguments)


SECTIONS: dict[str, type[Any]] = {
    "vault": VaultSettings,
    "server": ServerSettings,
    "mcp": McpSettings,
    "embed": EmbedSection,
    "index": IndexSettings,
    "search": SearchSettings,
    "sync": SyncSettings,
    "enrich": EnrichSettings,
    "log": LogSettings,
    "audit": AuditSettings,
    "telemetry": TelemetrySettings,
    "limits": LimitsSettings,
    "kb": KbSettings,
    "access": AccessSettings,
    "git": GitSettings,
    "promote": PromoteSettings,
    "review": ReviewSettings,
    "consolidate": ConsolidateSettings,
    "watch": WatchSettings,
}
FIELDS = {"embed": "embed_section"}  # sections that have another name in Settings
STATE = Setting("state", Path, None, "The folder for index, keys and logs of the vault. Also --state and MEMEX_STATE.")
SHORT = {"MEMEX_VAULT": "vault.path", "MEMEX_STATE": "state"}


@functools.cache
def all_settings() -> dict[str, Setting]:
    """Every setting by its name, in the order in which people read them."""
    settings = [STATE, *(entry for section, cls in SECTIONS.items() for entry in settings_of(cls, section))]
    return {entry.name: entry for entry in settings}


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value as somebody wrote it, and where."""

    value: Any
    origin: str
    text: bool  # from the environment or a flag: text that stands for a value
    folder: Path  # what a relative path starts from


@dataclass(frozen=True, slots=True)
class NamedFolder:
    """A folder that somebody names, and where."""

    path: Path
    origin: str
    in_file: bool  # whether that is the settings file


def load(flags: Mapping[str, Any], environ: Mapping[str, str], *, cwd: Path | None = None) -> Settings:
    """The settings in force. `flags`: setting name -> value, `config` -> path of the file; None = not given.

    Raises one InvalidArgument that lists every mistake."""
    cwd = cwd or Path.cwd()
    mistakes: list[str] = []
    file = choose_settings_file(flags, environ, cwd).file
    written = _read_file(file, mistakes, must=bool(flags.get("config") or environ.get("MEMEX_CONFIG")))
    sources = [written, _read_environment(environ, written, cwd, mistakes), _read_flags(flags, cwd)]  # a later one wins
    typed_sources = [_convert_source(source, mistakes) for source in sources]
    if mistakes:
        count = "1 setting needs" if len(mistakes) == 1 else f"{len(mistakes)} settings need"
        raise InvalidArgument("\n  ".join([f"{count} mending:", *mistakes]), mistakes=mistakes)
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
        vault = replace(vault, path=in_file)  # by another name; the state folder goes by the name in the file
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
    """Raises InvalidArgument for passages of more tokens than an encoder is known to read; others are asked once loaded."""
    if index.chunk_tokens is None and index.chunk_overlap is None:
        return
    from index.encoders import settings as encoder  # noqa: PLC0415 - as in `Settings.embed`
    from index.text.chunking import MOST  # noqa: PLC0415 - likewise

    windows = map(encoder.known_window, encoders or (encoder.BundledSettings(),))
    least, tokens = min(filter(None, windows), default=None), index.chunk_tokens
    if least is not None and tokens is not None and tokens > least:
        raise InvalidArgument(
            f"index.chunk_tokens is {tokens} ({origins['index.chunk_tokens']}), and the encoder reads {least} tokens: set it to "
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
    """The state folder and the vault in force, of those that are named; `remembered` gives the vault of a state folder.

    The state folder of the settings file belongs to the vault of that file, and is not used for another. A state folder
    that a flag or a variable names brings its own vault along, unless a flag or a variable names a vault too."""
    if state and state.in_file and vault and vault_in_file not in (None, vault.path):
        state = None
    if state and (vault is None or (vault.in_file and not state.in_file)) and (own_vault := remembered(state.path)):
        vault = NamedFolder(own_vault, str(state.path), in_file=False)
    return state, vault


def _read_file(file: Path, mistakes: list[str], *, must: bool) -> dict[str, GivenValue]:
    try:
        with file.open("rb") as stream:
            data = tomllib.load(stream)
    except FileNotFoundError:
        if must:
            mistakes.append(f"the settings file {file} does not exist")
        return {}
    except OSError as error:
        mistakes.append(f"the settings file {file} can't be read: {error.strerror}")
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        mistakes.append(f"the settings file {file} is not TOML: {error}")
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
            source[name] = GivenValue({**(table.value if table else {}), entry: value}, variable, True, cwd)
        elif (name := variable.removeprefix("MEMEX_").lower().replace("__", ".")) in all_settings():
            source[name] = GivenValue(value, variable, True, cwd)
        else:
            hint = did_you_mean(name, all_settings()).replace(".", "__").replace(" mean ", " mean MEMEX_")
            mistakes.append(f"{variable} is not a setting{hint.upper().replace('; DID YOU MEAN', '; did you mean')}")
    return source


def _read_flags(flags: Mapping[str, Any], cwd: Path) -> dict[str, GivenValue]:
    return {
        name: GivenValue(value, f"--{name.rsplit('.', 1)[-1] if name != 'vault.path' else 'vault'}", True, cwd)
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
        raise ValueError("has a home folder that is not known") from None


def _format_value(name: str, value: Any) -> str:
    if all_settings()[name].secret:
        return "…"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
