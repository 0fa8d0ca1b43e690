"""Compose the help text of each command: its arguments, two examples, the rest of its text, then its options.

The manual page is made of these words too. Law, tested: every command has examples, and the program takes every
example; every argument is explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from syncd.cli.framework.help_topics import ENVIRONMENT, EXIT_CODES, FILES, GROUPS, OWN_EXIT_CODES, explain_argument

Example = tuple[str, str]  # a line, and what it does

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "": (
        ("memex init ~/MyVault", "set a vault up"),
        ("memex serve", "run the daemon"),
        ("memex search what did we decide about backups", "search notes and captures"),
        ("memex status", "see how it is"),
    ),
    "addfile": (
        ("memex addfile report.pdf --tag heating --title 'The report'", "one file"),
        (
            "memex addfile ~/Documents/Manuals 'Minutes/*.docx' --collection memory",
            "a folder, and what a pattern names",
        ),
        ("memex addfile --dry-run ~/Documents", "what it would add, and what it would skip"),
        ("memex addfile - --name page.html < page.html", "what stdin gives"),
    ),
    "audit export": (("memex audit export > audit.jsonl", "all of it, for another program"),),
    "audit prune": (
        ("memex audit prune --before 365d --to audit-2025.jsonl", "what is older than a year, into a file"),
    ),
    "audit verify": (
        ("memex audit verify", "is the log whole, and which notes were changed by hand"),
        ("memex audit verify --head $(cat head.txt)", "is it the one whose head was noted down"),
    ),
    "audit": (
        ("memex audit --since 1d", "what was written since yesterday"),
        ("memex audit --key claude --limit 1000 --json", "what one agent did, for a script"),
    ),
    "backup": (
        ("memex backup", "into memex-VAULT-TIME.tar.gz in this folder"),
        ("memex backup --force ~/Backups/memex.tar.gz", "replace the one before, as a nightly job would"),
    ),
    "capture": (
        ('memex capture "The filter is due in May" --tag home', "keep a line"),
        ("memex capture --workspace work --title Minutes < minutes.md", "keep a file"),
    ),
    "completion": (
        ('eval "$(memex completion bash)"', "in this shell"),
        ("memex completion fish > ~/.config/fish/completions/memex.fish", "in every fish from now on"),
    ),
    "config": (
        ("memex config", "each setting with its meaning, as a settings file would have it"),
        ("memex config --json", "for a script"),
    ),
    "connect": (
        ("memex connect claude-code", "print the line that adds Memex to Claude Code, with a key of its own"),
        ("memex connect cursor --write --workspace work", "write Cursor's settings file; Cursor sees one workspace"),
        ("memex connect cursor --remove", "end Cursor's key and take the entry out"),
        ("memex connect --list", "show the connected clients, and when each was last seen"),
    ),
    "consolidate": (
        ("memex consolidate", "carry out what is ticked, and report what else may be done"),
        ("memex consolidate --dry-run", "what the report would say"),
        ("memex consolidate --workspace work", "the same, of one workspace"),
    ),
    "delete": (
        ("memex delete 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "after a question"),
        ("memex delete --yes 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "without one"),
    ),
    "commit": (
        ("memex commit --dry-run", "what Memex wrote that is not committed yet"),
        ("memex commit", "commit it now"),
    ),
    "demo": (("memex demo", "until Ctrl-C"), ("memex demo --dir ~/memex-demo --port 9000", "and keep it")),
    "doctor": (
        ("memex doctor", "what is wrong, and what mends it"),
        ("memex doctor --fix", "and mend what may be mended"),
        ("memex doctor --json", "for a script"),
    ),
    "enrich": (
        ("memex enrich --backfill --dry-run", "what summaries and tags would be written"),
        ("memex enrich --backfill", "write them"),
    ),
    "export": (
        ("memex export > memory.json", "the graph of the workspace default"),
        ("memex export --workspace work --output work.json", "of another, into a file"),
    ),
    "get": (
        ("memex get 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "its content"),
        ("memex get --json 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "all that is known of it"),
    ),
    "graph": (
        ("memex graph Heron --depth 2", "what lies around a node"),
        ("memex graph Heron --output Heron.canvas", "as a canvas for Obsidian"),
        ("memex graph --format mermaid --output Graph.md", "the whole graph, as a drawing in a note"),
        ('memex graph --path "Ada Lovelace" Bernoulli', "how two nodes hang together"),
        ("memex graph --report", "what wants attention"),
    ),
    "help": (
        ("memex help exit-codes", "what the exit codes mean"),
        ("memex help job run", "as `memex job run --help`"),
    ),
    "hook install": (
        ("memex hook install", "let a commit or a pull be indexed at once"),
        ("memex hook install --repo /srv/git/vault.git", "the same for pushes to a repository on this machine"),
    ),
    "hook secret": (("memex hook secret", "for the webhook of a forge"), ("memex hook secret --rotate", "another one")),
    "hook status": (("memex hook status", "which hooks are there"),),
    "hook uninstall": (("memex hook uninstall", "your own hooks stay"),),
    "import": (
        ("memex import memory.json --dry-run", "what it would bring"),
        ("memex import --workspace work memory.json", "into another workspace"),
    ),
    "index": (
        ("memex index", "what changed since"),
        ("memex index --full", "all of it, beside the index that answers"),
    ),
    "init": (
        ("memex init ~/MyVault", "set a folder of notes up"),
        ("memex init --yes ~/Empty", "one without a note yet, without a question"),
        ("memex init --create --git commit ~/NewVault", "make it, and put it under Git"),
    ),
    "job list": (("memex job list", "each job, how it last went and when it runs next"),),
    "job cancel": (("memex job cancel 4f0e9d0a", "the beginning of its id will do"),),
    "job queue": (
        ("memex job queue", "the newest notes and files that were queued"),
        ("memex job queue --status failed --limit 100", "those that could not be made into documents"),
    ),
    "job retry": (("memex job retry 4f0e9d0a --wait", "try it once more, and come back when it has ended"),),
    "job show": (("memex job show 4f0e9d0a", "how far it is, or why it failed"),),
    "job wait": (("memex job wait 4f0e9d0a 5b1d77c2", "come back when both have ended"),),
    "job run": (("memex job run list-the-vault --wait", "run one now, and come back when it has ended"),),
    "key create": (
        ("memex key create --name claude --workspace work", "a key for one agent"),
        (
            "memex key create --name report --all-workspaces --scopes read --expires 30d",
            "one that only reads, for a month",
        ),
    ),
    "key history": (("memex key history", "what became of keys"),),
    "key list": (("memex key list", "names, rights and ends; never a secret"),),
    "key reset": (("memex key reset", "a new owner's key, also while nothing runs"),),
    "key revoke": (("memex key revoke --yes claude", "from this moment on"),),
    "key rotate": (
        ("memex key rotate claude --overlap 1h", "a new secret; the old one is good for an hour more"),
        ("memex key rotate claude --overlap 0s", "the old one is no longer good"),
    ),
    "log": (
        ("memex log 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "who wrote it and when, and its commits"),
        ('memex log -p "Captures/default/Battery boxes.md"', "with the lines that each changed"),
    ),
    "mcp": (
        ("memex mcp --workspace work --toolset core", "as the command of a client that speaks stdio"),
        ("memex mcp --key-file ~/.memex-key", "with the client's key in a file"),
    ),
    "node add": (
        ('memex node add "Ada Lovelace" --type person', "a name is enough"),
        (
            'memex node add Heron -t project -o "Runs on sunlight" --tag hardware',
            "with facts",
        ),
    ),
    "node forget": (('memex node forget "Ada Lovelace" 2 5', "the others keep their numbers"),),
    "node list": (
        ("memex node list", "all of them"),
        ("memex node list --type person --days 7", "people of whom something changed this week"),
    ),
    "node observe": (
        ('memex node observe Heron "Passed the salt test"', "one fact more"),
        ("memex node observe Heron < minutes.txt", "one of several lines"),
    ),
    "node remove": (
        ("memex node remove Heron", "after a question"),
        ("memex node remove --yes Heron", "without one, as in a script"),
    ),
    "node rename": (('memex node rename Ada "Ada Lovelace"', "links to it stay as they are"),),
    "node replace": (('memex node replace Heron 3 "Reports every five minutes"', "it keeps its number"),),
    "node search": (
        ("memex node search who knows about salt", "by meaning"),
        ("memex node search --mode text --in Heron salt", "by words, among the facts of one node"),
    ),
    "node show": (('memex node show Heron "Ada Lovelace"', "facts, and relations either way"),),
    "node summary": (('memex node summary Heron "A water level station that lives on sunlight"', "in a sentence"),),
    "node tag": (("memex node tag Heron hardware field", "in place of those it had"), ("memex node tag Heron", "none")),
    "perspective add": (
        ("memex perspective add legal law:", "for all nodes of the workspace default"),
        ('memex perspective add --workspace work risk "what may go wrong:"', "of another one"),
    ),
    "perspective list": (("memex perspective list", "each with its prompt, and how much is embedded"),),
    "perspective remove": (("memex perspective remove temporal", "and its vectors"),),
    "perspective reset": (("memex perspective reset --workspace work", "to the five that there are at first"),),
    "perspective set": (('memex perspective set technical "how it works:"', "another prompt"),),
    "recent": (
        ("memex recent", "the latest twenty"),
        ("memex recent --limit 5 --workspace work", "five of a workspace"),
    ),
    "promote": (
        ("memex promote 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11 --to Projects/Ideas", "make it a note of the vault"),
        ("memex promote --dry-run 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "where it would go"),
    ),
    "relation add": (('memex relation add "Ada Lovelace" collaborated_with "Charles Babbage"', "as a sentence"),),
    "relation list": (
        ("memex relation list Heron", "at either end of it"),
        ('memex relation list "Ada Lovelace" "Charles Babbage"', "between two, either way"),
    ),
    "relation remove": (('memex relation remove "Ada Lovelace" knew "Charles Babbage"', "the nodes stay"),),
    "relation rename": (('memex relation rename "Ada Lovelace" knew "Charles Babbage" worked_with', "another type"),),
    "restore": (
        ("memex restore memex-MyVault-20261120-143205.tar.gz", "for the vault that it was made of"),
        ("memex restore backup.tar.gz --vault ~/Moved", "for a vault that lies elsewhere now"),
    ),
    "review": (
        ("memex review", "go through what waits, at a terminal"),
        ("memex review --list --workspace work", "only list it"),
        ("memex review --json", "the same for a script"),
    ),
    "review approve": (
        (
            "memex review approve 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11",
            "into the folder that is suggested, or your rules say",
        ),
        ("memex review approve --to Recipes 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "into this one"),
    ),
    "review dismiss": (("memex review dismiss 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "set it aside"),),
    "search": (
        ('memex search "battery boxes" --scope vault', "in your own notes"),
        ("memex search heat pump --tag home --since 30d", "with a tag, of the last month"),
        ("memex search 会議 --mode text --limit 3 --json", "by words, for a script"),
    ),
    "serve": (
        ("memex serve", "until Ctrl-C"),
        ("memex serve --connect", "and print how to connect clients"),
        ("memex serve --vault ~/Other --any-port", "a second vault, on another port if the first one has the usual"),
    ),
    "service install": (("memex service install --now", "start it now, and at every login"),),
    "service logs": (("memex service logs --follow", "as they come"),),
    "service status": (("memex service status", "as its manager sees it"),),
    "service uninstall": (("memex service uninstall", "notes, index and keys stay"),),
    "status": (
        ("memex status", "at a glance"),
        ("memex status --watch", "live"),
        ("memex status --exit-code --json", "for a script that wants to know"),
        ("memex status --all", "with every file that is skipped, and why"),
    ),
    "unarchive": (
        ("memex unarchive --list", "what was set aside"),
        ("memex unarchive 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "back into the inbox"),
    ),
    "stop": (
        ("memex stop", "the daemon of this vault"),
        ("memex stop --state /tmp/memex-demo-k3x/state --timeout 10", "a demo; give up after ten seconds"),
    ),
    "sync": (
        ("memex sync", "take what the remote has, and send what it has not"),
        ("memex sync --pull", "only take"),
    ),
    "unpromote": (("memex unpromote 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "back into the inbox, as it was"),),
    "undo": (
        ("memex undo 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "the last that was done to it"),
        (
            "memex undo --since 2h --key claude --dry-run",
            "what one agent wrote in two hours; without --dry-run, take it back",
        ),
        ("memex undo --yes 3f9c2b7e01d4a865", "take an undo back, by the id that it told, in a script"),
    ),
    "use": (
        ("memex use work", "by the name that `memex vaults` shows"),
        ("memex use ~/Documents/Work", "by its folder"),
    ),
    "updatenote": (
        ('memex updatenote 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11 "The filter is due in June."', "another text"),
        ("memex updatenote 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11", "in $EDITOR"),
        ("memex updatenote 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11 - < note.md", "what a file holds"),
        ("memex updatenote 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11 --tag home --tag filter", "other tags alone"),
    ),
    "vaults": (
        ("memex vaults", "each with its daemon; a star at the one that is meant here"),
        ("memex vaults --json", "for a script"),
    ),
    "workspace create": (("memex workspace create work", "a folder that nothing crosses"),),
    "workspace delete": (("memex workspace delete --yes work", "once it is empty"),),
    "workspace list": (("memex workspace list", "their names"),),
}

SHARED = "Options of every command"
SHOWN = 2  # examples in the help of a command; the manual page has them all


def command_path(ctx: click.Context) -> str:
    """The words of a command after `memex`."""
    return ctx.command_path.partition(" ")[2]


def sections(path: str) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """The sections of the manual page that belong to a command, each with its rows."""
    if path in EXAMPLES:
        yield "Examples", EXAMPLES[path]
    if not path:
        yield "Exit codes", EXIT_CODES
        yield from ((f"Exit codes of memex {name}", codes) for name, codes in OWN_EXIT_CODES.items())
        yield "Environment", ENVIRONMENT
        yield "Files", FILES


def write_help(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The page of a command: usage, what it does, arguments, examples, what else there is to know, options."""
    command.format_usage(ctx, formatter)
    first, _, more = (command.help or "").partition("\n\n")
    _write_paragraphs(first, formatter)
    write_arguments(command, ctx, formatter)
    write_examples(ctx, formatter)
    _write_paragraphs(more, formatter)
    if isinstance(command, click.Group):
        write_commands(command, ctx, formatter)
    write_options(command, ctx, formatter)
    if command_path(ctx) == "":
        formatter.write_paragraph()
        formatter.write_text(
            "`memex help exit-codes`, `memex help environment` and `memex help files` say more; "
            "`memex COMMAND --help` explains a command."
        )


def _write_paragraphs(text: str, formatter: click.HelpFormatter) -> None:
    for paragraph in filter(None, text.split("\n\n")):
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(paragraph.split()))


def write_arguments(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Each argument with what it stands for."""
    rows = [
        (label, explain_argument(command_path(ctx), label))
        for param in command.get_params(ctx)
        if isinstance(param, click.Argument)
        for label in [param.make_metavar(ctx)]
    ]
    if rows:
        with formatter.section("Arguments"):
            formatter.write_dl(rows)


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The first examples of a command."""
    if rows := EXAMPLES.get(command_path(ctx), ())[: None if not command_path(ctx) else SHOWN]:
        with formatter.section("Examples"):
            for line, does in rows:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                formatter.indent()
                formatter.write_text(does)
                formatter.dedent()


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The command's own options, and below them those that every command has: in one line, except for `memex` itself."""
    options: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        if not isinstance(param, click.Argument) and (record := param.get_help_record(ctx)) is not None:
            is_common = (param.name or "").startswith("shared_") or "--help" in param.opts
            (common if is_common else options).append(record)
    if options:
        with formatter.section("Options"):
            formatter.write_dl(options)
    with formatter.section(SHARED):
        if command_path(ctx):
            shared = [name for name, _ in common if "--help" not in name]
            formatter.write_text(f"{', '.join(shared)}, --help; `memex --help` explains them")
        else:
            formatter.write_dl(common)


def write_commands(group: click.Group, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The commands of a group, each with its first sentence, however long that is; those of `memex` by what one does."""
    rows = {
        name: (name, first_sentence(command))
        for name in group.list_commands(ctx)
        if (command := group.get_command(ctx, name))
    }
    parts = {"Commands": tuple(rows)} if command_path(ctx) else GROUPS
    for title, names in parts.items():
        if shown := [rows[name] for name in names if name in rows]:
            with formatter.section(title):
                formatter.write_dl(shown)


def first_sentence(command: click.Command) -> str:
    """The first sentence of a command's help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "."
