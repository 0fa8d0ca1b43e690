"""Format the text of a measurement: figures of both setups with their intervals, costs, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from syncd.cli.terminal import result_text

FIGURES: Final = ("R@1", "R@5", "MRR")
KINDS: Final = {"title": "titles", "heading": "headings", "link": "link texts", "alias": "aliases"}
VERDICTS: Final = {
    "better": "{changed} finds more: an interval of the difference in MRR is above 0, and none is below.",
    "worse": "{changed} finds less: an interval of the difference in MRR is below 0.",
    "no difference": "These questions show no difference: both intervals of the difference in MRR contain 0.",
    "too few questions": "These are too few questions to decide anything.",
}


def format_measurement(result: Mapping[str, Any], present: str, changed: str, *, color: bool) -> str:
    """Format a measurement; `present` and `changed` name the two setups."""
    names = {"present": present, "changed": changed}
    lines = [_format_scope(result), ""]
    for part, title in (("search", "searches"), ("meaning", "by meaning alone")):
        rows = [(f"  {names.get(name, name)}", *_cells(figures, name)) for name, figures in result[part].items()]
        lines += [result_text.table(rows, (title, *FIGURES), color=color), ""]
    lines += [result_text.table(list(_cost_rows(result["cost"], names)), COSTS, color=color), ""]
    for name, cost in result["cost"].items():
        if cost["degraded"]:
            lines.append(
                f"{names[name]}: degraded questions: {cost['degraded']:,} ({result_text.sanitize(cost['reason'])})"
            )
    if recorded := result["recorded"]:
        lines.append(_format_recorded(recorded))
    return "\n".join([*lines, VERDICTS[result["verdict"]].format(changed=changed)])


def _format_scope(result: Mapping[str, Any]) -> str:
    total = sum(result["questions"].values())
    kinds = ", ".join(f"{count} {KINDS[kind]}" for kind, count in result["questions"].items() if count)
    notes = f"{result['notes']:,} notes"
    if result["notes"] < result["notes_in_all"]:
        notes = f"a sample of {result['notes']:,} of {result['notes_in_all']:,} notes"
    return f"{total:,} questions ({kinds}) to {notes}; 95 % intervals"


def _cells(figures: Mapping[str, Mapping[str, float]], name: str) -> Iterator[str]:
    form = "{:+.3f}" if name == "difference" else "{:.3f}"
    for figure in FIGURES:
        mean, low, high = (form.format(figures[figure][part]) for part in ("mean", "low", "high"))
        yield f"{mean} ({low} to {high})"


COSTS: Final = ("cost", "load", "index", "passages", "search p50", "p95", "memory")


def _cost_rows(costs: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> Iterator[Sequence[str]]:
    for name, cost in costs.items():
        yield (
            f"  {names[name]}",
            f"{cost['load_s']:.1f} s",
            f"{cost['index_s']:.1f} s",
            f"{cost['passages']:,}",
            f"{cost['p50_ms']:.1f} ms",
            f"{cost['p95_ms']:.1f} ms",
            f"{cost['memory_mb']:,.0f} MB",
        )


def _format_recorded(recorded: Mapping[str, Any]) -> str:
    return (
        f"{recorded['queries']:,} recorded queries: {recorded['same_first']:.0%} have the same first hit, and "
        f"{recorded['shared_top_5']:.0%} of the first five hits are shared. Which hits were right is not known."
    )
