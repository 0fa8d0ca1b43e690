"""Write the reference pages of the tools: description, arguments and answer of each, from the schemas that validate the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_server.operations.operation import Operation
from mcp_server.operations.wire_format import compact_schema
from mcp_server.tools.families import FAMILIES
from tests.documents.markdown_text import cell, code, prose, table

TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "thoughts": ("Tools: thoughts", "five tools that capture, find, list and delete notes"),
    "kb": ("Tools: kb", "tools for notes, files and entities as documents in collections, with a queue for uploads"),
    "memory": ("Tools: memory", "memos with metadata in namespaces, and relations between memos"),
    "graph": ("Tools: graph", "entities with facts and relations"),
}


def render_pages() -> dict[str, str]:
    """Return a page for each family; the large family has one page for the tools that read and one for those that write."""
    pages = {}
    for family, operations in FAMILIES.items():
        title, purpose = TITLES[family]
        head = f"Look up here the arguments and answers of {purpose}. [All tools](index.md)\n\n"
        if family == "graph":
            for scope, verb in (("write", "change"), ("read", "read")):
                mine = [operation for operation in operations if operation.scope == scope]
                pages[f"tools/graph-{scope}.md"] = f"# {title}, those that {verb}\n\n{head}" + "".join(
                    map(_describe, mine)
                )
        else:
            pages[f"tools/{family}.md"] = f"# {title}\n\n{head}" + "".join(map(_describe, operations))
    return {"tools/index.md": _index()} | pages


def page_of(operation: Operation) -> str:
    """Return the page that describes an operation."""
    return f"graph-{operation.scope}.md" if operation.family == "graph" else f"{operation.family}.md"


def _index() -> str:
    lines = ["# Tools\n\nFind the tool that does what you want, and follow its link to the arguments.\n\n"]
    for family, operations in FAMILIES.items():
        rows = [
            (f"[`{one.safe_name}`]({page_of(one)}#{one.safe_name})", one.scope, cell(one.title)) for one in operations
        ]
        lines.append(f"## {family}\n\nEndpoint: `/mcp/{family}`\n\n" + table(("tool", "scope", "what it does"), rows))
    return "".join(lines)


def _describe(operation: Operation) -> str:
    schema = compact_schema(operation.given, exact=True)
    answer = compact_schema(operation.returned, output=True)
    facts = [f"Scope: `{operation.scope}`"]
    facts += ["changes or deletes what is there"] if operation.destructive else []
    facts += ["" if operation.idempotent else "a second call may do more"]
    returns = [code(name) for name in answer.get("properties", {})]
    return "".join(
        (
            f"## {operation.safe_name}\n\n{prose(operation.description)}\n\n",
            "; ".join(fact for fact in facts if fact) + ".\n\n",
            table(("argument", "type", "meaning"), _rows(schema)),
            f"Answer: {', '.join(returns)}.\n\n" if returns else "",
        )
    )


def _rows(schema: Mapping[str, Any], above: str = "") -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    required = schema.get("required", ())
    for name, of in schema.get("properties", {}).items():
        kind = describe_type(of)
        meaning = cell(of.get("description", "")) + (" (required)" if name in required else "")
        rows.append((code(above + name), kind, meaning))
        inner = of.get("items", of)
        if inner.get("properties"):
            rows += _rows(inner, f"{above}{name}{'[].' if 'items' in of else '.'}")
    return rows


def describe_type(of: Mapping[str, Any]) -> str:
    """Return the type of a value in a few words, with its default and bounds."""
    choices = [choice for choice in of.get("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        return " or ".join(describe_type(choice) for choice in choices)
    if "enum" in of:
        kind = ", ".join(code(str(value)) for value in of["enum"])
    else:
        kind = {"array": "list"}.get(of.get("type", "any"), of.get("type", "any"))
        if kind == "list" and of.get("items", {}).get("type") not in (None, "object"):
            kind = f"list of {describe_type({'type': of['items']['type']})}"
    low, high = of.get("minimum", of.get("exclusiveMinimum")), of.get("maximum")
    if low is not None and high is not None and abs(high) < 10**12:
        kind += f", {low:,} to {high:,}"
    if of.get("maxLength"):
        kind += f", at most {of['maxLength']:,} characters"
    if of.get("default") not in (None, [], {}, ""):
        kind += f", default {code(str(of['default']))}"
    return kind
