"""Folders, names and sizes: a newcomer finds a module by its path alone, and a test by the path of its module."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping

import pytest

from tests.support.module_proofs import PROOF_OF
from tests.support.paths import ROOT
from tests.support.sources import PACKAGES, Source, sources

MODULES = 12  # in a folder, `__init__.py` and `__main__.py` not counted
LINES = 500  # of a module; 250 are the aim
FUNCTION_LINES = 40

# A file is not called by one of these alone: they say how a thing is, not what it is.
RIDDLES = frozenset(
    """again ahead alike anew apart aside away back before behind beside besides between beyond brought carried
    carrying collected consolidating converting crossed deaf done dragged drained dropped dying early former given
    gone handled held kept late latest left made marked meant merging missing moved moving naming noted observed
    once ours outside overlooked own paced past picked placed planned prepared promotable pushed queued quoting
    refused retagged returning said seen sifted staged standing stated tagging taken theirs timed told touched
    typed under uniting unread waiting wanted writing""".split()  # noqa: SIM905 - words read best as text
)
NOUNS = frozenset(
    ["chunking", "finding", "heading", "listing", "nothing", "setting", "tracing"]
)  # words of the field that look like participles
# Words that stand for something else: each must be explained before it says what is in the file.
METAPHORS = frozenset(
    """bell board carrying desk ears facet familiar gate graft ground heal kin pulse rim roster scale shelf sift slot
    spots steward strand strays sweep ties turns twins vitals walk witness""".split()  # noqa: SIM905 - words read best as text
)
CODES = frozenset(["Unauthenticated"])  # called as its stable code is
GATE = "a gate is the word of the field for what lets readers through one at a time"
WALK = "a walk is the word of the field for going through folders or a graph step by step"
ALLOWED_METAPHORS = {
    "reader_gate": GATE,
    "ReaderGate": GATE,
    "ListingWalk": WALK,
    "WalkStep": WALK,
    "WalkRelations": WALK,
}


def names(source: Source) -> list[str]:
    """A module is not called by a participle, a preposition, an adverb or a metaphor, and its folder's word is not said again."""
    complaints = []
    participle = re.fullmatch(r"[a-z]+(?:ed|ing)", source.stem) and source.stem not in NOUNS
    if source.stem in RIDDLES or participle:
        complaints.append(f"is called {source.stem}, which says how a thing is and not what it is")
    metaphors = [word for word in source.stem.split("_") if word in METAPHORS]
    if metaphors and source.stem not in ALLOWED_METAPHORS:
        complaints.append(f"is called {source.stem}, a metaphor: {', '.join(metaphors)}")
    folder = source.folder.rpartition("/")[2]
    if source.stem.startswith(f"{folder}_"):
        complaints.append(f"says the word of its folder again: {folder}/{source.stem}")
    if len(source.stem.strip("_").split("_")) > 3:
        complaints.append(f"has a name of more than three words: {source.stem}")
    return complaints


def class_names(source: Source) -> list[str]:
    """A class is not called by a participle or a riddle alone, nor by a metaphor."""
    complaints = []
    for node in source.nodes:
        if not isinstance(node, ast.ClassDef) or node.name in CODES:
            continue
        words = [word.casefold() for word in re.findall(r"[A-Z][a-z0-9]*", node.name)]
        alone = "".join(words)
        if len(words) == 1 and (alone in RIDDLES or (re.fullmatch(r"[a-z]+(?:ed|ing)", alone) and alone not in NOUNS)):
            complaints.append(f"line {node.lineno}: {node.name} says how a thing is and not what it is")
        if node.name not in ALLOWED_METAPHORS and not METAPHORS.isdisjoint(words):
            complaints.append(f"line {node.lineno}: {node.name} is a metaphor")
    return complaints


def sentence(source: Source) -> list[str]:
    """The first sentence of a module holds a word of its name, so that path and sentence explain each other."""
    if source.stem in ("__init__", "__main__"):
        return []
    first = (ast.get_docstring(source.tree) or "").split("\n\n")[0].casefold()
    words = [word.removesuffix("s") for word in source.stem.split("_")]
    return [] if any(word in first for word in words) else [f"does not say what {source.stem} is in its first sentence"]


def package_docstring(source: Source) -> list[str]:
    """An `__init__.py` holds one sentence and nothing else."""
    if source.stem != "__init__":
        return []
    body = source.tree.body
    text = ast.get_docstring(source.tree) or ""
    if len(body) != 1 or not text:
        return ["holds more than its docstring" if text else "has no docstring"]
    return (
        []
        if re.fullmatch(r"[^\n]+[^\n.:;]\.", text) and not re.search(r"[.!?] [A-Z]", text)
        else ["is not one sentence"]
    )


def size(source: Source) -> list[str]:
    """A module that has grown too long does two things."""
    lines = source.text.count("\n")
    return [f"has {lines} lines, and {LINES} are the most"] if lines > LINES else []


def functions(source: Source) -> list[str]:
    """A function that has grown too long does two things."""
    complaints = []
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                complaints.append(f"{node.name} has {lines} lines, and {FUNCTION_LINES} are the most")
    return complaints


RULES = (names, class_names, sentence, package_docstring, size, functions)


def crowded(paths: list[str]) -> dict[str, int]:
    """The folders with too many modules, and how many each has."""
    counts: dict[str, int] = defaultdict(int)
    for path in paths:
        folder, _, name = path.rpartition("/")
        counts[folder] += name not in ("__init__.py", "__main__.py")
    return {folder: count for folder, count in counts.items() if count > MODULES}


def twins(paths: list[str]) -> dict[str, list[str]]:
    """Modules of one top-level package that have the same name; `owner` and `cli` repeat the names of what they serve."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        top, _, rest = path.partition("/")
        name = rest.rpartition("/")[2]
        if name not in ("__init__.py", "__main__.py") and not rest.startswith(("owner/", "cli/")):
            places[top, name].append(path)
    return {f"{top}: {name}": same for (top, name), same in places.items() if len(same) > 1}


def without_test(paths: list[str], tests: set[str], elsewhere: Mapping[str, str]) -> list[str]:
    """The modules whose test is not `tests/unit/<folder>/test_<module>.py`, and that name no other proof."""
    return [
        path
        for path in paths
        if not path.endswith(("__init__.py", "__main__.py"))
        and "tests/unit/{}/test_{}".format(*path.rpartition("/")[::2]) not in tests
        and path not in elsewhere
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule):
    assert {source.path: complaints for source in sources() if (complaints := rule(source))} == {}


def test_no_folder_is_crowded():
    assert crowded([source.path for source in sources("index", "syncd", "mcp_server")]) == {}


def test_no_two_modules_have_the_same_name():
    assert twins([source.path for source in sources("index", "syncd", "mcp_server")]) == {}


def test_every_module_has_its_test_or_names_another_proof():
    modules = [source.path for source in sources("index", "syncd", "mcp_server")]
    tests = {source.path for source in sources("tests")}
    assert without_test(modules, tests, PROOF_OF) == []
    assert [path for path in PROOF_OF if path not in modules] == []
    assert [test for test in PROOF_OF.values() if test not in tests] == []


def test_every_unit_test_has_its_module():
    modules = {source.path for source in sources()}
    moved_notes = []
    for source in sources("tests"):
        if source.path.startswith("tests/unit/") and source.stem.startswith("test_"):
            folder = source.folder.removeprefix("tests/unit/")
            words = source.stem.removeprefix("test_").split("_")
            stems = (
                "_".join(words[:count]) for count in range(len(words), 0, -1)
            )  # test_audit_log_repair.py tests audit_log.py
            if not any(f"{folder}/{stem}.py" in modules for stem in stems):
                moved_notes.append(source.path)
    assert moved_notes == []


def test_no_test_imports_another_test_file():
    borrowed = {
        source.path: lines
        for source in sources("tests")
        if (lines := re.findall(r"^\s*(?:from|import) tests\.(?:\w+\.)*test_\w+.*$", source.text, re.MULTILINE))
    }
    assert borrowed == {}


def test_no_unit_test_is_too_long():
    """A long one is split by what it is about: `test_audit_log_pruning.py` stands beside `test_audit_log.py`."""
    units = (source for source in sources("tests") if source.path.startswith("tests/unit/"))
    assert {source.path: complaints for source in units if (complaints := size(source))} == {}


def test_support_holds_no_tests():
    assert [
        source.path
        for source in sources("tests")
        if source.folder == "tests/support" and source.stem.startswith("test_")
    ] == []


def test_tests_stand_in_a_folder_of_their_kind():
    assert [path.name for path in (ROOT / "tests").glob("*.py") if path.name != "conftest.py"] == []


DOC = '"""A sentence."""\n'
LONG = "def f():\n" + "    x = 1\n" * FUNCTION_LINES


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        pytest.param(names, "syncd/git/beside.py", DOC, id="an adverb"),
        pytest.param(names, "syncd/git/held.py", DOC, id="a participle"),
        pytest.param(names, "syncd/git/reopened.py", DOC, id="a participle that is in no list"),
        pytest.param(names, "syncd/git/opening.py", DOC, id="a present participle"),
        pytest.param(names, "syncd/git/shelf.py", DOC, id="a metaphor"),
        pytest.param(names, "syncd/git/open_shelf.py", DOC, id="a metaphor in a name"),
        pytest.param(names, "syncd/git/git_repository.py", DOC, id="the word of the folder again"),
        pytest.param(names, "syncd/git/state_of_the_repository.py", DOC, id="a name of five words"),
        pytest.param(class_names, "syncd/git/x.py", f"{DOC}class Prepared: ...\n", id="a class called by a participle"),
        pytest.param(class_names, "syncd/git/x.py", f"{DOC}class _Bell: ...\n", id="a class called by a metaphor"),
        pytest.param(sentence, "syncd/git/hooks.py", '"""Ring when Git is done."""\n', id="a sentence about something else"),
        pytest.param(package_docstring, "syncd/git/__init__.py", "", id="no sentence"),
        pytest.param(package_docstring, "syncd/git/__init__.py", '"""Git"""\n', id="no full stop"),
        pytest.param(package_docstring, "syncd/git/__init__.py", '"""Read Git. Write Git."""\n', id="two sentences"),
        pytest.param(package_docstring, "syncd/git/__init__.py", DOC + "from syncd.git.hooks import Hook\n", id="an import"),
        pytest.param(size, "syncd/x.py", "x = 1\n" * (LINES + 1), id="a long module"),
        pytest.param(functions, "syncd/x.py", LONG, id="a long function"),
        pytest.param(functions, "syncd/x.py", LONG.replace("def", "async def"), id="a long coroutine"),
        pytest.param(functions, "syncd/x.py", "class C:\n" + re.sub("^", "    ", LONG, flags=re.MULTILINE), id="a long method"),
    ],
)  # fmt: skip
def test_a_source_that_breaks_a_rule_is_caught(rule, path, text):
    assert rule(Source(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("syncd/git/repository.py", '"""Read the repository."""\n'),
        ("syncd/git/__init__.py", DOC),
        ("syncd/git/head_moves.py", '"""Follow the moves of HEAD."""\n' + LONG.replace("    x = 1\n", "", 1)),
    ],
)
def test_a_source_that_keeps_the_rules_is_not_blamed(path, text):
    assert [complaint for rule in RULES for complaint in rule(Source(path, text))] == []


def test_a_crowded_folder_twins_and_a_module_without_test_are_caught():
    full = [f"syncd/git/m{number}.py" for number in range(MODULES)]
    assert crowded([*full, "syncd/git/__init__.py"]) == {}
    assert crowded([*full, "syncd/git/one_more.py"]) == {"syncd/git": MODULES + 1}
    assert twins(["syncd/git/hooks.py", "syncd/jobs/hooks.py"]) == {
        "syncd: hooks.py": ["syncd/git/hooks.py", "syncd/jobs/hooks.py"]
    }
    assert twins(["syncd/git/hooks.py", "syncd/cli/notes/hooks.py", "index/hooks.py"]) == {}
    assert without_test(["syncd/git/hooks.py"], {"tests/unit/syncd/git/test_hooks.py"}, {}) == []
    assert without_test(["syncd/git/hooks.py"], {"tests/unit/syncd/test_hooks.py"}, {}) == ["syncd/git/hooks.py"]
    assert without_test(["syncd/git/hooks.py"], set(), {"syncd/git/hooks.py": "tests/integration/test_git.py"}) == []


def test_every_package_is_looked_at():
    assert {source.top for source in sources()} == set(PACKAGES)
