"""Write the reference page of REST: every route with its parameters, body and answer, from the OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_server.rest import openapi
from mcp_server.rest.routes import ROUTES
from syncd.settings.settings import KbSettings
from tests.documents.markdown_text import cell, code, prose, table
from tests.documents.tools_reference import describe_type


def render_pages() -> dict[str, str]:
    """Return the page of routes."""
    document = openapi.build_document(ROUTES, "", collections=KbSettings().all_collections, version="")
    lines = [
        "# REST routes\n\nLook up here the parameters, body and answer of each route. [REST in practice](../rest.md) has examples, headers and errors. ",
        "A running daemon serves the same description at `GET /openapi.json`.\n\n",
    ]
    for path, methods in document["paths"].items():
        for method, of in methods.items():
            lines.append(_describe(f"{method.upper()} {path}", of))
    lines.append(
        "## Statuses\n\n"
        + table(
            ("status", "code", "when"),
            [(str(status), code(openapi.CODE[status]), cell(why)) for status, why in openapi.WHY.items()],
        )
    )
    return {"rest.md": "".join(lines)}


def _describe(title: str, of: Mapping[str, Any]) -> str:
    summary = prose(of.get("summary", "")).rstrip(".")
    rows = [
        (
            code(one["name"]),
            one["in"],
            describe_type(one["schema"]),
            cell(one.get("description", one["schema"].get("description", ""))),
        )
        for one in of.get("parameters", ())
        if one["name"] != "X-Memory-Workspace"
    ]
    for kind, content in of.get("requestBody", {}).get("content", {}).items():
        place = "form" if "form" in kind else "body"
        schema = content.get("schema", {})
        required = schema.get("required", ())
        rows += [
            (
                code(name),
                place,
                describe_type(value),
                cell(value.get("description", "")) + (" (required)" if name in required else ""),
            )
            for name, value in schema.get("properties", {}).items()
        ]
    statuses = ", ".join(of["responses"])
    return (
        f"## {title}\n\n{summary}.\n\n"
        + table(("parameter", "in", "type", "meaning"), rows)
        + f"Statuses: {statuses}.\n\n"
    )
