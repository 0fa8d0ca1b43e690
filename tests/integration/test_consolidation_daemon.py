"""Consolidation of a real daemon, from outside only: what a person ticks in the file comes about, is committed and told."""

from __future__ import annotations

import shutil
import time

import pytest

from tests.support.daemon_process import daemon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]


def test_what_is_ticked_comes_about_by_itself_and_over_a_kill(tmp_path, models):
    with daemon(tmp_path, models) as memex:
        memex.write("Captures/default/.keep", "")
        memex.write("Mine.md", "my own #k8s, and [[Search 2]]\n")
        memex.commit("Begin")
        memex.git("config", "user.name", "Ada")
        memex.git("config", "user.email", "ada@example.org")
        memex.run("index")
        memex.serve()
        same = "Hybrid search fuses the ranks of words and vectors, and neither leg may outweigh the other."
        for title, text, tag in (("Search", f"{same} Always.", "k8s"), ("Search 2", same, "kubernetes")):
            memex.capture(text, metadata={"title": title, "tags": [tag, "search"]})
        memex.capture("The port of Atlas is 8080.", metadata={"tags": ["k8s"]})
        memex.capture("A cluster of kubernetes nodes.", metadata={"tags": ["kubernetes"]})
        told = memex.json("consolidate")
        report = memex.vault / told["report"]
        assert "proposal" in memex.run("status")
        memex.write(told["report"], report.read_text().replace("- [ ] Replace the tag", "- [x] Replace the tag"))
        time.sleep(4)  # sync.adopt_s, within which a person may still change their mind
        assert memex.json("job", "run", "ticked-proposals", "--wait")["error"] == ""
        assert "k8s" not in {tag for note in memex.json("recent") for tag in note["tags"]}
        assert "✅" in report.read_text()
        made = memex.git("log", "--format=%s%n%b", "--grep=Replace the tag k8s with kubernetes")
        assert made.startswith("Replace the tag")
        assert "Approved-By: Ada <ada@example.org>" in made
        assert (memex.vault / "Mine.md").read_text() == "my own #k8s, and [[Search 2]]\n"
        memex.write(told["report"], report.read_text().replace("- [ ] Keep", "- [x] Keep"))
        memex.stop(9)
        time.sleep(4)
        memex.serve()
        memex.json("job", "run", "ticked-proposals", "--wait")
        memex.settled()
        assert (memex.vault / "Captures/Archive/default/Search 2.md").exists()
        assert memex.found("neither leg may outweigh", scope="captures")[0] == "Captures/default/Search.md"
        again = memex.json("consolidate")
        assert (again["new"], again["report"]) == (0, None)
        memex.run("commit")
        assert memex.git("status", "--porcelain", "--", "Captures/default", "Captures/Archive") == ""
