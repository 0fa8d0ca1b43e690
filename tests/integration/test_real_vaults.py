"""Memex on vaults that real people made, as their owner would try it: nothing of theirs may change, all must be found."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.support.daemon_process import ROOT, daemon

DATA = Path(os.environ.get("MEMEX_DATA") or ROOT.parent / "shared/data")
MINUTES = pytest.mark.timeout(1800)
# What has changed outside the inbox; the inbox itself is committed after some minutes, which a large vault takes to be read.
THEIRS = ("status", "--porcelain", "--", ".", ":!Captures")

# Each vault with searches, and the note that must be among the first five of each.
KEPANO = {
    "unsolicited advice": "Clippings/68 Bits of Unsolicited Advice.md",
    "evergreen notes are objects that you manipulate": "Notes/Evergreen notes turn ideas into objects that you can manipulate.md",
    "a trip to Japan in 2023": "Notes/2023 Japan Trip.md",
}
TASKS = {
    "use formatting in custom group headings": "How To/Use formatting in custom group headings.md",
    "how do I find tasks in notes that have a tag": "How To/Find tasks in notes with particular tag.md",
}
OLDWINTER = {
    "卡片盒笔记法": "Cards/永久笔记/卡片盒笔记法 - Zettelkasten.md",
    "大五人格": "Cards/永久笔记/大五人格理论.md",
    "锂电池怎么充电": "Cards/永久笔记/锂电池充电技巧.md",
    "容器中的网络问题 nginx": "Cards/永久笔记/nginx部署到容器中的网络问题.md",
    "PARA": "Cards/永久笔记/PARA.md",
}


@pytest.mark.parametrize(
    ("name", "searches"),
    [
        pytest.param("vault_kepano", KEPANO, marks=pytest.mark.slow),
        pytest.param("vault_tasks_demo", TASKS, marks=pytest.mark.slow),
        pytest.param("vault_oldwinter_md", OLDWINTER, marks=[pytest.mark.slow, MINUTES]),
    ],
)
def test_a_real_vault_is_indexed_searched_and_left_as_it_is(tmp_path, bundled, models, name, searches):
    if not (DATA / name).is_dir():
        pytest.skip(f"{DATA / name} is not there; MEMEX_DATA names another place")
    shutil.copytree(DATA / name, tmp_path / "vault")
    for path in [tmp_path / "vault", *(tmp_path / "vault").rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    with daemon(tmp_path, models) as memex:
        old = memex.commit("As it came")
        memex.run("init", "--no-welcome", str(memex.vault))
        assert memex.git("status", "--porcelain", "-uall").splitlines() == ["?? Captures/About.md"]
        seconds = memex.serve()
        count = len([path for path in memex.vault.rglob("*.md") if not hidden(path.relative_to(memex.vault))])
        state = memex.readyz()
        assert (state["vault"]["documents"], state["degraded"]) == (count, [])
        sys.stdout.write(f"{name}: {count} notes, {state['vault']['chunks']} chunks, ready in {seconds:.1f} s" + "\n")
        for query, path in searches.items():
            assert path in memex.found(query)[:5], query
        assert memex.git(*THEIRS) == ""

        memex.run("capture", "京都の宿は駅から歩いて五分、朝食つき。", "--source", "cli")
        id = memex.capture("次の会議で予算の承認を得る。\n\n- 資料を準備する\n", source="claude")
        assert memex.found("京都の宿", scope="captures")[0].startswith("Captures/default/京都の宿は駅から")
        assert memex.found("会議の資料", scope="captures")[0].startswith("Captures/default/次の会議")
        assert memex.git(*THEIRS) == ""

        edited = next(iter(searches.values()))
        words, renamed = list(searches.items())[1]
        with (memex.vault / edited).open("a") as file:
            file.write("\n\nあとから書いた一行: 琵琶湖の花火 quokkas\n")
        target = Path(renamed).with_name("Renamed by hand.md").as_posix()
        (memex.vault / renamed).rename(memex.vault / target)
        memex.until(lambda: memex.found("琵琶湖の花火", mode="text")[:1] == [edited])
        memex.until(lambda: target in memex.found(words)[:5])  # its `title`, if it has one, is as it was
        memex.settled()
        # What the person did: an edit, and a rename that Git sees as two.
        assert len(memex.git(*THEIRS).splitlines()) == 3

        memex.git("add", "-A", "--", ".", ":!Captures")
        memex.git("commit", "-q", "-m", "By hand")
        for commit, there in ((old, False), ("main", True)):
            memex.git("checkout", "-q", commit)
            memex.until(lambda there=there: (edited in memex.found("琵琶湖の花火", mode="text")) == there)
            memex.settled()
            assert memex.git(*THEIRS) == ""

        memex.write("New.md", "written just before the lights went out: pangolins\n")
        memex.stop(signal.SIGKILL)
        seconds = memex.serve()
        sys.stdout.write(f"{name}: ready again in {seconds:.1f} s" + "\n")
        assert memex.readyz()["vault"]["documents"] == count + 1
        assert memex.found("pangolins", mode="text") == ["New.md"]
        assert (
            memex.rest("GET", f"/thought/{id}").json()["content"]
            == "次の会議で予算の承認を得る。\n\n- 資料を準備する\n"
        )
        assert memex.git(*THEIRS) == "?? New.md\n"
        assert "Traceback" not in memex.said


def hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
