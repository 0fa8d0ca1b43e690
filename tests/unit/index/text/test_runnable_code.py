"""Code that plugins of Obsidian may run: what is found, what is not, and what it is as plain code."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text.runnable_code import DEFECT, find_runnable, make_plain, runnable_defects

CODE = {
    "```dataviewjs\ndv.pages()\n```": ("Dataview", "```js\ndv.pages()\n```"),
    "~~~~ DataviewJS\nx\n~~~~": ("Dataview", "~~~~ js\nx\n~~~~"),
    "> - ```dataviewjs\n> x": ("Dataview", "> - ```js\n> x"),
    "x\r```dataviewjs\rx\r```": ("Dataview", "x\r```js\rx\r```"),
    "[^1]: ```dataviewjs\n    x": ("Dataview", "[^1]: ```js\n    x"),
    "```\u00a0dataviewjs\nx": ("Dataview", "```\u00a0js\nx"),
    "a `\u00a0$= x` b": ("Dataview", "a `\u00a0$ = x` b"),
    "1. ```dataview&#106;s\nx": ("Dataview", "1. ```js\nx"),
    "```dataviewjs title=x\n": ("Dataview", "```js title=x\n"),
    "a `$= dv.current()` b": ("Dataview", "a `$ = dv.current()` b"),
    "a ``$=x``": ("Dataview", "a ``$ =x``"),
    "```js-engine\nx\n```": ("JS Engine", "```js\nx\n```"),
    "```meta-bind-js-view\nx\n```": ("Meta Bind", "```js\nx\n```"),
    "```meta-bind-button\nx\n```": ("Meta Bind", "```yaml\nx\n```"),
    "```datacoretsx\nx\n```": ("Datacore", "```tsx\nx\n```"),
    "```run-python\nx\n```": ("Execute Code", "```text\nx\n```"),
    "```button\nname x\n```": ("Buttons", "```text\nname x\n```"),
    "```tasks\nfilter by function task.x\n```": ("Tasks", "```text\nfilter by function task.x\n```"),
    "a <%* tp.system.prompt() %> b": ("Templater", "a < %* tp.system.prompt() %> b"),
    "```js\n<% x %>\n```": ("Templater", "```js\n< % x %>\n```"),
}
PLAIN = [
    "```js\nconst a = 1\n```", "```dataview\nLIST\n```", "```tasks\nnot done\n```", "`$x = 1` and $= costs", "the word dataviewjs",
    "`dataviewjs`", "```\ndataviewjs\n```", "`= this.file.name`", "100 <percent>%", "```mermaid\ngraph\n```", "",
]  # fmt: skip


@pytest.mark.parametrize("text", CODE)
def test_code_that_a_plugin_may_run_is_found_and_made_plain(text):
    plugin, plain = CODE[text]
    assert find_runnable(text) == (plugin,)
    assert make_plain(text) == plain
    assert find_runnable(plain) == ()


@pytest.mark.parametrize("text", PLAIN)
def test_other_code_stays_as_it_is(text):
    assert (find_runnable(text), make_plain(text), runnable_defects(text)) == ((), text, ())


def test_a_note_is_flagged_once_with_every_plugin():
    (defect,) = runnable_defects("\n\n".join(CODE))
    assert defect.name == DEFECT
    plugins = "Buttons, Datacore, Dataview, Execute Code, JS Engine, Meta Bind, Tasks, Templater"
    assert (
        str(defect)
        == f"runnable-code: {plugins}: the note contains code that Obsidian may run: read the code before you open the note in Obsidian"
    )


@given(
    st.lists(st.sampled_from([*CODE, *PLAIN, "`", "$=", "<", "%", "\n", "run-", "\\", "```"]), max_size=8).map("".join)
)
def test_plain_code_is_found_by_no_plugin_and_stays_plain(text):
    plain = make_plain(text)
    assert find_runnable(plain) == ()
    assert make_plain(plain) == plain


@pytest.mark.parametrize("function", [find_runnable, make_plain])
@pytest.mark.parametrize("piece", ["```tasks\n", "```t&#97;sks by\n", "`\n", "by ", "[^a]:", "> ", "<%", "`$="])
def test_no_text_takes_long(piece, function):
    begun = time.process_time()
    function(piece * 4_000)
    assert time.process_time() - begun < 1
