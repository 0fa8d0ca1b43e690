"""What a sentence-transformers model promises on a GPU. These tests are skipped where there is none."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import psutil
import pytest

from index.encoders.settings import Device, LocalSettings
from index.errors import Unavailable
from tests.support.daemon_process import Memex
from tests.support.original_model import MODEL
from tests.support.paths import ROOT

if TYPE_CHECKING:
    from index.encoders.sentence_transformer import LocalEncoder

pytestmark = pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="this machine has no NVIDIA GPU")

ALIKE: Final = 1e-4  # a GPU adds in another order; a component of 16 bits, as stored, is coarser
TEXTS: Final = [f"Note {n}. " + "The kiln reached cone six at noon, and the glaze ran. " * (n % 9) for n in range(600)]
UNIT: Final = (ROOT / "systemd/memex.service").read_text()


def load(device: Device) -> LocalEncoder:
    from index.encoders.sentence_transformer import LocalEncoder  # it imports torch, which takes seconds

    return LocalEncoder(LocalSettings(str(MODEL), device=device))


@pytest.fixture(scope="module")
def gpu() -> LocalEncoder:
    return load("auto")


@pytest.fixture(scope="module")
def cpu() -> LocalEncoder:
    return load("cpu")


def test_a_gpu_is_taken_by_itself_and_gives_the_vectors_of_the_cpu(gpu, cpu):
    import torch

    assert torch.cuda.memory_allocated() > 20 << 20
    assert gpu.batch > cpu.batch
    ours, theirs = (one.encode(TEXTS, kind="document", urgent=False) for one in (gpu, cpu))
    assert np.abs(ours - theirs).max() < ALIKE
    assert np.abs(np.linalg.norm(ours, axis=1) - 1).max() < ALIKE


def test_an_index_made_on_the_cpu_stays_valid_on_the_gpu(gpu, cpu):
    assert gpu.identity == cpu.identity


def test_a_query_does_not_wait_for_a_backlog(gpu):
    alone = [timed(gpu) for _ in range(20)]
    backlog = threading.Thread(target=lambda: [gpu.encode(TEXTS, kind="document", urgent=False) for _ in range(40)])
    backlog.start()
    beside = []
    while backlog.is_alive():
        beside.append(timed(gpu))
        time.sleep(0.02)
    assert len(beside) > 10
    assert statistics.median(beside) < 5 * statistics.median(alone) + 0.02


def timed(encoder: LocalEncoder) -> float:
    begun = time.monotonic()
    encoder.encode(["when did the glaze run"], kind="query", urgent=True)
    return time.monotonic() - begun


def test_a_full_gpu_is_said_and_the_encoder_works_again_when_it_has_room(gpu, cpu):
    import torch

    gpu.encode(TEXTS[:8], kind="document", urgent=False)
    torch.cuda.empty_cache()
    taken, size = [], 1 << 30
    while size > 1 << 20:
        try:
            taken.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    with pytest.raises(Unavailable, match="`device`"):
        gpu.encode(TEXTS, kind="document", urgent=False)
    taken.clear()
    torch.cuda.empty_cache()
    ours, theirs = (one.encode(TEXTS[:8], kind="document", urgent=False) for one in (gpu, cpu))
    assert np.abs(ours - theirs).max() < ALIKE


def test_a_daemon_serves_on_the_gpu_within_the_memory_of_its_unit(tmp_path):
    memex = Memex(tmp_path)
    settings = memex.home / ".config/memex/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[embed]\nencoders = [{{ kind = "local", model = "{MODEL}", device = "cuda" }}]\n')
    for number, text in enumerate(TEXTS):
        memex.write(f"Notes/{number}.md", text)
    memex.write("Bread.md", "# Bread\n\nThe baker's oven reaches 250 degrees.")
    try:
        memex.serve()
        assert memex.process is not None
        assert memex.found("how hot is the place where loaves are made")[0] == "Bread.md"
        assert "\nMemoryHigh=2G\n" in UNIT
        assert psutil.Process(memex.process.pid).memory_info().rss < 2 << 30
    finally:
        if memex.process is not None:
            memex.stop()
