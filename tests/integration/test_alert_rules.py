"""docs/prometheus-alerts.yml: rules with thresholds, about metrics that the daemon really has."""

from __future__ import annotations

import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from mcp_server.http.metrics_page import Metrics
from syncd.sync import removal_rules
from tests.support.paths import ROOT
from tests.support.world import World

RULES = [
    rule
    for group in yaml.safe_load((ROOT / "docs/prometheus-alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
PARTS = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("_total",), "gauge": ("",)}
SELECTOR = re.compile(r"\b((?:memex|process)_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)="([^"]*)"')
THRESHOLD = re.compile(r"(?:>|<|==)\s*[\d.e]+$")


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """What the daemon exposes, by the names that a rule may use."""
    world = World(tmp_path_factory.mktemp("world"))
    try:
        page = Metrics(world.app.agent_access.samples, version="1").render_page().decode()
    finally:
        world.close()
    found = list(text_string_to_metric_families(page))
    return {family.name + part: family.samples for family in found for part in PARTS[family.type]}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_rule_names_metrics_that_there_are(families, rule):
    selected = SELECTOR.findall(rule["expr"])
    assert selected or rule["expr"].startswith("up{"), "Prometheus itself knows that one"
    for name, matchers in selected:
        assert name in families, name
        for label, value in MATCHER.findall(matchers):
            values = {sample.labels.get(label) for sample in families[name]}
            assert value in values or not families[name], (name, label, value)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_rule_has_a_threshold_a_severity_and_says_what_it_means(rule):
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert THRESHOLD.search(rule["expr"])
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["annotations"]["summary"].endswith(".")


def test_held_removals_are_reported_before_they_are_accepted():
    (rule,) = [rule for rule in RULES if rule["alert"] == "MemexRemovalsHeld"]
    assert rule["for"].endswith("m")
    assert 60 * int(rule["for"].removesuffix("m")) <= removal_rules.CERTAIN / 2
    assert "after ten minutes" in rule["annotations"]["summary"]


def test_what_is_to_be_watched_has_a_rule():
    told = " ".join(rule["expr"] for rule in RULES)
    assert all(f"memex_{what}_failures_total" in told for what in ("embedding", "store", "enrichment"))
    assert 'cause="timeout"' in told
    assert "memex_first_answer_seconds" in told
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
