"""index/process_memory.py: what was freed goes back to the system."""

import subprocess
import sys

import pytest

CODE = """
import ctypes, psutil
from index.process_memory import limit_arenas, release_unused
limit_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(60_000) for _ in range(2_000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
last = libc.malloc(100)  # above them: the heap's end can't be cut
full = psutil.Process().memory_info().rss
for block in blocks:
    libc.free(block)
release_unused()
print(full - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux is the one that holds memory")
def test_freed_memory_is_given_back():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 60_000_000


GROWTH = """
import ctypes, psutil
from index.process_memory import GROWN, GrowthWatch, limit_arenas
limit_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
watch = GrowthWatch()
watch.release_after_growth()
for size in (GROWN // 2, 4 * GROWN):
    blocks = [libc.malloc(60_000) for _ in range(size // 60_000)]
    for block in blocks:
        ctypes.memset(block, 1, 60_000)
    libc.malloc(60_000)  # above them: the heap's end can't be cut
    full = psutil.Process().memory_info().rss
    for block in blocks:
        libc.free(block)
    watch.release_after_growth()
    print((full - psutil.Process().memory_info().rss) / size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux is the one that holds memory")
def test_memory_is_given_back_after_a_large_growth_alone():
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    little, much = map(float, done.stdout.split())
    assert little < 0.1
    assert much > 0.7


BUSY = """
import ctypes, psutil
from index import process_memory
from index.process_memory import GROWN, GrowthWatch, limit_arenas
process_memory.AGAIN_S = 0.0
limit_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
watch = GrowthWatch()
watch.release_after_growth()
blocks = [libc.malloc(60_000) for _ in range(4 * GROWN // 60_000)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
libc.malloc(60_000)  # above them: the heap's end can't be cut
watch.release_after_growth()  # while another thread uses the blocks
full = psutil.Process().memory_info().rss
for block in blocks:
    libc.free(block)
watch.release_after_growth()
print((full - psutil.Process().memory_info().rss) / (4 * GROWN))
counts = []
process_memory.release_unused = lambda: counts.append(1)
for _ in range(20):
    watch.release_after_growth()
print(len(counts))
kept = [bytearray(60_000) for _ in range(4 * GROWN // 60_000)]
for _ in range(20):
    watch.release_after_growth()
print(len(counts))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux is the one that holds memory")
def test_memory_that_was_in_use_when_the_process_had_grown_is_given_back_later():
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, check=True)
    back, given_back, needed = done.stdout.split()
    assert float(back) > 0.7
    assert int(given_back) == 0, "nothing is repeated once the growth is given back"
    assert int(needed) == 1 + 4, "a process that needs the memory is left alone after a few times"


FROZEN = """
import gc, sys, weakref
from index.process_memory import freeze_objects
class Ring:
    def __init__(self):
        self.me = self
present = [{"number": [n]} for n in range(300_000)]
before = weakref.ref(Ring())
freeze_objects()
print(before() is None)
ring = Ring()
after = weakref.ref(ring)
gc.collect(1)
gc.collect(1)  # it is among the oldest objects now
del ring
kept = [[n] for n in range(100_000)]
print(after() is None)
"""


def test_garbage_is_found_early_although_a_started_process_has_many_objects():
    done = subprocess.run([sys.executable, "-c", FROZEN], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


STARTED = """
import gc
from index import process_memory
counts = []
gc.callbacks.append(lambda phase, _: counts.append(phase))
process_memory.collect_rarely()
kept = [[n] for n in range(150_000)]
print(len(counts) // 2)
process_memory.collect_as_usual()
counts.clear()
kept += [[n] for n in range(21 * process_memory.USUAL[0])]
print(len(counts) // 2, gc.get_freeze_count() > 150_000)
"""


def test_a_start_causes_few_collections_and_a_started_process_the_usual_number():
    done = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True)
    starting, started, frozen = done.stdout.split()
    assert 1 <= int(starting) <= 8
    assert int(started) >= 20
    assert frozen == "True"
