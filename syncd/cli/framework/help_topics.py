"""List the topics of help that belong to no single command: groups of commands, arguments, exit codes, environment, files.

Law, tested: every command is in one group, and every argument has an explanation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {  # of commands, by what a person does
    "Every day": ("search", "capture", "get", "recent", "updatenote", "delete", "log", "undo", "status"),
    "Review": ("review", "promote", "unpromote", "unarchive", "consolidate", "enrich"),
    "Graph": ("graph", "node", "relation", "perspective", "import", "export"),
    "Files": ("addfile",),
    "Git": ("commit", "sync", "hook"),
    "Clients and keys": ("connect", "key", "workspace", "mcp"),
    "Care": (
        *("init", "vaults", "use", "serve", "stop", "service", "demo", "index", "doctor", "job", "audit"),
        *("backup", "restore", "config", "completion", "help"),
    ),
}
_CAPTURE: Final = "a capture: its id (the first 4 characters are enough), its path or its title"
_ARGUMENTS: Final[Mapping[str, str]] = {  # by metavar, or by a command or group and the metavar
    "ID|PATH": _CAPTURE,
    "log ID|PATH": "a note: its id (the first 4 characters are enough), its path or its title",
    "undo ID|PATH|CALL": "a note, or the id of one change, as `memex log` shows it",
    "unpromote ID|PATH": "a promoted note: its id (the first 4 characters are enough), its path or its title",
    "unarchive ID|PATH": "a capture in the archive, as `memex unarchive --list` names it",
    "ID": "the id of a queued job; the first 4 characters are enough",
    "VAULT": "the folder of your notes",
    "VAULT|NAME": "a folder of notes, or the name that `memex vaults` shows",
    "QUERY": "what to look for, in any words",
    "CONTENT": "the text; without it, what stdin gives",
    "TEXT": "the text",
    "updatenote TEXT": "the new text; `-` = what stdin gives; without it and without options, your editor opens",
    "PATH": "a file, a folder, a pattern in quotes, or `-` for what stdin gives",
    "FILE": "a file",
    "backup FILE": "where the backup is written; a name with the time in this folder unless you say",
    "restore FILE": "the backup",
    "import FILE": "a file of memory entries; `-` = what stdin gives",
    "audit verify FILE": "an exported log; the log of this vault unless you say",
    "workspace NAME": "the name of a workspace",
    "perspective NAME": "the name of a perspective",
    "key NAME": "the name of a key, or its id",
    "node NAME": "the name of an entity",
    "job NAME": "the name of a job, as `memex job list` shows it",
    "NAME": "the name of an entity",
    "NEW_NAME": "the name that the entity gets",
    "PROMPT": "the text that is put before each fact when it is embedded",
    "TAG": "a tag; without any, the entity has none",
    "ORDINAL": "the number of a fact, as `memex node show` has it",
    "FROM": "the entity that the relation leads from",
    "TYPE": "what the relation is called",
    "TO": "the entity that the relation leads to",
    "NEW_TYPE": "what the relation is called from now on",
    "NAME [OTHER": "an entity; with another one, only what lies between the two",
    "bash|zsh|fish": "your shell",
    "TOPIC": "a command, `exit-codes`, `environment` or `files`",
}


def explain_argument(path: str, label: str) -> str:
    """What an argument of a command stands for; `label` as its usage has it."""
    word = label.removesuffix("...").strip("[]{}").removesuffix("...").rstrip("]")
    keys = (f"{path} {word}", f"{path.partition(' ')[0]} {word}", word)
    return next((_ARGUMENTS[key] for key in keys if key in _ARGUMENTS), "")


EXIT_CODES = (
    ("0", "it is done"),
    ("1", "Memex has a defect; MEMEX_DEBUG=1 shows where"),
    ("2", "an argument, an option or a setting is wrong"),
    ("3", "not allowed"),
    ("4", "no such note, workspace, key or vault"),
    ("5", "conflict: the name is taken, the file changed, or another process holds it; some of several failed"),
    ("6", "too large, or too much"),
    ("7", "the daemon, the model, the disk or Git failed, and nothing was changed"),
    ("130", "interrupted"),
)
SERVE_EXIT_CODES = (
    ("0", "stopped as it was asked to"),
    ("64", "an argument or an option is wrong"),
    ("65", "a file that Memex needs is damaged: memex doctor"),
    ("69", "the vault is not there, another process holds it, or the port is taken"),
    ("77", "not allowed"),
    ("78", "a setting is wrong"),
    ("130", "interrupted"),
)
OWN_EXIT_CODES = {
    "serve": SERVE_EXIT_CODES,
    "demo": SERVE_EXIT_CODES,
    "doctor": (
        ("0", "nothing is wrong; advice at most"),
        ("7", "something is wrong"),
        ("2", "an argument or an option is wrong"),
    ),
    "status": (
        ("0", "the status could be read, whatever it is"),
        ("7", "a daemon starts or hangs; or, with --exit-code, not all is well"),
        ("2, 4", "an option or a setting is wrong; the vault is not set up"),
    ),
}
ENVIRONMENT = (
    ("MEMEX_VAULT", "the folder of notes, as --vault"),
    ("MEMEX_STATE", "the state folder, as --state"),
    ("MEMEX_CONFIG", "the settings file, as --config"),
    ("MEMEX_SECTION__KEY", "any setting, such as MEMEX_SERVER__PORT; memex config lists them"),
    ("MEMEX_KEY", "the key that memex mcp uses"),
    ("KB_MCP_API_KEY, KB_API_KEY", "keys that are accepted for MCP and for REST, each of 16 characters or more"),
    ("MEMEX_DEBUG", "1 shows where a defect of Memex showed"),
    ("NO_COLOR", "no colours, also on a terminal"),
)
FILES = (
    ("~/.config/memex/config.toml", "the settings; those of further vaults lie beside it"),
    ("~/.config/memex/chosen-vault", "what `memex use` chose"),
    ("~/.local/state/memex/VAULT-*/", "the state: keys, ledger, index; the index may be deleted at any time"),
    ("VAULT/Captures/", "the inbox: what agents wrote"),
)
