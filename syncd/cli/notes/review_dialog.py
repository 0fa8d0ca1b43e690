"""The review dialog shows a person one waiting capture after another, reads decisions as single keys, and can undo them.

Law, tested: an unknown key changes nothing, and every step can be undone, the last one first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import click

from index.errors import MemexError
from syncd.cli.framework.commands import print_message, print_text
from syncd.cli.framework.single_key import END as END_OF_INPUT
from syncd.cli.framework.single_key import has_single_keys, read_single_key
from syncd.cli.notes.review_file import ROOT, list_suggestions
from syncd.cli.terminal import result_text

Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Any]
Deed: TypeAlias = Literal["approved", "dismissed", "skipped"]
PROMPT: Final = "[a]pprove  [f]older  [t]ake  [e]dit  [s]kip  [d]ismiss  [u]ndo  [q]uit  [?]"
END: Final = "that was the last one: [u]ndo, or any key to end"
HELP: Final = """\
  a  approve: move the capture into the folder that is shown; a proposed change is applied to its note
  f  approve, into another folder
  t  take suggested tags and links: the note gets them when you approve it
  e  open the note in $EDITOR
  s  skip: leave the capture waiting (Enter and the space bar do it too)
  d  dismiss: move the capture to the archive; `memex unarchive` brings it back
  u  undo the last step, one after another
  q  quit"""
SKIPS: Final = frozenset({"s", "", " ", "\r", "\n"})
BACK: Final[Mapping[str, str]] = {"approved": "unpromote", "dismissed": "unarchive"}
LINES: Final = 30  # most lines of a capture that are shown
CHANGE_LINES: Final = 200  # most lines of a proposed change: its owner approves them all
CHANGE_WIDTH: Final = 400  # most characters of one of these lines
FITS: Final[Mapping[str, str]] = {
    "fits": "approve applies it to the note",
    "merges": "the note has changed since; the change still fits, as shown",
    "conflict": "the note has changed in the same lines: edit the note or the proposal, or dismiss it",
    "none": "it can't be applied: edit the proposal, or dismiss it",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Describes the decision on a capture; `number`: its index in the queue; `target`: its new path, "" if skipped."""

    number: int
    deed: Deed
    target: str


@dataclass(slots=True)
class Dialog:
    """Runs the dialog, and keeps the position in the queue and the steps that led there."""

    ask: Ask
    waiting: list[Mapping[str, Any]]
    read_key: Callable[[str], str]
    number: int = 0
    steps: list[Step] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)  # suggestions for the capture that is shown

    def run(self) -> None:
        """Go through the captures one by one, until `q`, or another key than `u` at the end."""
        while self.number < len(self.waiting) or self._is_taken_back_at_end():
            try:
                shown = self.ask("review.show", {"id": self.waiting[self.number]["path"]})
            except MemexError as error:  # for example, somebody else has decided in the meantime
                print_message(f"memex: {error.message}")
                self.number += 1
                continue
            print_text(format_capture(shown, self._progress()))
            if not self._decide(shown):
                break
        print_text(self._summary())

    def _is_taken_back_at_end(self) -> bool:
        """Offer to undo the last step when all captures are decided, and return whether it was undone."""
        return bool(self.steps) and self.read_key(END).casefold()[:1] == "u" and self._take_back()

    def _decide(self, shown: Mapping[str, Any]) -> bool:
        """Read keys until one changes the position or reopens the capture; return False if the person quits."""
        self.taken = []
        while True:
            key = self.read_key(PROMPT).casefold()[:1]
            if key == "q":
                return False
            if key == "?":
                print_text(HELP)
            elif key == "t":
                self.taken = ask_suggestions(shown)
            elif key == "e":
                edit_note(shown["file"])
                self.ask("index", {})
                return True
            elif key == "u":
                if self._take_back():
                    return True
            elif key in SKIPS:
                return self._move_on(Step(self.number, "skipped", ""))
            elif key in ("a", "f", "d"):
                if (step := self._carry_out(shown, key)) is not None:
                    return self._move_on(step)
                if self._has_changed(shown):
                    return True
            else:
                print_message(f"memex: {key!r} does nothing here; ? explains the keys")

    def _move_on(self, step: Step) -> bool:
        self.steps.append(step)
        self.number += 1
        return True

    def _carry_out(self, shown: Mapping[str, Any], key: str) -> Step | None:
        """Carry out a decision and return the step; None if that was not possible, or the capture is not as it was shown."""
        seen = {"ids": [shown["path"]], "shown": {shown["path"]: shown["digest"]}}
        if key == "d":
            result = self.ask("review.dismiss", seen)
        else:
            to, taken = ask_folder(shown) if key == "f" else None, {"take": self.taken} if self.taken else {}
            result = self.ask("promote", {**seen, "to": to, **taken})
        for entry in result["failed"]:
            print_message(f"memex: {entry['error']['message']}")
        done = result.get("promoted") or result.get("archived") or ()
        for entry in done:
            print_text(f"{'applied to' if entry.get('applied') else '→'} {result_text.line(entry['target'], 200)}")
            _print_details(entry)
        return Step(self.number, "dismissed" if key == "d" else "approved", done[0]["target"]) if done else None

    def _has_changed(self, shown: Mapping[str, Any]) -> bool:
        """Return whether the capture must be shown again: it has changed, or waits no longer."""
        try:
            return bool(self.ask("review.show", {"id": shown["path"]})["digest"] != shown["digest"])
        except MemexError:
            return True

    def _take_back(self) -> bool:
        """Undo the last step, and return whether that was possible."""
        if not self.steps:
            print_message("memex: there is no step to undo")
            return False
        step = self.steps[-1]
        if step.deed != "skipped":
            result = self.ask(BACK[step.deed], {"ids": [step.target]})
            for entry in result["failed"]:
                print_message(f"memex: the step can't be undone: {entry['error']['message']}")
            if not result["returned"]:
                return False
            back = result["returned"][0]["target"]
            self.waiting[step.number] = {**self.waiting[step.number], "path": back}
            print_text(f"← {result_text.line(back, 200)}")
            _print_details(result["returned"][0])
        self.steps.pop()
        self.number = step.number
        return True

    def _progress(self) -> str:
        return ", ".join([f"{self.number + 1} of {len(self.waiting)}", *self._counts()])

    def _counts(self) -> list[str]:
        counts = Counter(step.deed for step in self.steps)
        return [f"{counts[deed]} {deed}" for deed in ("approved", "dismissed", "skipped") if counts[deed]]

    def _summary(self) -> str:
        left = len(self.waiting) - self.number
        return ", ".join([*self._counts(), *([f"{left} left"] if left else [])]) or "nothing was decided"


def _print_details(entry: Mapping[str, Any]) -> None:
    for line in result_text.format_move_details(entry):
        print_text(line)


def go_through(ask: Ask, waiting: Sequence[Mapping[str, Any]]) -> None:
    """Run the dialog for these captures."""
    if waiting:
        Dialog(ask, list(waiting), read_key).run()
    else:
        print_text("nothing waits for a decision")


def read_key(prompt: str) -> str:
    """Read one key without Enter, or a whole line if the terminal does not support single keys."""
    if not has_single_keys():
        line: str = click.prompt(prompt, default="s", show_default=False, prompt_suffix=": ")
        return line.strip()
    key = read_single_key(f"{prompt}: ")
    click.echo(key if key.isprintable() else "")
    return "q" if key == END_OF_INPUT else key


def edit_note(file: str) -> None:
    """Open a note in the editor."""
    try:
        click.edit(filename=file)
    except click.ClickException as error:
        print_message(f"memex: {error.message} (EDITOR says which program is started)")


def ask_suggestions(shown: Mapping[str, Any]) -> list[str]:
    """Ask which suggested tags and links the note gets, by their numbers."""
    suggestions = list_suggestions(shown)
    for number, name in enumerate(suggestions, 1):
        print_text(f"  {number}  {result_text.line(name, 100)}")
    if not suggestions:
        print_message("memex: it has no suggested tags or links")
        return []
    while True:
        text: str = click.prompt("numbers, or all", default="", show_default=False)
        words = text.replace(",", " ").split()
        if words == ["all"]:
            return suggestions
        if all(word.isdecimal() and 1 <= int(word) <= len(suggestions) for word in words):
            return [suggestions[number - 1] for number in sorted({int(word) for word in words})]
        print_message(f"memex: enter numbers from 1 to {len(suggestions)}")


def ask_folder(shown: Mapping[str, Any]) -> str:
    """Ask for a folder, by its name or its number in the list of suggested folders; return "" for the vault itself."""
    numbered = {str(number): folder for number, folder in enumerate(shown["folders"], 1)}
    for number, folder in numbered.items():
        print_text(f"  {number}  {result_text.line(folder['folder'], 100)}  ({folder['reason']})")
    goal = ROOT if shown["goal"] == "" else shown["goal"] or ""
    while True:
        to: str = click.prompt("folder, or its number", default=goal, show_default=goal != "").strip()
        if not to:
            print_message(f"memex: enter a folder; {ROOT} means the vault itself")
            continue
        if to == ROOT:
            return ""
        if to in numbered:
            return str(numbered[to]["folder"])
        if not to.isdecimal() or click.confirm(f"there is no {to} in the list; is it the name of a folder?"):
            return to


def format_capture(capture: Mapping[str, Any], where: str) -> str:
    """Format a capture with its suggestions; `where`: its position in the queue."""
    lines = [f"── {where}: {result_text.line(capture['title'], 100)}", f"   {result_text.line(capture['path'], 200)}"]
    named = (
        *(("from", "source"), ("tags", "tags"), ("problem", "problem")),
        *(("hidden characters", "suspicious"), ("holds code that Obsidian may run", "runs")),
        ("links that may open files or programs", "unsafe_links"),
    )
    for name, key in named:
        if capture.get(key):
            lines.append(f"   {name}: {result_text.line(_join_values(capture[key]), 200)}")
    if capture.get("change"):
        return "\n".join([*lines, *_change_lines(capture["change"])])
    content = capture["content"].strip("\n").split("\n")
    lines += ["", *(f"  {result_text.line(line, 400)}" for line in content[:LINES])]
    lines += [f"  … {len(content) - LINES} more lines: e"] if len(content) > LINES else []
    lines.append("")
    if capture["goal"] is not None:
        goal = result_text.line(capture["goal"] or "the root of the vault", 100)
        lines.append(f"   folder: {goal}  ({capture['reason']})")
    for name, key in (("tags to add", "suggested_tags"), ("links to add", "suggested_links")):
        if capture[key]:
            lines.append(f"   {name}: {result_text.line(_join_values(capture[key]), 300)}")
    for note in capture["similar"]:
        lines.append(f"   {note['kind']}: {result_text.line(note['path'], 150)}")
        lines.append(f"      {result_text.line(note['excerpt'], 150)}")
    return "\n".join(lines)


def _change_lines(change: Mapping[str, Any]) -> list[str]:
    """Return the lines about the proposed change of a note: how it fits, and what approving it does, or both versions."""
    lines = [f"   change of: {result_text.line(change['target'] or '', 200)}", f"   {FITS[change['fit']]}"]
    if change.get("reason"):
        lines.insert(1, f"   reason: {result_text.line(change['reason'], 500)}")
    shown = (change.get("view") or change.get("diff") or "").removesuffix("\n")
    content = shown.split("\n") if shown else []
    lines += ["", *(f"  {_format_whole(line)}" for line in content[:CHANGE_LINES])]
    lines += [f"  … {len(content) - CHANGE_LINES} more lines: e"] if len(content) > CHANGE_LINES else []
    return [*lines, ""]


def _format_whole(line: str) -> str:
    """Format a line of a diff for the terminal; a longer one says how much of it is not shown."""
    shown = result_text.sanitize(line)
    more = len(shown) - CHANGE_WIDTH
    return f"{shown[:CHANGE_WIDTH]}… {more:,} more characters: e" if more > 0 else shown


def _join_values(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
