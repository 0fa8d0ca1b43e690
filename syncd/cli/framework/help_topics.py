"""List the topics of help that belong to no single command: groups of commands, arguments, exit codes, environment, files.

Law, tested: every command is in one group, and every argument has an explanation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {  # commands, grouped by purpose
    "Every day": (
        "search",
        "capture",
        "get",
        "recent",
        "updatenote",
        "delete",
        "log",
        "undo",
        "context",
        "status",
        "open",
    ),
    "Review": ("review", "promote", "unpromote", "unarchive", "consolidate", "enrich"),
    "Graph": ("graph", "node", "relation", "perspective", "import", "export"),
    "Files": ("addfile",),
    "Git": ("commit", "sync", "hook"),
    "Clients and keys": ("connect", "key", "workspace", "share", "mcp"),
    "Care": (
        *("init", "vaults", "use", "serve", "stop", "service", "demo", "index", "doctor", "job", "audit"),
        *("model", "eval", "searches"),
        *("backup", "restore", "config", "completion", "help"),
    ),
}
_CAPTURE: Final = "a capture: its id (the first 4 characters are enough), its path or its title"
_ARGUMENTS: Final[Mapping[str, str]] = {  # by metavar, or by a command or group and the metavar
    "ID|PATH": _CAPTURE,
    "log ID|PATH": "a note: its id (the first 4 characters are enough), its path or its title",
    "undo ID|PATH|CALL": "a note, or the id of one change, as `memex log` shows it",
    "unpromote ID|PATH": "a promoted note: its id (the first 4 characters are enough), its path or its title",
    "unarchive ID|PATH": "an archived capture: its id, path or title; `memex unarchive --list` lists them",
    "ID": "the id of a queued job; the first 4 characters are enough",
    "VAULT": "the folder of your notes",
    "VAULT|NAME": "a folder of notes, or the name that `memex vaults` shows",
    "QUERY": "what to look for, in any words",
    "CONTENT": "the text; without it, Memex reads stdin",
    "TEXT": "the text",
    "updatenote TEXT": "the new text; `-` reads stdin; without text and options, your editor opens",
    "PATH": "a file, a folder, a pattern in quotes, or `-` for stdin",
    "FOLDER|NOTE": "a folder of the vault, such as `References`, or a note, such as `Notes/Plan.md`",
    "FILE": "a file",
    "backup FILE": "the archive to write; default: memex-VAULT-TIME.tar.gz in the current folder",
    "restore FILE": "an archive that `memex backup` wrote",
    "import FILE": "a file of memory entries; `-` reads stdin",
    "audit verify FILE": "an exported log; default: the log of this vault",
    "workspace NAME": "the name of a workspace",
    "perspective NAME": "the name of a perspective",
    "key create NAME": "a name for the key, such as the agent's name",
    "key NAME": "the name of a key, or its id",
    "node NAME": "the name of an entity",
    "job NAME": "the name of a job; `memex job list` lists them",
    "ENTRY": "the number of an entry, as `memex audit` prints it",
    "VIEW": "the view to begin with, such as search or review; default: home",
    "model try NAME": "a name that `memex model` lists, `ollama:NAME`, a folder, or a name on the hub or the server",
    "model use NAME": "a name that `memex model` lists, `ollama:NAME`, a folder, or a name on the hub or the server",
    "NAME": "the name of an entity",
    "NEW_NAME": "the new name of the entity",
    "PROMPT": "the text that Memex puts before each fact when it embeds the fact",
    "TAG": "a tag; without any, the entity has none",
    "ORDINAL": "the number of a fact; `memex node show` shows it",
    "FROM": "the entity where the relation starts",
    "TYPE": "the type of the relation, such as works_at",
    "TO": "the entity where the relation ends",
    "NEW_TYPE": "the new type of the relation",
    "NAME [OTHER": "an entity; with a second one, only the relations between the two",
    "bash|zsh|fish": "your shell",
    "CLIENT": "claude-code, claude-desktop, codex, cursor, vscode, gemini, opencode or other",
    "TOPIC": "a command, `exit-codes`, `environment` or `files`",
}


def explain_argument(path: str, label: str) -> str:
    """Return the explanation of a command's argument; `label` is the argument as the usage line shows it."""
    word = label.removesuffix("...").strip("[]{}").removesuffix("...").rstrip("]")
    keys = (f"{path} {word}", f"{path.partition(' ')[0]} {word}", word)
    return next((_ARGUMENTS[key] for key in keys if key in _ARGUMENTS), "")


EXIT_CODES = (
    ("0", "success"),
    ("1", "an internal error in Memex; MEMEX_DEBUG=1 prints the traceback"),
    ("2", "an argument, an option or a setting is invalid"),
    ("3", "not allowed"),
    ("4", "not found: no such note, workspace, key or vault"),
    (
        "5",
        "conflict: the name is taken, the file changed, or another process holds it; or some of several notes failed",
    ),
    ("6", "a limit is exceeded: too large, or too many requests"),
    ("7", "the daemon, the model, the disk or Git failed and nothing was changed, or the result could not be printed"),
    ("130", "interrupted"),
    ("141", "the program that reads the output has ended, such as head"),
)
SERVE_EXIT_CODES = (
    ("0", "stopped on request"),
    ("64", "an argument or an option is invalid"),
    ("65", "a file that Memex needs is damaged; run memex doctor"),
    ("69", "the vault is missing, another process holds it, or the port is taken"),
    ("77", "not allowed"),
    ("78", "a setting is invalid"),
    ("130", "interrupted"),
)
OWN_EXIT_CODES = {
    "serve": SERVE_EXIT_CODES,
    "demo": SERVE_EXIT_CODES,
    "doctor": (
        ("0", "no problem found; there may be advice"),
        ("7", "a problem was found"),
        ("2", "an argument or an option is invalid"),
    ),
    "status": (
        ("0", "the status was read, good or bad"),
        ("7", "a daemon is starting or hangs; or, with --exit-code, something is wrong"),
        ("2, 4", "an option or a setting is invalid; the vault is not set up"),
    ),
}
ENVIRONMENT = (
    ("MEMEX_VAULT", "the folder of notes, as --vault"),
    ("MEMEX_STATE", "the state folder, as --state"),
    ("MEMEX_CONFIG", "the settings file, as --config"),
    ("MEMEX_SECTION__KEY", "any setting, such as MEMEX_SERVER__PORT; memex config lists them"),
    ("MEMEX_KEY", "the key that memex mcp uses"),
    (
        "KB_MCP_API_KEY, KB_API_KEY",
        "further keys that the daemon accepts, for MCP and for REST; 16 characters or more each",
    ),
    ("MEMEX_DEBUG", "1 prints the traceback of an internal error"),
    ("NO_COLOR", "no colours, even on a terminal"),
)
FILES = (
    (
        "~/.config/memex/config.toml",
        "the settings of the first vault; other vaults have their own files in this folder",
    ),
    ("~/.config/memex/chosen-vault", "the vault that `memex use` chose"),
    ("~/.local/state/memex/VAULT-*/", "the state folder: keys, ledger, index; the index can always be rebuilt"),
    ("VAULT/Captures/", "the inbox: captures of agents and your own"),
)
