"""A worker has compiled what it judges with before it is ready: no bleed waits for a compiler."""

import subprocess
import sys

import pytest

from tests.content.tree import ROOT

SCRIPT = """
import importlib, pkgutil, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
import detector.kernels
from detector.config.root import Settings
from detector.index.shared_memory import SharedMemory
from detector.kernels import buckets
from detector.pipeline import Detector
from detector.sketch.tag_keys import TagKeys
from detector.streaming.compiling import compile_kernels
from tests.unit.sequences import prompt, response, text

def compiled():
    modules = [importlib.import_module(f"detector.kernels.{one.name}")
               for one in pkgutil.iter_modules(detector.kernels.__path__)]
    kernels = {one for module in modules for one in vars(module).values()
               if isinstance(one, Dispatcher)}
    return {(one.__module__, one.__name__, signature)
            for one in kernels for signature in one.signatures}

keys = TagKeys(bytes(32))
settings = Settings.model_validate({"detection": {"index": {"sampling": sys.argv[1]}}})
compile_kernels(settings, keys)
before = compiled()
memory = SharedMemory(settings.detection.commonness, keys)
mine = Detector(settings.detection, memory=memory)
secret, answer = text(1, 300), text(2, 300)
answer[100:140] = secret[50:90]
again = text(3, 300)
again[10:40] = answer[200:230]
found = 0
for number, one in enumerate((secret, answer, again, again.copy())):
    one.flags.writeable = False
    make = response if number else prompt
    found += len(mine.observe(make(f"t{number}", f"r{number}", number, one)))
assert found >= 3, found
homes = mine._index.table[0][buckets.HOMES], mine._copies._index._bands._homes
for number in range(4, 1_000):
    answer = text(number, 300)
    answer.flags.writeable = False
    mine.observe(response(f"t{number}", f"r{number}", number, answer))
grown = mine._index.table[0][buckets.HOMES], mine._copies._index._bands._homes
assert all(map(int.__lt__, map(int, homes), map(int, grown))), (homes, grown)
assert compiled() == before, compiled() - before
"""


@pytest.mark.parametrize("sampling", ["every", "winnow"])
def test_nothing_is_compiled_while_a_bleed_is_judged(sampling: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, sampling],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
