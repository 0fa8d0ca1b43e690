"""The layers of the packages: each imports only what stands below it, nothing goes round in a circle, agents see no vault."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import pytest

from tests.support.sources import PACKAGES, Source, imports, sources

# A package imports from the lines above its own. Packages on one line do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("vault_fixtures",),
    (
        "index.errors",
        "index.model",
        "index.document_ids",
        "index.names",
        "index.tracing",
        "index.process_memory",
        "index.deferred_models",
        "index.deferred_patterns",
        "index.foreground",
    ),
    ("index.store_failures", "index.timings"),
    ("index.encoders", "index.text"),
    ("index.query", "index.topics"),
    ("index.graph", "index.storage"),
    ("index.catalog",),
    ("index.memos", "index.search"),
    ("index.observations",),
    ("index.scope",),
    ("syncd.state", "syncd.vault", "syncd.version"),
    ("syncd.notes.secret_rules",),
    ("syncd.git", "syncd.notes", "syncd.settings", "syncd.watch"),
    ("syncd.documents", "syncd.links", "syncd.remote", "syncd.telemetry"),
    ("syncd.files.conversion.readers", "syncd.indexes"),
    ("syncd.files.conversion", "syncd.enrichment", "syncd.history", "syncd.measurement", "syncd.sharing"),
    ("syncd.changes", "syncd.commits", "syncd.context", "syncd.jobs", "syncd.sync"),
    ("syncd.uploads",),
    ("syncd.captures",),
    ("syncd.files", "syncd.graph", "syncd.promotion"),
    ("syncd.memos", "syncd.review", "syncd.consolidation.analysis"),
    ("syncd.consolidation", "syncd.workspaces"),
    ("mcp_server.http", "mcp_server.answers", "mcp_server.stdio_bridge"),
    ("mcp_server.operations",),
    ("mcp_server.tools",),
    ("mcp_server.protocol", "mcp_server.rest"),
    ("mcp_server.guard",),
    ("mcp_server.server",),
    ("syncd.daemon", "syncd.installation"),
    ("syncd.owner",),
    ("syncd.app", "syncd.stdio"),
    ("syncd.cli.terminal",),
    ("syncd.clients",),
    ("syncd.page.web",),
    ("syncd.page.views",),
    ("syncd.page",),
    ("syncd.cli.framework", "syncd.cli.doctor"),
    ("syncd.cli.clients",),
    ("syncd.cli.notes", "syncd.cli.graph", "syncd.cli.daemon", "syncd.cli.models", "syncd.cli.page"),
    ("syncd.cli",),
)
LEVEL = {package: level for level, line in enumerate(LAYERS) for package in line}

# Which top-level package may know which other, whatever the layers say.
TOPS = {"vault_fixtures": (), "index": (), "syncd": ("index", "vault_fixtures"), "mcp_server": ("index", "syncd")}

# Only these two files look both ways: from the daemon to the server that agents talk to. They import it late, when they serve.
ROOTS = {"syncd.app": "mcp_server.server", "syncd.stdio": "mcp_server.stdio_bridge"}

# Law 1, captures only: what serves agents holds nothing of these, so that no tool and no route can reach the vault's notes.
OWNERS_OWN = tuple(
    f"syncd.{name}"
    for name in (
        "indexes",
        "vault",
        "sync",
        "sharing",
        "promotion",
        "review",
        "consolidation",
        "owner",
        "daemon",
        "cli",
        "page",
        "app",
    )
)

# What the page may import besides itself: the socket's client, settings, the lock of a process, and pure modules.
PAGE_IMPORTS = (
    *(
        "index.errors",
        "index.names",
        "index.text",
        "index.timings",
        "syncd.notes",
        "syncd.documents",
        "syncd.links",
        "syncd.cli.terminal",
        "syncd.changes.unified_diff",
    ),
    *(
        "syncd.clients",
        "syncd.daemon.control_socket",
        "syncd.jobs.job_names",
        "syncd.settings",
        "syncd.state.process_lock",
        "syncd.uploads.form_parser",
        "syncd.uploads.local_files",
        "syncd.version",
    ),
)

# What agents' calls run through holds the captures' index and the window's. Whatever names the builds could reach the vault's own.
AGENTS_WAY = ("syncd/captures", "syncd/memos", "syncd/sharing", "syncd/workspaces")
ALL_INDEXES = tuple(f"syncd.indexes.index_builds.{name}" for name in ("Build", "IndexBuilds", "SCOPES"))


def package_of(module: str) -> str:
    """The longest listed name that a module is or lies in; "" when none is listed."""
    while module and module not in LEVEL:
        module = module.rpartition(".")[0]
    return module


def layers(source: Source) -> list[str]:
    """A package imports only packages on lower layers. Imports for types and inside functions count."""
    home = package_of(source.module)
    complaints = [] if home or source.module in PACKAGES else ["stands in no listed package"]
    for module, _ in imports(source):
        other = package_of(module)
        if module.partition(".")[0] not in PACKAGES or not other or other == home or ROOTS.get(source.module) == other:
            continue
        if not home or LEVEL[other] >= LEVEL[home]:
            complaints.append(f"imports {module}, which is not below {home or source.module}")
    return complaints


def tops(source: Source) -> list[str]:
    """`index` knows neither `syncd` nor `mcp_server`; `syncd` knows the server only in its two roots, and late."""
    complaints = []
    for module, at_once in imports(source):
        top = module.partition(".")[0]
        if top == "tests":
            complaints.append(f"imports {module}")
        if top not in PACKAGES or top == source.top or top in TOPS[source.top]:
            continue
        if top == "mcp_server" and source.module in ROOTS and not at_once:
            continue
        complaints.append(f"imports {module}")
    return complaints


def walls(source: Source) -> list[str]:
    """Nothing that serves agents imports a package that holds the vault or works for its owner."""
    if source.top != "mcp_server":
        return []
    return [
        f"imports {module}, which no agent may reach"
        for module, _ in imports(source)
        if any(module == package or module.startswith(f"{package}.") for package in OWNERS_OWN)
    ]


def page_client(source: Source) -> list[str]:
    """The page is a client of the control socket: it imports what commands that ask the daemon import, and pure modules."""
    if not f"{source.module}.".startswith("syncd.page."):
        return []
    return [
        f"imports {module}, which the page may not hold"
        for module, _ in imports(source)
        if module.partition(".")[0] in PACKAGES
        and not any(module == name or module.startswith(f"{name}.") for name in ("syncd.page", *PAGE_IMPORTS))
    ]


def window(source: Source) -> list[str]:
    """No module that agents' calls run through imports the builds, or takes the vault's own index out of anything."""
    if source.folder not in AGENTS_WAY:
        return []
    complaints = [
        f"imports {module}, which holds the vault's own index" for module, _ in imports(source) if module in ALL_INDEXES
    ]
    for node in source.nodes:
        match node:
            case ast.Subscript(slice=ast.Constant(value="vault")) | ast.Attribute(attr="builds"):
                complaints.append(f"line {node.lineno}: reaches for the vault's own index")
    return complaints


RULES = (layers, tops, walls, page_client, window)


def circles(arrows: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other, each sorted: strongly connected components by Tarjan's algorithm (1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in arrows.get(node, ()):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            at = stack.index(node)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                groups.append(sorted(group))

    for node in arrows:
        if node not in order:
            visit(node)
    return sorted(groups)


def arrows_between(modules: Iterable[Source]) -> dict[str, set[str]]:
    """For each module the modules of the project that it imports."""
    by_name = {source.module: source for source in modules}
    return {
        name: {module for module, _ in imports(source) if module in by_name and module != name}
        for name, source in by_name.items()
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule):
    assert {source.path: complaints for source in sources() if (complaints := rule(source))} == {}


def test_no_modules_import_each_other_in_a_circle():
    assert circles(arrows_between(sources())) == []


def test_every_listed_package_exists():
    modules = {source.module for source in sources()}
    assert set(LEVEL) <= modules


DOC = '"""A sentence."""\n'


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        pytest.param(layers, "syncd/git/x.py", "from syncd.history.undo import Undo", id="upwards"),
        pytest.param(layers, "syncd/git/x.py", "from syncd.notes.front_matter import split", id="sideways"),
        pytest.param(layers, "syncd/git/x.py", "def f():\n    import syncd.history.undo", id="upwards, inside a function"),
        pytest.param(layers, "syncd/git/x.py", "if TYPE_CHECKING:\n    from syncd.app import App", id="upwards, for a type"),
        pytest.param(layers, "syncd/git/x.py", "from ..history import undo", id="upwards, relatively"),
        pytest.param(layers, "syncd/git/x.py", "import importlib\nimportlib.import_module('syncd.history.undo')", id="upwards, by name"),
        pytest.param(layers, "syncd/unheard/x.py", "", id="a package that is not listed"),
        pytest.param(layers, "syncd/files/conversion/x.py", "from syncd.files.file_note_writer import PlannedNote", id="from within to the outer package"),
        pytest.param(layers, "index/model.py", "from index.graph.graph import Graph", id="the ground imports a sub-package"),
        pytest.param(tops, "syncd/cli/main.py", "def f():\n    import mcp_server.stdio_bridge", id="the command line reaches for the server"),
        pytest.param(tops, "index/x.py", "import syncd.vault.location", id="the index reaches for the daemon"),
        pytest.param(tops, "index/x.py", "from mcp_server.tools import thoughts", id="the index reaches for the server"),
        pytest.param(tops, "index/x.py", "import vault_fixtures", id="the index reaches for the demo vault"),
        pytest.param(tops, "syncd/app.py", "import mcp_server.server", id="the root imports the server at once"),
        pytest.param(tops, "syncd/app.py", "from mcp_server import server", id="the root imports the server at once, from"),
        pytest.param(tops, "vault_fixtures/x.py", "from index import model", id="the demo vault reaches for the index"),
        pytest.param(tops, "syncd/x.py", "from tests.support.fakes import clock", id="the product reaches for its tests"),
        *(
            pytest.param(walls, "mcp_server/x.py", f"def f():\n    from {package} import x", id=f"an agent reaches {package}")
            for package in OWNERS_OWN
        ),
        *(
            pytest.param(page_client, "syncd/page/views/x.py", f"def f():\n    from {package} import x", id=f"the page reaches {package}")
            for package in ("syncd.owner", "syncd.app", "syncd.daemon.health", "syncd.vault.vault", "syncd.state.ledger", "index.scope", "mcp_server.server", "vault_fixtures")
        ),
        pytest.param(walls, "mcp_server/tools/x.py", "from syncd.vault.vault import Vault", id="an agent reaches a module of the vault"),
        *(
            pytest.param(window, "syncd/sharing/x.py", f"from syncd.indexes.index_builds import {name.rpartition('.')[2]}", id=f"the window imports {name}")
            for name in ALL_INDEXES
        ),
        pytest.param(window, "syncd/sharing/window.py", "x = indexes['vault']", id="the window takes the vault's own index"),
        pytest.param(window, "syncd/workspaces/workspace.py", "def f(opened):\n    return opened.builds.live", id="a workspace reaches for the builds"),
    ],
)  # fmt: skip
def test_a_source_that_breaks_a_rule_is_caught(rule, path, text):
    assert rule(Source(path, DOC + text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("syncd/app.py", "def serve():\n    from mcp_server.server import serve"),
        (
            "mcp_server/tools/x.py",
            "import mcp\nfrom syncd.workspaces.workspace import Workspace\nfrom index.errors import NotFound",
        ),
        ("syncd/sharing/window.py", "from syncd.indexes.shared_index import SharedIndex\nscope = 'vault'"),
        ("syncd/captures/x.py", "from syncd.indexes.index_builds import ScopeIndex"),
        ("syncd/sync/x.py", "from syncd.indexes.index_builds import Build\nx = build.indexes['vault']"),
        ("syncd/history/x.py", "from syncd.vault import atomic_write\nfrom syncd.history.audit_log import Author"),
        ("syncd/files/x.py", "from syncd.files.conversion.converter import Limits"),
    ],
)
def test_a_source_that_keeps_the_rules_is_not_blamed(path, text):
    assert [complaint for rule in RULES for complaint in rule(Source(path, DOC + text))] == []


@pytest.mark.parametrize(
    ("arrows", "groups"),
    [
        pytest.param({"a": "b", "b": "c", "c": ""}, [], id="a chain"),
        pytest.param({"a": "bc", "b": "d", "c": "d", "d": ""}, [], id="two ways to one end"),
        pytest.param({"a": "b", "b": "a"}, [["a", "b"]], id="two"),
        pytest.param({"a": "b", "b": "c", "c": "ad", "d": "e", "e": "d"}, [["a", "b", "c"], ["d", "e"]], id="three, and two behind them"),
    ],
)  # fmt: skip
def test_circles_are_found(arrows, groups):
    assert circles(arrows) == groups


def test_an_import_for_types_makes_a_circle():
    a = Source("syncd/a.py", DOC + "from syncd.b import B")
    b = Source("syncd/b.py", DOC + "if TYPE_CHECKING:\n    from syncd.a import A")
    assert circles(arrows_between([a, b])) == [["syncd.a", "syncd.b"]]
