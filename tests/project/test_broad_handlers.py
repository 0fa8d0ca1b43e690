"""`except Exception` stands only at the top of a loop, a job or a call, or around a library that loads what others made,
and logs what could not be done. What has to be put right after any failure takes `BaseException`, and raises it on.

Each of them is listed with its reason, so a new one is a decision that somebody reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.sources import Source, sources

# module, function: what goes on although one part of it failed in a way that nobody foresaw
BROAD = {
    ("index/encoders/cross_encoder.py", "RerankerModel.__init__"): "three libraries load files of others, which make them raise anything: the reranker is off, and says so",
    ("index/encoders/embedder.py", "Embedder._run"): "the loader's thread",
    ("index/encoders/sentence_transformer.py", "LocalEncoder.__init__"): "three libraries load files of others, which make them raise anything: the embedder takes the next encoder",
    ("index/search/reranker.py", "Reranker._run"): "the reranker's thread",
    ("mcp_server/operations/operation.py", "OperationRunner.run_in_thread"): "each call of an operation",
    ("mcp_server/stdio_bridge.py", "_Bridge._exchange"): "each message of the client",
    ("syncd/cli/framework/command_outcome.py", "run"): "the program: a person gets a sentence, and the trace on request",
    ("syncd/daemon/control_socket.py", "ControlServer._answer_request"): "each command of the owner",
    ("syncd/daemon/service_watchdog.py", "ServiceWatchdog._run"): "the thread that reports to the service manager",
    ("syncd/enrichment/enricher.py", "Enricher.isolate"): "the work on one note: a defect in it costs no other note, and no capture",
    ("syncd/git/head_follower.py", "HeadFollower._run"): "the thread that follows HEAD",
    ("syncd/jobs/scheduler.py", "_run_work"): "each run of a job, which must stay scheduled",
    ("syncd/jobs/worker.py", "Worker._run_handler"): "each job of the queue, which fails alone",
    ("syncd/jobs/worker.py", "Worker._work"): "the threads that work on the queue",
    ("syncd/promotion/destination_conflicts.py", "DestinationConflicts.ask"): "each capture: the others are asked about",
    ("syncd/promotion/marked_captures.py", "MarkedCaptures._decide"): "each marked capture: the others are planned",
    ("syncd/promotion/marked_captures.py", "MarkedCaptures._write_problem"): "each marked capture: the others get their reason",
    ("syncd/promotion/promotions.py", "Promotions._carry_out_plan"): "each plan: the others are carried out",
    ("syncd/promotion/promotions.py", "Promotions._trying_later"): "each promotion: the others are committed",
    ("syncd/promotion/proposal_store.py", "Proposals._carry_out_one"): "each proposal: the others are carried out",
    ("syncd/sync/index_pass.py", "IndexPass._process_window"): "each window of notes: which one is at fault is found out",
    ("syncd/sync/index_pass.py", "IndexPass._read_notes"): "each note: the others are read",
    ("syncd/sync/pipeline.py", "Sync._run_loop"): "the pipeline's thread",
    ("syncd/watch/folder_events.py", "FolderEvents.dispatch"): "each event of the observer's thread",
    ("syncd/watch/watcher.py", "Watcher._supervise"): "the thread that looks after the observer",
}  # fmt: skip
LOGGING = frozenset({"exception", "error", "warning"})


@cache
def broad_handlers(source: Source) -> tuple[tuple[str, ast.ExceptHandler], ...]:
    """Each handler that takes any exception and does not raise all of them on, with the function that it stands in."""

    def visit(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.ExceptHandler]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ExceptHandler) and _takes_anything(child.type) and not _raises_on(child):
                yield inside, child
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            yield from visit(child, f"{inside}.{child.name}".lstrip(".") if named else inside)

    return tuple(visit(source.tree, ""))


def _takes_anything(caught: ast.expr | None) -> bool:
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(name is None or ast.unparse(name).rpartition(".")[2] in ("Exception", "BaseException") for name in names)


def _raises_on(handler: ast.ExceptHandler) -> bool:
    """Whether it takes every exception, an interruption too, and ends by raising what it caught."""
    last = handler.body[-1]
    takes_all = handler.type is None or ast.unparse(handler.type) == "BaseException"
    return takes_all and isinstance(last, ast.Raise) and last.exc is None


def complaints(source: Source) -> list[str]:
    """What is wrong with the broad handlers of a module."""
    problems = []
    for function, handler in broad_handlers(source):
        if (source.path, function) not in BROAD:
            problems.append(
                f"line {handler.lineno}: {function or 'the module'} catches everything; name what it expects"
            )
        elif not _logs(handler) and not _calls_any(handler, _tellers(source)):
            problems.append(f"line {handler.lineno}: {function} catches everything and logs nothing")
    return problems


def _tellers(source: Source) -> set[str]:
    """The functions of a module that log."""
    functions = (node for node in source.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if _logs(function)}


def _logs(node: ast.AST) -> bool:
    """Whether it writes a sentence into the log."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in LOGGING
        and (ast.unparse(call.func.value) == "log" or "getLogger" in ast.unparse(call.func.value))
        and bool(call.args)
        and isinstance(call.args[0], ast.Constant)
        for call in ast.walk(node)
    )


def _calls_any(node: ast.AST, names: set[str]) -> bool:
    calls = (ast.unparse(call.func).removeprefix("self.") for call in ast.walk(node) if isinstance(call, ast.Call))
    return not names.isdisjoint(calls)


def test_only_the_listed_functions_catch_everything_and_each_logs_it():
    assert {source.path: found for source in sources() if (found := complaints(source))} == {}


def test_the_list_names_no_function_that_catches_less():
    broad = {(source.path, function) for source in sources() for function, _ in broad_handlers(source)}
    assert set(BROAD) - broad == set()


LISTED = "def run():\n    try:\n        work()\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except Exception:\n        log.exception('x')", id="not listed"),
        pytest.param("syncd/x.py", "try:\n    x()\nexcept Exception:\n    pass", id="in a module"),
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except:\n        pass", id="bare"),
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except BaseException:\n        pass", id="the base of all"),
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except (OSError, Exception):\n        pass", id="among others"),
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except builtins.Exception:\n        pass", id="by its module"),
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except Exception as e:\n        raise ValueError from e", id="as another"),
        pytest.param("syncd/x.py", "def f():\n    try:\n        x()\n    except Exception:\n        undo()\n        raise", id="but interruptions"),
        pytest.param("syncd/cli/framework/command_outcome.py", f"{LISTED}    except Exception:\n        return 1", id="listed, and mute"),
        pytest.param("syncd/cli/framework/command_outcome.py", f"{LISTED}    except Exception:\n        log.debug('x')", id="listed, and whispering"),
        pytest.param("syncd/cli/framework/command_outcome.py", f"{LISTED}    except Exception as e:\n        log.error(e)", id="listed, and without words"),
        pytest.param("syncd/cli/framework/command_outcome.py", f"{LISTED}    except Exception:\n        other()\ndef f():\n    log.error('x')", id="told elsewhere"),
        pytest.param("syncd/cli/framework/command_outcome.py", "class A:\n  def run():\n    try:\n        x()\n    except Exception:\n        log.error('x')", id="a namesake"),
    ],
)  # fmt: skip
def test_a_source_that_catches_everything_is_caught(path, text):
    assert complaints(Source(path, text))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("syncd/x.py", "def f():\n    try:\n        x()\n    except BaseException:\n        undo()\n        raise"),
        ("syncd/x.py", "def f():\n    try:\n        x()\n    except (OSError, ValueError):\n        pass"),
        (
            "syncd/cli/framework/command_outcome.py",
            f"{LISTED}    except Exception:\n        log.exception('the command failed')",
        ),
        (
            "syncd/cli/framework/command_outcome.py",
            f"{LISTED}    except Exception:\n        tell()\ndef tell():\n    log.error('it failed')",
        ),
    ],
)
def test_a_source_that_keeps_the_rule_is_not_blamed(path, text):
    assert complaints(Source(path, text)) == []
