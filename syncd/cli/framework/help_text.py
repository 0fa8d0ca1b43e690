"""Compose the help text of each command: its arguments, two examples, the rest of its text, then its options.

The manual page uses these texts too. Law, tested: every command has examples, the program accepts every example, and
every argument has an explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from syncd.cli.framework.help_topics import ENVIRONMENT, EXIT_CODES, FILES, GROUPS, OWN_EXIT_CODES, explain_argument

Example = tuple[str, str]  # a command line, and its effect

EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "": (
        ("memex init ~/MyVault", "set up a vault"),
        ("memex serve", "run the daemon"),
        ("memex search what did we decide about backups", "search notes and captures"),
        ("memex status", "show the daemon's health"),
    ),
    "addfile": (
        ("memex addfile report.pdf --tag heating --title 'The report'", "one file"),
        (
            "memex addfile ~/Documents/Manuals 'Minutes/*.docx' --collection memory",
            "a folder, and the files that match a pattern",
        ),
        ("memex addfile --dry-run ~/Documents", "list the files that would be added or skipped"),
        ("memex addfile - --name page.html < page.html", "read the file from stdin"),
    ),
    "audit export": (("memex audit export > audit.jsonl", "export the whole log"),),
    "audit prune": (
        ("memex audit prune --before 365d --to audit-2025.jsonl", "move entries older than a year into a file"),
    ),
    "audit show": (("memex audit show 1204", "show what the write with this number changed"),),
    "audit verify": (
        ("memex audit verify", "check the log, and list notes that were changed outside Memex"),
        (
            "memex audit verify --head $(cat head.txt)",
            "check that the log still contains a head that you noted earlier",
        ),
    ),
    "audit": (
        ("memex audit --since 1d", "list the writes of the last day"),
        ("memex audit --key claude-code@desk --limit 1000 --json", "list one agent's writes, for a script"),
    ),
    "backup": (
        ("memex backup", "write memex-VAULT-TIME.tar.gz into the current folder"),
        ("memex backup --force ~/Backups/memex.tar.gz", "replace the previous backup, as in a nightly job"),
    ),
    "capture": (
        ('memex capture "The filter is due in May" --tag home', "save one line"),
        ("memex capture --workspace work --title Minutes < minutes.md", "save the text of a file"),
    ),
    "completion": (
        ('eval "$(memex completion bash)"', "for this shell session"),
        ("memex completion fish | source", "for this session of fish"),
    ),
    "config": (
        ("memex config", "list each setting with its meaning, in the format of a settings file"),
        ("memex config --json", "for a script"),
    ),
    "connect": (
        ("memex connect claude-code", "print the line that adds Memex to Claude Code, with a key of its own"),
        ("memex connect cursor --write --workspace work", "write Cursor's settings file; Cursor sees one workspace"),
        ("memex connect cursor --remove", "revoke Cursor's key and remove the entry"),
        ("memex connect claude-code --hooks", "let each session of Claude Code begin with what was captured before"),
        ("memex connect --list", "show the connected clients, and when each was last seen"),
    ),
    "consolidate": (
        ("memex consolidate", "carry out the ticked proposals, then report new ones"),
        ("memex consolidate --dry-run", "print the report without writing it"),
        ("memex consolidate --workspace work", "print the report of one workspace"),
        ("memex consolidate --list", "list the proposals that wait, with their keys"),
    ),
    "context": (
        ("memex context", "print what agents of the workspace default get at the start of a session"),
        ("memex context --explain --project .", "say why each line is there, for the project of this folder"),
        ("memex context --workspace work --json", "for a script"),
    ),
    "delete": (
        ('memex delete "Heat pump filter"', "ask before deleting"),
        ('memex delete --yes "Heat pump filter"', "delete without asking"),
    ),
    "commit": (
        ("memex commit --dry-run", "list what Memex wrote and has not committed yet"),
        ("memex commit", "commit it now"),
    ),
    "demo": (
        ("memex demo", "serve the demo until Ctrl-C"),
        ("memex demo --dir ~/memex-demo --port 9000", "keep the copy in a folder"),
    ),
    "doctor": (
        ("memex doctor", "list problems, each with the command that fixes it"),
        ("memex doctor --fix", "also repair what is safe to repair"),
        ("memex doctor --json", "for a script"),
    ),
    "enrich": (
        ("memex enrich --backfill --dry-run", "list the summaries and tags that would be written"),
        ("memex enrich --backfill", "write them"),
    ),
    "export": (
        ("memex export > memory.json", "export the graph of the workspace default"),
        ("memex export --workspace work --output work.json", "export another workspace into a file"),
    ),
    "get": (
        ('memex get "Heat pump filter"', "print its content"),
        ("memex get --links Heron", "list its links, and the notes that link to it"),
        ("memex get --json 6f1c1c52", "print its content and properties as JSON"),
    ),
    "graph": (
        ("memex graph Heron --depth 2", "show the entities within two hops"),
        ("memex graph Heron --output Heron.canvas", "write a canvas for Obsidian"),
        ("memex graph --format mermaid --output Graph.md", "write the whole graph as a Mermaid diagram"),
        ('memex graph --path "Ada Lovelace" Bernoulli', "show how two entities are connected"),
        ("memex graph --report", "list what needs attention"),
    ),
    "help": (
        ("memex help exit-codes", "explain the exit codes"),
        ("memex help job run", "same as `memex job run --help`"),
    ),
    "hook install": (
        ("memex hook install", "index each commit and pull immediately"),
        ("memex hook install --repo /srv/git/vault.git", "index each push to a repository on this machine"),
    ),
    "hook secret": (
        ("memex hook secret", "create a secret for a webhook of GitHub or another forge"),
        ("memex hook secret --rotate", "replace the secret"),
    ),
    "hook status": (("memex hook status", "list the hooks and their state"),),
    "hook uninstall": (("memex hook uninstall", "remove Memex's hooks; your own hooks stay"),),
    "import": (
        ("memex import memory.json --dry-run", "list what would be imported"),
        ("memex import --workspace work memory.json", "import into another workspace"),
    ),
    "index": (
        ("memex index", "index what changed since the last run"),
        ("memex index --full", "rebuild the whole index; searches use the old one until then"),
    ),
    "init": (
        ("memex init ~/MyVault", "set up a folder of notes"),
        ("memex init --yes ~/Empty", "set up an empty folder without asking"),
        ("memex init --create --git commit ~/NewVault", "create the folder, and put it under Git"),
    ),
    "job list": (("memex job list", "list the jobs, each with its last result and its next run"),),
    "job cancel": (("memex job cancel 4f0e9d0a", "the first characters of the id are enough"),),
    "job queue": (
        ("memex job queue", "list the newest queued notes and files"),
        ("memex job queue --status failed --limit 100", "list only the failed jobs"),
    ),
    "job retry": (("memex job retry 4f0e9d0a --wait", "retry a job, and wait until it ends"),),
    "job show": (("memex job show 4f0e9d0a", "show its progress, or why it failed"),),
    "job wait": (("memex job wait 4f0e9d0a 5b1d77c2", "wait until both jobs end"),),
    "job run": (("memex job run list-the-vault --wait", "run a job now, and wait until it ends"),),
    "key create": (
        ("memex key create claude --workspace work", "create a key for one agent"),
        (
            "memex key create report --all-workspaces --scopes read --expires 30d",
            "create a read-only key that expires after 30 days",
        ),
    ),
    "key history": (("memex key history", "list when keys were created, renamed, rotated, revoked or reset"),),
    "key list": (("memex key list", "list names, rights and expiry; never a secret"),),
    "key reset": (("memex key reset", "create a new owner's key, even when no daemon runs"),),
    "key revoke": (("memex key revoke --yes claude", "end the key immediately"),),
    "key rotate": (
        ("memex key rotate claude --overlap 1h", "create a new secret; the old one works for another hour"),
        ("memex key rotate claude --overlap 0s", "create a new secret; the old one stops working immediately"),
    ),
    "log": (
        ("memex log --before 12 Heron", "print the note as it was before entry 12 of the log"),
        ('memex log "Heat pump filter"', "list its writes with author and time, and its commits"),
        ('memex log -p "Captures/default/Battery boxes.md"', "also show the changed lines"),
    ),
    "mcp": (
        ("memex mcp --workspace work --toolset core", "the command for a client that starts its MCP servers"),
        ("memex mcp --key-file ~/.memex-key", "use the client's key in a file"),
    ),
    "eval": (
        ("memex eval --set search.reranker=ms-marco-MiniLM-L6-v2", "measure a reranker before you turn it on"),
        ("memex eval --set index.chunk_tokens=128 --json", "measure smaller passages, for a script"),
    ),
    "model try": (
        ("memex model try minilm-int8", "measure the smaller form of the bundled model beside the present model"),
        ("memex model try multilingual-e5-small --download", "fetch a model and measure it"),
        ("memex model try ollama:nomic-embed-text", "measure a model of Ollama on this machine"),
    ),
    "model use": (
        ("memex model use minilm-int8", "choose a model that was measured"),
        ("memex model use minilm --force", "go back to the bundled model without a measurement"),
    ),
    "model": (("memex model", "list the models"), ("memex model --json", "for a script")),
    "searches": (
        ("memex searches", "list the recorded searches"),
        ("memex searches --erase", "erase them after a question"),
    ),
    "node add": (
        ('memex node add "Ada Lovelace" --type person', "add an entity by its name"),
        (
            'memex node add Heron -t project -o "Runs on sunlight" --tag hardware',
            "add an entity with facts",
        ),
    ),
    "node forget": (('memex node forget "Ada Lovelace" 2 5', "delete two facts; the other facts keep their numbers"),),
    "node list": (
        ("memex node list", "list all entities"),
        ("memex node list --type person --days 7", "list people that changed in the last 7 days"),
    ),
    "node observe": (
        ('memex node observe Heron "Passed the salt test"', "add a fact"),
        ("memex node observe Heron < minutes.txt", "add a fact of several lines from a file"),
    ),
    "node remove": (
        ("memex node remove Heron", "ask before deleting"),
        ("memex node remove --yes Heron", "delete without asking"),
    ),
    "node rename": (('memex node rename Ada "Ada Lovelace"', "rename an entity; links to it keep working"),),
    "node replace": (
        ('memex node replace Heron 3 "Reports every five minutes"', "replace a fact; it keeps its number"),
    ),
    "node search": (
        ("memex node search who knows about salt", "search by meaning"),
        ("memex node search --mode text --in Heron salt", "search by words in the facts of one entity"),
    ),
    "node show": (('memex node show Heron "Ada Lovelace"', "show facts and relations"),),
    "node summary": (
        (
            'memex node summary Heron "A water level station that lives on sunlight"',
            "describe an entity in one sentence",
        ),
    ),
    "node tag": (
        ("memex node tag Heron hardware field", "replace its tags"),
        ("memex node tag Heron", "remove its tags"),
    ),
    "open": (
        ("memex open", "show the page in your browser"),
        ("memex open --no-browser", "print the link, as on a machine that you reach with ssh"),
        ("memex open --sessions", "list the browsers that have the page open"),
    ),
    "perspective add": (
        ("memex perspective add legal law:", "add a perspective to the workspace default"),
        ('memex perspective add --workspace work risk "what may go wrong:"', "add a perspective to another workspace"),
    ),
    "perspective list": (("memex perspective list", "list the perspectives with their prompts and coverage"),),
    "perspective remove": (("memex perspective remove temporal", "remove a perspective and its vectors"),),
    "perspective reset": (("memex perspective reset --workspace work", "restore the five default perspectives"),),
    "perspective set": (('memex perspective set technical "how it works:"', "change a prompt"),),
    "recent": (
        ("memex recent", "list the latest 20 captures"),
        ("memex recent --limit 5 --workspace work", "list five captures of one workspace"),
    ),
    "promote": (
        (
            'memex promote "Heat pump filter" --to Projects/Ideas',
            "move a capture into a folder of the vault",
        ),
        ('memex promote --dry-run "Heat pump filter"', "show where it would go"),
    ),
    "relation add": (('memex relation add "Ada Lovelace" collaborated_with "Charles Babbage"', "relate two entities"),),
    "relation list": (
        ("memex relation list Heron", "list the relations of an entity"),
        ('memex relation list "Ada Lovelace" "Charles Babbage"', "list the relations between two entities"),
    ),
    "relation remove": (
        ('memex relation remove "Ada Lovelace" knew "Charles Babbage"', "delete a relation; the entities stay"),
    ),
    "relation rename": (
        ('memex relation rename "Ada Lovelace" knew "Charles Babbage" worked_with', "change the type of a relation"),
    ),
    "restore": (
        ("memex restore memex-MyVault-20261120-143205.tar.gz", "restore for the vault of the backup"),
        ("memex restore backup.tar.gz --vault ~/Moved", "restore for a vault that has moved"),
    ),
    "review": (
        ("memex review", "go through the waiting captures"),
        ("memex review --list --workspace work", "list the waiting captures of one workspace"),
        ("memex review --json", "list the waiting captures, for a script"),
    ),
    "review approve": (
        (
            'memex review approve "Heat pump filter"',
            "promote into the folder of your rules, or the suggested one",
        ),
        ('memex review approve --to Recipes "Heat pump filter"', "promote into the folder Recipes"),
    ),
    "review dismiss": (('memex review dismiss "Heat pump filter"', "archive a capture"),),
    "search": (
        ('memex search "battery boxes" --scope vault', "search your own notes"),
        ("memex search heat pump --tag home --since 30d", "search notes with a tag, created in the last 30 days"),
        ("memex search pump --folder Projects/Heron", "search below one folder"),
        ("memex search 会議 --mode text --limit 3 --json", "search by words, for a script"),
    ),
    "serve": (
        ("memex serve", "serve until Ctrl-C"),
        ("memex serve --connect", "also print how to connect clients"),
        ("memex serve --vault ~/Other --any-port", "serve a second vault, on a free port if the usual one is taken"),
    ),
    "service install": (("memex service install --now", "start the daemon now and at every login"),),
    "service logs": (("memex service logs --follow", "print log lines as they arrive"),),
    "service status": (("memex service status", "show what systemd or launchd reports"),),
    "service uninstall": (("memex service uninstall", "remove the service; notes, index and keys stay"),),
    "share add": (
        ("memex share add References", "let agents of the workspace default read a folder"),
        (
            "memex share add --workspace work Projects/Alpha Notes/Glossary.md",
            "a folder and a note, for another workspace",
        ),
    ),
    "share list": (("memex share list", "list what is shared with each workspace"),),
    "share preview": (
        ("memex share preview References", "list what agents could read, before you share it"),
        ("memex share preview", "list what agents can read now"),
    ),
    "share remove": (("memex share remove References", "stop sharing a folder"),),
    "status": (
        ("memex status", "show a summary"),
        ("memex status --watch", "update it every 2 seconds"),
        ("memex status --exit-code --json", "print JSON, and exit with 7 when something is wrong"),
        ("memex status --all", "also list every skipped file with its reason"),
    ),
    "unarchive": (
        ("memex unarchive --list", "list the archived captures"),
        ('memex unarchive "Heat pump filter"', "move a capture back into the inbox"),
    ),
    "stop": (
        ("memex stop", "stop the daemon of this vault"),
        ("memex stop --state /var/tmp/memex-demo-k3x/state --timeout 10", "stop a demo; give up after 10 seconds"),
    ),
    "sync": (
        ("memex sync", "pull, then push"),
        ("memex sync --pull", "only pull"),
    ),
    "unpromote": (('memex unpromote "Heat pump filter"', "move a promoted note back into the inbox"),),
    "undo": (
        ('memex undo "Heat pump filter"', "undo the last change of a note"),
        (
            "memex undo --since 2h --key claude-code@desk --dry-run",
            "list what one agent wrote in two hours; without --dry-run, undo it",
        ),
        ("memex undo --yes 3f9c2b7e01d4a865", "undo an undo by its id, without asking"),
        ("memex undo --to 4f1d2c9 Heron", "restore a note of the vault as it was at a commit"),
    ),
    "use": (
        ("memex use work", "by the name that `memex vaults` shows"),
        ("memex use ~/Documents/Work", "by its folder"),
    ),
    "updatenote": (
        ('memex updatenote "Heat pump filter" "The filter is due in June."', "replace the text"),
        ('memex updatenote "Heat pump filter"', "edit the note in $EDITOR"),
        ('memex updatenote "Heat pump filter" - < note.md', "replace the text with that of a file"),
        ('memex updatenote "Heat pump filter" --tag home --tag filter', "replace only the tags"),
    ),
    "vaults": (
        ("memex vaults", "list the vaults; a star marks the one that commands use here"),
        ("memex vaults --json", "for a script"),
    ),
    "workspace create": (("memex workspace create work", "create a workspace"),),
    "workspace delete": (("memex workspace delete --yes work", "remove an empty workspace"),),
    "workspace list": (("memex workspace list", "list their names"),),
}

SHARED = "Options of every command"
SHOWN = 2  # examples in the help of a command; the manual page has them all


def command_path(ctx: click.Context) -> str:
    """Return the words of a command after `memex`."""
    return ctx.command_path.partition(" ")[2]


def sections(path: str) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return the sections of the manual page that belong to a command, each with its rows."""
    if path in EXAMPLES:
        yield "Examples", EXAMPLES[path]
    if not path:
        yield "Exit codes", EXIT_CODES
        yield from ((f"Exit codes of memex {name}", codes) for name, codes in OWN_EXIT_CODES.items())
        yield "Environment", ENVIRONMENT
        yield "Files", FILES


def write_help(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the help of a command: usage, summary, arguments, examples, the rest of its text, options."""
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
            "`memex help exit-codes`, `memex help environment` and `memex help files` give details; "
            "`memex COMMAND --help` explains a command."
        )


def _write_paragraphs(text: str, formatter: click.HelpFormatter) -> None:
    for paragraph in filter(None, text.split("\n\n")):
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(" ".join(paragraph.split()))


def write_arguments(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write a row for each argument with its explanation."""
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
    """Write the first examples of a command."""
    if rows := EXAMPLES.get(command_path(ctx), ())[: None if not command_path(ctx) else SHOWN]:
        with formatter.section("Examples"):
            for line, does in rows:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                formatter.indent()
                formatter.write_text(does)
                formatter.dedent()


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the command's own options, then the options of every command: in one line, except for `memex` itself."""
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
    """Write the commands of a group, each with its whole first sentence; group the commands of `memex` by task."""
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
    """Return the first sentence of a command's help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".") + "."
