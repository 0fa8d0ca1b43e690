"""The bench's own decisions: what is compared with the record, when a row is worse, and what the record looks like."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from datetime import datetime

import pytest

from tests.bench import __main__ as bench
from tests.bench import cpu_sampler, record, vaults, yardsticks
from tests.bench.__main__ import RECORD, main
from tests.bench.measure import beside_jobs, named_jobs
from tests.bench.record import Entry, Row, best, line, measure, slips, typical, unrecorded, verdict

SEARCH = Row("search", "", "9 ms", True, "", {"p50": 2.0, "p95": 4.0}, "one query encoding")
BEFORE = Entry(
    "2.0",
    "abc1234",
    "2026-11-24",
    "2 cores",
    "search",
    "",
    "9 ms",
    True,
    "one query encoding",
    {"p50": 2.0, "p95": 4.0},
)


def with_ratios(row: Row = SEARCH, **ratios: float) -> Row:
    return replace(row, ratios=ratios)


@pytest.mark.parametrize(
    ("row", "recorded", "worse"),
    [
        pytest.param(with_ratios(p50=2.0, p95=4.0), [BEFORE], [], id="as it was"),
        pytest.param(with_ratios(p50=2.5, p95=5.0), [BEFORE], [], id="a quarter worse"),
        pytest.param(with_ratios(p50=2.51, p95=4.0), [BEFORE], [("p50", 2.0, 2.51)], id="more than a quarter"),
        pytest.param(with_ratios(p50=0.1, p95=9.0), [BEFORE], [("p95", 4.0, 9.0)], id="one better, one worse"),
        pytest.param(with_ratios(p50=9.0, p95=9.0), [], [], id="no record"),
        pytest.param(replace(SEARCH, name="other", ratios={"p50": 9.0}), [BEFORE], [], id="another row"),
        pytest.param(replace(SEARCH, yardstick="one echo", ratios={"p50": 9.0}), [BEFORE], [], id="another yardstick"),
        pytest.param(with_ratios(CPU=9.0), [BEFORE], [], id="a figure that the record lacks"),
        pytest.param(
            with_ratios(p50=3.0), [BEFORE, replace(BEFORE, ratios={"p50": 3.0})], [], id="the last record counts"
        ),
        pytest.param(
            with_ratios(p50=3.0),
            [replace(BEFORE, ratios={"p50": 9.0}), BEFORE],
            [("p50", 2.0, 3.0)],
            id="not an older one",
        ),
    ],
)
def test_a_row_is_worse_when_a_ratio_is_more_than_a_quarter_above_its_last_record(row, recorded, worse):
    assert [(slip.figure, slip.before, slip.now) for slip in slips([row], recorded)] == worse


@pytest.mark.parametrize(
    ("row", "named"),
    [
        pytest.param(SEARCH, [], id="recorded"),
        pytest.param(replace(SEARCH, name="new"), ["new"], id="a new row"),
        pytest.param(replace(SEARCH, yardstick="one echo"), ["search"], id="another yardstick"),
        pytest.param(with_ratios(p50=1.0, CPU=1.0), ["search"], id="a new figure"),
        pytest.param(Row("tokens", "", "9", None), [], id="a row without ratios"),
    ],
)
def test_rows_that_can_t_be_compared_are_named(row, named):
    assert unrecorded([row], [BEFORE]) == named


def test_a_verdict_names_the_row_with_both_ratios_and_fails():
    told, held = verdict([with_ratios(p50=3.0, p95=4.0)], [BEFORE], where="docs/benchmarks.json")
    assert not held
    assert any("search, p50: 3.00 x the yardstick; 2.00 x in 2.0 (abc1234) (+50%)" in text for text in told)


def test_a_missing_record_is_told_and_does_not_fail():
    told, held = verdict([SEARCH], [], where="docs/benchmarks.json")
    assert held
    assert len(told) == 1
    assert "no record in docs/benchmarks.json" in told[0]
    assert "search" in told[0]


def test_a_record_is_one_line_a_row_and_reads_back():
    rows = [SEARCH, Row("tokens — 日本", "<= 9", "8", True)]
    made = record.entries(rows, version="2.0", commit="abc1234", date="2026-11-24", machine="2 cores")
    text = record.format_entries([BEFORE, *made])
    assert record.parse(text) == [BEFORE, *made]
    assert len(text.splitlines()) == 2 + 3
    assert text.splitlines()[1].startswith('{"version": "2.0", "commit": "abc1234"')


@pytest.mark.parametrize("text", ["", "[]", "[]\n", record.format_entries([])])
def test_an_empty_record_has_no_entries(text):
    assert record.parse(text) == []


def test_the_record_of_the_repository_can_be_read_and_is_one_line_a_row():
    if not RECORD.is_file():
        pytest.skip("no release has been measured")
    text = RECORD.read_text("utf-8")
    entries = record.parse(text)
    assert record.format_entries(entries) == text
    assert all(ratio > 0 for entry in entries for ratio in entry.ratios.values())


def repeating(*measured: dict[str, float]) -> tuple[list[int], record.Step]:
    """A measurement that finds these ratios, one after the other; and how often it was made."""
    left, made = list(measured), [0]

    def step() -> list[Row]:
        made[0] += 1
        return [with_ratios(**left.pop(0))]

    return made, step


@pytest.mark.parametrize(
    ("found", "made", "worse"),
    [
        pytest.param([{"p50": 2.0}], 1, [], id="well at once"),
        pytest.param([{"p50": 9.0}, {"p50": 2.0}], 2, [], id="a busy moment"),
        pytest.param([{"p50": 9.0}, {"p50": 8.0}, {"p50": 7.0}, {"p50": 2.0}], 4, [], id="well at last"),
        pytest.param([{"p50": 9.0}, {"p50": 8.0}, {"p50": 7.0}, {"p50": 6.0}], 4, [6.0], id="worse each time"),
        pytest.param(
            [{"p50": 9.0, "p95": 4.0}, {"p50": 2.0, "p95": 9.0}], 2, [], id="each figure was well once"
        ),
    ],
)  # fmt: skip
def test_a_row_that_looks_worse_is_measured_again_before_it_counts(found, made, worse):
    count, step = repeating(*found)
    rows = list(measure(lambda: [step], [BEFORE], lambda _: None))
    assert count == [made]
    assert [slip.now for slip in slips(rows, [BEFORE])] == worse


def test_a_group_whose_rows_can_t_be_repeated_alone_is_repeated_whole():
    ratios = iter((9.0, 2.0))
    rows = list(
        measure(lambda: iter([with_ratios(p50=next(ratios)), Row("other", "", "", None)]), [BEFORE], lambda _: None)
    )
    assert [row.name for row in rows] == ["search", "other"]
    assert slips(rows, [BEFORE]) == []


def test_a_record_keeps_the_median_of_several_measurements():
    count, step = repeating({"p50": 9.0}, {"p50": 2.0}, {"p50": 3.0})
    (row,) = measure(lambda: [step], [], lambda _: None, times=3)
    assert (row.ratios, count) == ({"p50": 3.0}, [3])


def test_the_better_of_two_keeps_the_smaller_ratios_and_the_text_of_the_smaller_sum():
    again = replace(with_ratios(p50=3.0, p95=1.0), figure="again")
    assert best([SEARCH], [again]) == [replace(again, ratios={"p50": 2.0, "p95": 1.0})]
    assert best([SEARCH], []) == [SEARCH]


def test_the_typical_of_three_has_the_medians():
    found = [[replace(with_ratios(p50=p50), figure=f"{p50}")] for p50 in (1.0, 5.0, 2.0)]
    assert typical(found) == [replace(with_ratios(p50=2.0), figure="2.0")]


def test_a_line_of_the_table_shows_ratios_yardstick_and_jobs():
    row = replace(SEARCH, target="<= 10 ms", met=False, jobs="review 0.4 s", note="why")
    assert line(row) == (
        "| search | <= 10 ms | 9 ms | **no** | p50 2, p95 4 x one query encoding | review 0.4 s | why |"
    )
    assert line(Row("tokens", "", "9", None)) == "| tokens |  | 9 |  |  |  |  |"


def test_jobs_are_named_by_what_they_used_meanwhile():
    def cost(cpu: float, *, running: bool = False) -> dict[str, float]:
        return {"runs": 1, "cpu": cpu, "whole": cpu, "running": running}

    before = {"review": cost(1.0), "marks": cost(0.2), "listing": cost(0.0, running=True)}
    after = {"review": cost(1.42), "marks": cost(0.2004), "listing": cost(0.5), "archive": cost(0.0, running=True)}
    assert named_jobs(before, after) == "listing 0.5 s, review 0.42 s, archive runs"


class Running:
    """A daemon whose listing uses half a second while each row is measured, and as much between two rows."""

    def __init__(self):
        self.used = 0.0

    def jobs(self):
        self.used += 0.5
        return {"listing": {"cpu": self.used, "running": False}}

    def jobs_since(self, before):
        return named_jobs(before, self.jobs())


def test_each_row_of_a_daemon_has_the_jobs_that_ran_while_it_was_measured():
    rows = [SEARCH, replace(SEARCH, name="capture"), replace(SEARCH, jobs="said already")]
    assert [(row.name, row.jobs) for row in beside_jobs(Running(), rows)] == [
        ("search", "listing 0.5 s"),
        ("capture", "listing 0.5 s"),
        ("search", "said already"),
    ]


def test_the_frozen_chunks_are_cut_into_runs_that_cover_them_once():
    lengths = yardsticks.chunk_lengths()
    cut = yardsticks.runs(lengths)
    assert [at for first, last in cut for at in range(first, last)] == list(range(len(lengths)))
    for first, last in cut:
        assert last - first == 1 or (lengths[first] + 2) * (last - first) <= yardsticks.RUN_TOKENS
        assert last - first <= yardsticks.RUN_TEXTS


def test_the_yardsticks_are_what_they_were_when_rows_were_recorded():
    """Whoever changes one of these must record all rows again: a ratio to another yardstick means something else."""
    fixed = [yardsticks.WORDS, yardsticks.COUNTS, yardsticks.QUERY_WORDS, yardsticks.RUN_TOKENS, yardsticks.RUN_TEXTS]
    assert (len(yardsticks.chunk_lengths()), sum(yardsticks.chunk_lengths())) == (2_542, 395_728)
    assert hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:16] == "7b06331557333c05"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/home/ann/memex/index/search/fusion.py", "memex/index/search"),
        ("/home/ann/memex/index/model.py", "memex/index"),
        ("/home/ann/memex/mcp_server/operations/operation.py", "memex/mcp_server/operations"),
        ("/home/ann/memex/syncd/cli/notes/notes.py", "memex/syncd/cli"),
        ("/venv/lib/python3.11/site-packages/mcp/server/session.py", "library mcp"),
        ("/venv/lib/python3.11/site-packages/six.py", "library six"),
        ("/venv/lib/python3.11/site-packages/lancedb/index/index.py", "library lancedb"),
        ("/usr/lib/python3.11/json/decoder.py", "the interpreter and its library"),
        ("<string>", "the interpreter and its library"),
        ("/home/ann/memex/tests/bench/daemon.py", "the bench"),
    ],
)
def test_a_profile_names_the_layer_of_a_file(file, name):
    assert cpu_sampler.layer(file) == name


def test_a_profile_s_table_is_a_call_s_milliseconds_and_their_share():
    taken = {
        "layers": {"memex/index": 3.0, "library mcp": 0.5, "a": 0.3, "b": 0.2},
        "functions": {"memex/index: f": 3.0},
    }
    told = cpu_sampler.table(taken, 1000, most=2)
    assert "| memex/index | 3.00 | 75.0% |" in told
    assert "| 2 others | 0.50 | 12.5% |" in told
    assert "| all | 4.00 | 100.0% |" in told
    assert told.count("| memex/index: f |") == 1


def test_generated_captures_have_times_of_their_own():
    made = [vaults.created_at(number) for number in range(0, 200_000, 7)]
    assert len(set(made)) == len(made)
    assert all(datetime.fromisoformat(time).day <= 28 for time in made)


def run(tmp_path, capsys, p50, *words):
    """Run the bench with one group of one row that always measures the same; its exit code and what it printed."""
    groups = {"one": lambda: [lambda: [with_ratios(p50=p50)]]}
    with pytest.raises(SystemExit) as ended:
        main(
            ["--out", str(tmp_path / "out"), *words], known_groups=lambda *_: groups, kept=tmp_path / "benchmarks.json"
        )
    return ended.value.code, capsys.readouterr().out


def test_a_run_fails_by_what_was_recorded_and_only_then(tmp_path, capsys):
    code, told = run(tmp_path, capsys, 2.0)
    assert (code, "no record in benchmarks.json" in told) == (0, True)
    code, told = run(tmp_path, capsys, 2.0, "--record")
    assert (code, "1 rows were added" in told) == (0, True)
    assert [entry.ratios for entry in record.parse((tmp_path / "benchmarks.json").read_text())] == [{"p50": 2.0}]
    assert run(tmp_path, capsys, 2.4)[0] == 0
    code, told = run(tmp_path, capsys, 2.6)
    assert (code, "search, p50: 2.60 x the yardstick; 2.00 x in" in told) == (1, True)
    assert json.loads((tmp_path / "out/results.json").read_text())[0]["ratios"] == {"p50": 2.6}
    assert len(record.parse((tmp_path / "benchmarks.json").read_text())) == 1


def test_rows_are_recorded_although_a_later_group_fails(tmp_path):
    groups = {"one": lambda: [lambda: [with_ratios(p50=2.0)]], "two": lambda: 1 / 0}
    kept = tmp_path / "benchmarks.json"
    with pytest.raises(ZeroDivisionError):
        main(["--out", str(tmp_path / "out"), "--record"], known_groups=lambda *_: groups, kept=kept)
    (entry,) = record.parse(kept.read_text())
    assert entry.ratios == {"p50": 2.0}
    assert not list(tmp_path.glob("*.new"))


def test_all_rows_of_a_run_have_the_commit_at_its_begin(tmp_path, monkeypatch):
    commits = iter(["abc1234", "abc1234-dirty"])  # a record in Git makes files differ from the commit
    monkeypatch.setattr(bench, "describe_commit", lambda: next(commits))
    groups = {name: lambda name=name: [lambda: [replace(SEARCH, name=name)]] for name in ("one", "two")}
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "--record"], known_groups=lambda *_: groups, kept=tmp_path / "benchmarks.json")
    kept = record.parse((tmp_path / "benchmarks.json").read_text())
    assert [(entry.row, entry.commit) for entry in kept] == [("one", "abc1234"), ("two", "abc1234")]


def test_a_yardstick_works_after_its_folder_was_removed(tmp_path):
    for _ in range(2):
        yardsticks.fsync(tmp_path)
        (scratch,) = tmp_path.iterdir()
        assert [file.stat().st_size for file in scratch.iterdir()] == [4096]
        shutil.rmtree(scratch)


def test_a_record_that_can_t_be_read_is_told_before_anything_is_measured(tmp_path, capsys):
    (tmp_path / "benchmarks.json").write_text("<<<<<<< HEAD\n[]\n")
    code, _ = run(tmp_path, capsys, 2.0)
    assert "benchmarks.json is not a benchmark record" in code


def test_a_group_that_is_not_there_is_told_with_those_that_are(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path), "--only", "two"], known_groups=lambda *_: {"one": list}, kept=tmp_path / "x")
    assert "no group called two; the groups are one" in capsys.readouterr().err
