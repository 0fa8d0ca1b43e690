"""The page of the status: the verdict, and that nothing unwell is left out."""

from __future__ import annotations

import pytest

from syncd.cli.terminal.status_page import format_duration, render_page, verdict
from syncd.cli.terminal.text_width import width

HOUR, DAY = 3_600_000, 86_400_000
AT = 1_800_000_000_000
WELL = {
    "ready": True,
    "pending": 0,
    "generation": 7,
    "captures": {"documents": 1, "chunks": 2},
    "vault": {"documents": 3, "chunks": 4},
    "degraded": [],
    "defects": [],
    "coverage": {
        "captures": {"indexed": 1, "of": 1, "waiting": 0, "words_only": 0, "skipped": []},
        "vault": {"indexed": 3, "of": 4, "waiting": 0, "words_only": 2, "skipped": [{"path": "Big.md", "reason": "is too large"}]},
    },
    "vault_path": "/home/ada/Notes",
    "workspaces": ["default", "work"],
    "encoder": {"state": "ready", "problem": ""},
    "git": {"state": "ok", "advice": "", "head": "abcdef0123456789", "branch": "main", "hooks": ["post-commit"]},
    "watch": {"state": "ok", "problem": "", "folders": 12, "overflows": 1, "restarts": 0},
    "jobs": {
        "listing": {"started_at": AT - 2 * 60_000, "seconds": 0.12, "error": "", "runs": 3, "failures": 0, "next_run_at": AT + HOUR},
        "root": {"started_at": AT, "seconds": 0.0, "error": "", "runs": 9, "failures": 0},
        "deep-check": {"every_s": 86_400, "running": True, "runs": 0, "failures": 0, "started_at": AT - 120_000, "seconds": 120.0, "error": ""},
        "backup": {"every_s": 86_400, "running": False, "runs": 0, "failures": 0, "started_at": None, "seconds": None, "error": ""},
    },
    "keys": {"live": 2, "expiring": ["claude"]},
    "enrichment": {"by": "local", "problem": "", "missing": 5},
    "names": {"twins": [["a.md", "A.md"]], "conflict_copies": [], "placeholders": ["b.md"]},
    "graph": {
        "nodes": 3, "observations": 1200, "relations": 1,
        "twins": [["Captures/w/A.md", "Captures/w/o/A.md"]],
        "dangling": [{"path": "Captures/w/A.md", "relation_type": "knows", "target": "Nobody"}],
    },
    "deep_check": {"at": AT, "checked": 10, "mended": 1},
    "consolidation": {"at": AT - 2 * HOUR, "waiting": 3, "accepted": 0, "report": "Captures/Reports/R.md", "problem": ""},
    "flagged": [{"path": "Captures/default/x.md", "rule": "private key"}],
    "removals_held": 0,
    "pid": 42,
    "since": AT - 3 * DAY,
    "version": "1.0",
    "daemon": {"state": "running", "url": "http://127.0.0.1:8765", "version": "1.0", "command_version": "1.0"},
}  # fmt: skip


def test_the_verdict_stands_first_and_the_parts_below_it():
    lines = render_page(WELL, at=AT).splitlines()
    assert lines[0] == "● all is well"
    text = "\n".join(lines)
    for part in (
        "daemon     process 42, version 1.0, up 3 d, http://127.0.0.1:8765",
        "reports    consolidation ran 2 h ago, 3 proposals wait in Captures/Reports/R.md",
        "captures   1 of 1 file indexed, 2 chunks; in 2 workspaces",
        "notes      3 of 4 files indexed, 4 chunks; 2 found by words only",
        "skipped    Big.md is too large",
        "encoder    ready",
        "git        ok on main at abcdef01, hooks: post-commit",
        "watch      ok, 12 folders, 1 overflow",
        "jobs       deep-check: running for 2 min",
        "keys       2 live; expiring soon: claude",
        "local, 5 captures without summary or tags: `memex enrich --backfill`",
        "names      1 set of names that differ in case only, 1 placeholder not downloaded",
        "graph      3 entities, 1,200 facts, 1 relation",
        "loose ends 2:",
        "- Captures/w/o/A.md is not an entity: Captures/w/A.md has its name",
        "deep check 10 files read, 1 repaired",
        "flagged    Captures/default/x.md looks as if it contains a secret (private key)",
    ):
        assert part in text, part
    assert "root" not in text


@pytest.mark.parametrize(
    ("change", "is_", "words"),
    [
        ({}, "well", "all is well"),
        ({"pending": 3}, "busy", "indexing 3 changes"),
        ({"ready": False}, "busy", "4 of 5 so far"),
        ({"ready": False, "coverage": {}}, "busy", "being indexed"),
        ({"degraded": ["watch: deaf; restart it"]}, "unwell", "1 problem found"),
        ({"degraded": ["a: x", "b: y"]}, "unwell", "2 problems"),
        ({"daemon": {"state": "down"}}, "unwell", "memex serve"),
        ({"daemon": {"state": "running", "version": "1.0", "command_version": "2.0"}}, "unwell", "1 problem"),
    ],
)
def test_the_verdict_says_how_it_is(change, is_, words):
    found = verdict(WELL | change)
    assert found.is_ == is_
    assert words in found.says


def test_every_problem_is_told_with_its_way_out():
    text = render_page(WELL | {"degraded": ["watch: deaf; restart it", "encoder: away"]}, at=AT)
    assert text.startswith("▲ 2 problems found")
    assert "  - watch: deaf; restart it" in text
    assert "  - encoder: away" in text
    text = render_page(WELL | {"daemon": {"state": "running", "version": "1.0", "command_version": "2.0"}}, at=AT)
    assert "it has version 1.0, and this command version 2.0; restart the daemon" in text
    jobs = {"x": {"error": "boom", "started_at": AT, "seconds": 1}}
    assert "jobs       x: failed (boom) 0 s ago, took 1.0 s" in render_page(WELL | {"jobs": jobs}, at=AT)


def test_jobs_that_only_wait_for_their_next_run_are_counted():
    jobs = WELL["jobs"]
    text = render_page(WELL | {"jobs": {name: jobs[name] for name in ("listing", "backup", "root")}}, at=AT)
    assert "jobs       2 scheduled, none failed: `memex job list`\n" in text
    text = render_page(WELL, at=AT)
    assert "jobs       deep-check: running for 2 min\n           2 more: `memex job list`\n" in text
    assert "list the vault" not in text
    text = render_page(WELL, at=AT, everything=True)
    assert "list the vault: ran 2 min ago, took 0.1 s; next in 1 h" in text
    assert "backup: has not run yet" in text


def test_jobs_that_failed_have_their_way_out():
    queue = {"jobs": {"queued": 2, "running": 0, "done": 9, "failed": 1}}
    assert "queue      2 queued, 1 failed: `memex job queue --status failed`\n" in render_page(
        WELL | {"queue": queue}, at=AT
    )


def test_a_daemon_that_tells_less_has_a_shorter_page():
    least = {name: WELL[name] for name in ("ready", "pending", "captures", "vault", "degraded", "defects")}
    text = render_page(least | {"git": "detached", "watch": "ok", "jobs": {}}, at=AT)
    assert "captures   1 note, 2 chunks" in text
    assert "git        detached" in text
    assert "None" not in text


def test_nobody_counts_a_vault_that_is_not_there():
    gone = {"indexed": 3, "of": None, "waiting": 0, "words_only": 0, "skipped": []}
    text = render_page(WELL | {"ready": False, "coverage": {"captures": gone, "vault": gone}}, at=AT)
    assert "3 of an unknown number of files" in text


def test_a_long_list_is_cut_and_says_where_the_rest_is():
    bad = [{"path": f"{number}.md", "defect": "bad-frontmatter: x"} for number in range(30)]
    text = render_page(WELL | {"defects": bad}, at=AT)
    assert "attention  30:" in text
    assert "- 2.md: bad-frontmatter: x" in text
    assert "3.md" not in text
    assert "… and 27 more: `memex status --all`" in text
    assert "- 29.md: bad-frontmatter: x" in render_page(WELL | {"defects": bad}, at=AT, everything=True)


def test_an_item_of_a_list_hangs_below_its_own_beginning():
    bad = [{"path": f"{number}.md", "defect": "bad-frontmatter: " + "words " * 20} for number in range(2)]
    lines = render_page(WELL | {"defects": bad}, at=AT, width=40).splitlines()
    at = next(number for number, line in enumerate(lines) if "- 0.md" in line)
    assert lines[at].startswith(" " * 11 + "- 0.md")
    assert lines[at + 1].startswith(" " * 13 + "words")


def test_a_note_that_is_skipped_is_not_told_twice():
    skipped = [{"path": "Big.md", "defect": "not-indexed: is too large"}]
    assert render_page(WELL | {"defects": skipped}, at=AT).count("Big.md") == 1


@pytest.mark.parametrize("cells", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(cells):
    wide = [{"path": "日記/" * 30 + "今日.md", "reason": "is too large: " + "x" * 100}] * 4
    told = WELL | {"coverage": WELL["coverage"] | {"vault": {"indexed": 1, "of": 5, "waiting": 0, "skipped": wide}}}
    told |= {"degraded": ["vault: " + "some folders can't be read " * 9], "vault_path": "/ホーム/" + "長い名前" * 20}
    assert max(width(line) for line in render_page(told, at=AT, width=cells).splitlines()) <= cells


def test_colours_are_for_terminals_and_text_cant_steer_one():
    assert "\x1b" not in render_page(WELL | {"degraded": ["x: \x1b[31mred"], "vault_path": "/a\x1b]0;x\x07"}, at=AT)
    assert "\x1b[32m●" in render_page(WELL, at=AT, color=True)


@pytest.mark.parametrize(
    ("told", "row"),
    [
        ({"state": "off", "problem": ""}, None),
        ({"state": "ready", "problem": ""}, "reranker   ready"),
        ({"state": "broken", "problem": "there is no model 'x'"}, "reranker   broken: there is no model 'x'"),
    ],
)
def test_a_reranker_is_told_where_one_is_set(told, row):
    lines = render_page(WELL | {"reranker": told}, at=AT).splitlines()
    assert [line for line in lines if line.startswith("reranker")] == ([row] if row else [])


WHOLE = {"landlock": 7, "seccomp": True, "network_namespace": True, "missing": [], "system": "linux", "problem": ""}


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({}, "sandbox    Landlock 7, seccomp, a separate network namespace"),
        ({"network_namespace": False}, "sandbox    Landlock 7, seccomp"),
        ({"missing": ["x", "y"]}, "sandbox    without x and y: PDF and Office files are still read"),
        ({"missing": ["x"], "system": "darwin"}, "sandbox    macOS has neither Landlock nor seccomp: PDF and Office"),
        ({"missing": ["x"], "problem": "PDF files are refused: why"}, "sandbox    PDF files are refused: why"),
    ],
)
def test_what_confines_the_readers_of_files_is_told(change, row):
    lines = render_page(WELL | {"sandbox": WHOLE | change}, at=AT, width=200).splitlines()
    assert [line[: len(row)] for line in lines if line.startswith("sandbox")] == [row]


@pytest.mark.parametrize(
    ("ms", "said"), [(-5, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (HOUR, "1 h"), (50 * HOUR, "2 d")]
)
def test_a_span_is_told_in_its_largest_unit(ms, said):
    assert format_duration(ms) == said


def test_a_note_is_one_line_and_a_template_is_told_as_one():
    told = [
        {"path": "T.md", "defect": "bad-frontmatter: the properties can't be read"},
        {"path": "T.md", "defect": "template: the properties hold a template's placeholders"},
        {"path": "a.md", "defect": "bad-date: x"},
        {"path": "a.md", "defect": "bad-tags: y"},
        {"path": "Captures/default/x.md", "defect": "secret: private key: the note seems to hold a secret"},
    ]
    text = render_page(WELL | {"defects": told}, at=AT)
    assert "attention  2:" in text
    assert "- T.md: template: the properties hold a template's placeholders" in text
    assert "- a.md: bad-date: x; bad-tags: y" in text
    assert text.count("Captures/default/x.md") == 1, "it is flagged"


def test_the_page_has_the_way_out_that_others_say_it_has():
    advice = "a program died, and its lock keeps Git from working: run `rm '/my notes/.git/index.lock'`"
    told = {
        "degraded": ["git: a lock that nobody holds; memex status shows how to fix this"],
        "git": {"advice": advice},
    }
    text = render_page(WELL | told, at=AT, width=40)
    assert text.count("`rm '/my notes/.git/index.lock'`\n") == 2
    assert "shows how to fix" not in text
    assert verdict(WELL | told).problems == (f"git: {advice}",)


@pytest.mark.parametrize(
    ("told", "row"),
    [
        ({"known": 0, "waiting": 0, "unread": [], "missing": []}, None),
        ({"known": 1, "waiting": 0, "unread": [], "missing": []}, "1 file"),
        (
            {"known": 1200, "waiting": 3, "unread": [{"path": "a", "reason": "b"}], "missing": ["c", "d"]},
            "1,200 files, 3 waiting to be read, 2 missing (their notes remain), 1 can't be read at the moment",
        ),
    ],
)
def test_files_are_counted_where_there_are_any(told, row):
    lines = render_page(WELL | {"files": told}, at=AT, width=120).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("files")] == ([row] if row else [])


def test_a_merge_under_way_is_told_how_to_end_it_not_how_to_begin_it():
    told = {"state": "conflict", "advice": "mend them", "exchange": {"problem": "run git pull"}}
    assert "mend them" in render_page(WELL | {"git": told}, at=AT)
    assert "git pull" not in render_page(WELL | {"git": told}, at=AT)
    assert "git pull" in render_page(WELL | {"git": told | {"state": "diverged"}}, at=AT)


def test_two_reports_of_one_git_problem_count_once():
    parts = ("there are unresolved conflicts", "the vault and its remote both have new commits")
    degraded = [f"git: {part}; memex status shows how to fix this" for part in parts]
    now = WELL | {"degraded": degraded, "git": {"state": "conflict", "advice": "run git merge --continue"}}
    assert verdict(now).says == "1 problem found"
    assert verdict(now).problems == ("git: run git merge --continue",)
