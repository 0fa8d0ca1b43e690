"""Purity, library homes, names and injection: what a module may import and call.

Layers are in `test_layers.py`, folders and sizes in `test_folders.py`. Each rule is a function from one source to its
complaints, and is itself tried on a source that breaks it."""

from __future__ import annotations

import ast
import inspect
import io
import re
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import packages_distributions

import pytest

from tests.support.paths import ROOT
from tests.support.sources import PACKAGES, Source, called, imports, sources

# Decisions: functions of values. They import each other, and nothing that has a device behind it. Packages that are pure as a whole:
PURE_PACKAGES = (
    "index/text",
    "index/topics",
    "syncd/notes",
    "syncd/notes/secret_rules",
    "syncd/documents",
    "syncd/links",
    "syncd/consolidation/analysis",
    "syncd/cli/terminal",
    "mcp_server/answers",
)
# and single modules:
PURE = (
    "index/deferred_patterns.py", "index/document_ids.py", "index/errors.py", "index/graph/unlinked_names.py", "index/graph/vertex.py",
    "index/memos/metadata_filter.py", "index/model.py", "index/names.py", "index/observations/observation_rows.py",
    "index/observations/perspectives.py", "index/query.py", "index/search/fusion.py",
    "index/search/vector_similarity.py", "index/storage/chunk_rows.py", "index/storage/resident_rows.py", "index/storage/resident_words.py",
    "mcp_server/guard/token_bucket.py", "syncd/changes/change_note.py", "syncd/changes/proposed_text.py", "syncd/changes/unified_diff.py",
    "syncd/commits/commit_message.py", "syncd/commits/own_changes.py",
    "syncd/jobs/job_names.py", "syncd/cli/notes/review_file.py",
    "syncd/files/conversion/readers/clean_text.py", "syncd/files/conversion/readers/page_layout.py",
    "syncd/git/repository_state.py", "syncd/graph/diagrams.py", "syncd/graph/attention_report.py",
    "syncd/graph/memory_json.py", "syncd/graph/missing_relations.py", "syncd/graph/node_request.py",
    "syncd/graph/similar_nodes.py", "syncd/history/digest_chain.py", "syncd/promotion/promoted_note.py",
    "syncd/review/archive_rules.py", "syncd/review/bases_table.py", "syncd/review/suggestions.py",
    "syncd/settings/cron_schedule.py", "syncd/sync/change_plan.py", "syncd/sync/debounce.py",
    "syncd/uploads/upload_request.py", "syncd/vault/instruction_files.py", "syncd/vault/location.py", "syncd/vault/path_rules.py",
)  # fmt: skip
# A lock that limits how much memory several callers need at once; it changes no result.
LOCKS = frozenset([("syncd/notes/markdown_outline.py", "threading")])
DEVICES = frozenset(
    [
        "os",
        "sys",
        "time",
        "random",
        "secrets",
        "logging",
        "threading",
        "asyncio",
        "pathlib",
        "subprocess",
        "socket",
        "shutil",
        "tempfile",
        "signal",
        "ctypes",
        "io",
        "select",
        "concurrent",
        "multiprocessing",
        "sqlite3",
        "lancedb",
        "pyarrow",
        "onnx",
        "onnxruntime",
        "torch",
        "sentence_transformers",
        "httpx2",
        "watchdog",
        "git",
        "apscheduler",
        "mcp",
        "starlette",
        "uvicorn",
        "click",
        "anyio",
        "urllib.request",
        "http",
    ]
)
# Reading the clock, the dice or a file needs no import: by name, as a call.
IMPURE_CALLS = frozenset(
    {
        "open",
        "input",
        "print",
        "now",
        "utcnow",
        "today",
        "uuid1",
        "uuid4",
        "read_text",
        "write_text",
        "read_bytes",
        "write_bytes",
    }
)

# Replacing a library rewrites one place. Patterns; several mean that it has different work in each.
HOMES = {
    "anyio": ("mcp_server/*",),
    "apscheduler": ("syncd/jobs/timer.py",),
    "click": ("syncd/cli*.py",),
    "charset_normalizer": ("syncd/files/conversion/readers/plain_text.py",),
    "ctypes": (
        "index/process_memory.py",
        "syncd/files/conversion/process_sandbox.py",
        "syncd/files/conversion/readers/pdf.py",
        "syncd/vault/openat.py",
    ),
    "frontmatter": ("syncd/notes/property_reader.py",),
    "git": ("syncd/git/command.py",),
    "httpx2": (
        "syncd/enrichment/chat_endpoint.py",
        "index/encoders/*",
        "mcp_server/guard/cloudflare_access.py",
        "mcp_server/stdio_bridge.py",
    ),
    "justhtml": ("syncd/files/conversion/readers/html_page.py",),
    "jwt": ("mcp_server/guard/cloudflare_access.py",),
    "huggingface_hub": ("index/encoders/*",),
    "jinja2": ("syncd/page/web/templates.py",),
    "lancedb": ("index/storage/lancedb_import.py",),
    "mammoth": ("syncd/files/conversion/readers/word_and_excel.py",),
    "markdown_it": ("syncd/notes/markdown_outline.py", "syncd/page/web/note_html.py"),
    "markupsafe": ("syncd/page/web/*",),
    "mcp": ("mcp_server/*",),
    "numpy": ("index/*",),
    "opentelemetry": ("syncd/telemetry/request_traces.py",),
    "onnxruntime": ("index/encoders/*",),
    "prometheus_client": ("mcp_server/http/metrics_page.py",),
    "pyarrow": ("index/storage/arrow_rows.py", "index/storage/lancedb_table.py"),
    "pydantic": ("mcp_server/*", "index/deferred_models.py"),
    "pydantic_core": ("mcp_server/*",),
    "pypdfium2": ("syncd/files/conversion/readers/pdf.py",),
    "pyseccomp": ("syncd/files/conversion/syscall_filter.py",),
    "python_calamine": ("syncd/files/conversion/readers/word_and_excel.py",),
    "rjieba": ("index/text/words.py",),
    "python_multipart": ("syncd/uploads/form_parser.py",),
    "sentence_transformers": ("index/encoders/*",),
    "sqlite3": ("index/catalog/catalog.py", "index/catalog/sqlite_*.py", "syncd/state/ledger*.py"),
    "starlette": ("mcp_server/*", "syncd/page/*"),
    "tomlkit": ("syncd/clients/entry_editor.py",),
    "torch": ("index/encoders/*",),
    "transformers": ("index/encoders/*",),
    "uvicorn": ("mcp_server/*", "syncd/page/server.py"),
    "watchdog": ("syncd/watch/folder_events.py",),
    "yaml": ("syncd/notes/property_reader.py",),
}

# Where libraries of the extra `models` may be imported: nothing else needs them.
OF_MODELS = frozenset(f"index/encoders/{name}.py" for name in ("cross_encoder", "model_files", "sentence_transformer"))

SHAPELESS = frozenset(
    ["util", "utils", "helper", "helpers", "manager", "managers", "factory", "factories", "base", "common", "misc"]
)
# Bases that people know: a family of tools, and a file of Obsidian.
TERMS = re.compile(r"knowledge_base|service_manager")  # words of the field that hold a shapeless one
HOLDING_ANYTHING = frozenset(["found", "told", "said", "own", "one", "given"])  # names of locals that hold anything
VAGUE = re.compile(r"(?:Manager|Helper|Helpers|Factory|Utils|Service)\Z")


def _file(module: str) -> str | None:
    """The path of a module of the project; None for a name in a module, or a library."""
    for path in (module.replace(".", "/") + ".py", module.replace(".", "/") + "/__init__.py"):
        if module.partition(".")[0] in PACKAGES and (ROOT / path).exists():
            return path
    return None


# The rules


def pure(path: str) -> bool:
    """Whether a module decides alone: it stands in a pure package, or in the list."""
    return path in PURE or path.rpartition("/")[0] in PURE_PACKAGES


def purity(source: Source) -> list[str]:
    """A pure module has no device, no clock and no dice, and leans on pure modules only."""
    if not pure(source.path):
        return []
    found = []
    for module, _ in imports(source):
        if (module in DEVICES or module.partition(".")[0] in DEVICES) and (source.path, module) not in LOCKS:
            found.append(f"imports {module}")
        path = _file(module)
        if path and not pure(path) and not path.endswith("/__init__.py"):
            found.append(f"leans on {path}, which is not pure")
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    return found + [
        f"line {call.lineno}: calls {called(call.func)}()" for call in calls if called(call.func) in IMPURE_CALLS
    ]


def homes(source: Source) -> list[str]:
    """Each library is imported where its home is, and a new one is given a home first."""
    found = []
    for module, _ in imports(source):
        library = module.partition(".")[0]
        if library in HOMES:
            if not any(fnmatchcase(source.path, home) for home in HOMES[library]):
                found.append(f"imports {library}, whose home is {' and '.join(HOMES[library])}")
        elif library and library not in sys.stdlib_module_names and library not in (*PACKAGES, "tests"):
            found.append(f"imports {library}, which has no home")
    return found


def undeclared(source: Source) -> list[str]:
    """A library that is imported is declared, so that it does not go when another one no longer needs it."""
    libraries = {module.partition(".")[0] for module, _ in imports(source)} - {"", "tests", *PACKAGES}
    return [
        f"imports {library}, which pyproject.toml does not declare"
        for library in sorted(libraries - sys.stdlib_module_names)
        if not declared(source.path in OF_MODELS).intersection(map(distribution, bringing().get(library, ())))
    ]


@cache
def declared(with_models: bool) -> frozenset[str]:
    """The distributions that an install brings, or its extra `otel`, and with the extra `models` what that brings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["otel"], *(extras["models"] if with_models else [])]
    return frozenset(distribution(re.split(r"[<>=!~\[; ]", line)[0]) for line in wanted)


@cache
def bringing() -> Mapping[str, Sequence[str]]:
    """The distributions that bring each library."""
    return packages_distributions()


def distribution(name: str) -> str:
    """The name of a distribution as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def shapeless(source: Source) -> list[str]:
    """A name says what the thing is for."""
    path = TERMS.sub("", source.path.removesuffix(".py"))
    stems = [part for name in path.split("/") for part in name.split("_")]
    found = [f"is called {stem}" for stem in stems if stem in SHAPELESS]
    return found + [
        f"class {node.name}" for node in source.nodes if isinstance(node, ast.ClassDef) and VAGUE.search(node.name)
    ]


def local_names(source: Source) -> list[str]:
    """A local or a parameter has the name of what it holds."""
    fields = {
        id(line.target)
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign)
    }
    complaints = []
    for node in source.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.MatchAs(name=str(name)):
                if name in HOLDING_ANYTHING and id(node) not in fields:
                    complaints.append(f"line {node.lineno}: {name} may be anything")
    return complaints


def injection(source: Source) -> list[str]:
    """Text never becomes a filter: LanceDB renders expressions wrongly, and an f-string renders anything."""
    found = []
    home = source.path == "index/storage/lancedb_table.py"
    for node in source.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        method = node.func.attr
        named = {keyword.arg for keyword in node.keywords}
        if method == "to_sql":
            found.append(f"line {node.lineno}: to_sql() is injectable")
        if method == "update" and named & {"where", "updates", "updates_sql", "values_sql"}:
            found.append(f"line {node.lineno}: update() of a table is injectable")
        if method == "where" and not home and node.args and any(_woven(part) for part in ast.walk(node.args[0])):
            found.append(f"line {node.lineno}: a filter is woven from text")
    return found


def _woven(node: ast.AST) -> bool:
    """Whether a string is put together here: an f-string, +, % or format()."""
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "join")):
            return True
    return False


def documented(source: Source) -> list[str]:
    """Every module says in its first sentence what it decides or touches."""
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)  # a tree of each file takes long
    begins = next(token for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL))
    text = ast.literal_eval(begins.string) if begins.type == tokenize.STRING else ""
    if not text:
        return ["has no docstring"]
    first = inspect.cleandoc(text).split("\n\n")[0]
    return (
        []
        if first.rstrip().endswith((".", "!", "?", '."'))
        else ["has a docstring whose first paragraph is no sentence"]
    )


RULES: tuple[Callable[[Source], list[str]], ...] = (
    purity,
    homes,
    undeclared,
    shapeless,
    local_names,
    injection,
    documented,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule):
    assert {source.path: found for source in sources() if (found := rule(source))} == {}


def test_a_library_with_one_home_is_imported_in_one_file():
    where = defaultdict(set)
    for source in sources():
        for module, _ in imports(source):
            where[module.partition(".")[0]].add(source.path)
    alone = [library for library, patterns in HOMES.items() if len(patterns) == 1 and "*" not in patterns[0]]
    assert {library: where[library] for library in alone if len(where[library]) > 1} == {}


def test_tests_are_documented():
    assert {source.path: complaints for source in sources("tests") if (complaints := documented(source))} == {}


DOC = '"""A sentence."""\n'


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        pytest.param(purity, "syncd/sync/change_plan.py", "import os", id="a device"),
        pytest.param(purity, "syncd/notes/new_module.py", "import os", id="a device, in a pure package"),
        pytest.param(purity, "syncd/notes/front_matter.py", "import threading", id="a lock, in another module"),
        pytest.param(purity, "syncd/notes/markdown_outline.py", "import time", id="a device, where a lock may be"),
        pytest.param(purity, "syncd/sync/change_plan.py", "import os.path", id="part of a device"),
        pytest.param(purity, "syncd/sync/change_plan.py", "from time import monotonic", id="a clock"),
        pytest.param(purity, "syncd/sync/change_plan.py", "def f():\n    import random", id="dice, lazily"),
        pytest.param(purity, "index/search/fusion.py", "from syncd.vault import vault", id="an edge of our own"),
        pytest.param(purity, "index/search/fusion.py", "from syncd.vault.vault import Vault", id="something of an edge of our own"),
        pytest.param(purity, "syncd/sync/change_plan.py", "from datetime import datetime\nx = datetime.now()", id="the time of day"),
        pytest.param(purity, "syncd/sync/change_plan.py", "import uuid\nx = uuid.uuid4()", id="a random id"),
        pytest.param(purity, "syncd/sync/change_plan.py", "x = open('x')", id="a file"),
        pytest.param(homes, "syncd/x.py", "import lancedb", id="a library outside its home"),
        pytest.param(homes, "index/storage/chunk_store.py", "import pyarrow.compute as pc", id="part of one"),
        pytest.param(homes, "index/x.py", "def f():\n    import torch", id="one lazily"),
        pytest.param(homes, "syncd/x.py", "import requests", id="a library without a home"),
        pytest.param(undeclared, "syncd/x.py", "import requests", id="a library that only another one brings"),
        pytest.param(undeclared, "syncd/x.py", "def f():\n    from pytest import fixture", id="one of development alone"),
        pytest.param(undeclared, "index/encoders/x.py", "import torch", id="one of an extra"),
        pytest.param(undeclared, "syncd/x.py", "import no_such_library", id="one that is not installed"),
        pytest.param(shapeless, "syncd/utils.py", "", id="utils"),
        pytest.param(shapeless, "syncd/vault_helpers.py", "", id="helpers at the end"),
        pytest.param(shapeless, "index/base/x.py", "", id="a folder"),
        pytest.param(shapeless, "syncd/x.py", "class VaultManager: ...", id="a manager"),
        pytest.param(local_names, "index/x.py", "def f(path):\n    found = path", id="a local that says nothing"),
        pytest.param(local_names, "index/x.py", "def f(given):\n    pass", id="a parameter that says nothing"),
        pytest.param(local_names, "index/x.py", "x = [one for one in paths]", id="an item that says nothing"),
        pytest.param(injection, "index/x.py", "table.where(f'a = {b}')", id="an f-string as a filter"),
        pytest.param(injection, "index/x.py", "table.search(x).where('a = ' + b).limit(1)", id="a sum as a filter"),
        pytest.param(injection, "index/x.py", "table.where('a = %s' % b)", id="a percent as a filter"),
        pytest.param(injection, "index/x.py", "table.where('a = {}'.format(b))", id="a format as a filter"),
        pytest.param(injection, "index/x.py", "table.where(x if y else f'a = {b}')", id="one of two"),
        pytest.param(injection, "index/storage/lancedb_table.py", "x.to_sql()", id="to_sql, in its very home"),
        pytest.param(injection, "index/storage/lancedb_table.py", "table.update(where=x, updates={})", id="update of a table"),
    ],
)  # fmt: skip
def test_a_source_that_breaks_a_rule_is_caught(rule, path, text):
    assert rule(Source(path, DOC + text))


@pytest.mark.parametrize("text", ["", "x = 1\n", '"""no sentence"""\n', "# a comment\n"])
def test_a_module_without_a_sentence_is_caught(text):
    assert documented(Source("syncd/x.py", text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("mcp_server/x.py", "import mcp\nfrom syncd.vault.vault import Vault\nfrom index.errors import NotFound"),
        ("syncd/sync/change_plan.py", "import uuid\nfrom index.model import Stat\nx = uuid.uuid5"),
        ("index/x.py", "import hashlib\nhashlib.sha256().update(b'')\nx.where(condition)\n{}.update(a=1)"),
        (
            "index/storage/lancedb_table.py",
            "from index.storage.lancedb_import import lancedb\nimport pyarrow\nx.where(f'{a} = 1')",
        ),
        ("syncd/database.py", "class Base: ...\nfrom . import place"),
    ],
)
def test_a_source_that_keeps_the_rules_is_not_blamed(path, text):
    assert [found for rule in RULES for found in rule(Source(path, DOC + text))] == []
