"""Double named constants in a copy of the package, one after the other, and run the test that guards each.

    python tests/mutate.py [module.NAME ...]

It prints for each constant of `test_constants.GUARDED`, or for those named, whether its guard failed (killed)
or passed (SURVIVED), and ends with 1 if one did not fail. No file of the package changes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from test_constants import GUARDED, PACKAGE, find_constants

ENDS = {0: "SURVIVED", 1: "killed"}  # of pytest; others are errors of a command or an import


def change(value):
    """Double a number; one from .5 to 1, such as a level, goes half of the way to 1."""
    if isinstance(value, tuple):
        return tuple(change(v) for v in value)
    return (1 + value) / 2 if 0.5 < value < 1 else 2 * value or 1


def write(path, text):
    """Write a module without its bytecode, which would stay if a file of one size changes twice in a second."""
    path.write_text(text, encoding="utf-8")
    for old in path.parent.glob(f"__pycache__/{path.stem}.*"):
        old.unlink()


def mutate(copy, constant):
    """Write the module of the constant anew in the copy of the package; return its path and its text before."""
    path = copy / constant.path.relative_to(PACKAGE.parent)
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    node = constant.node
    first, last = node.lineno - 1, node.end_lineno - 1
    # columns of a syntax tree count bytes
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    write(path, "".join([*lines[:first], head, repr(change(constant.value)), tail, *lines[last + 1 :]]))
    return path, text


def run(guard, copy):
    """Run a test on the copy; return what became of the mutant.

    `-P` leaves out the current folder, whose package would win over the copy.
    """
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{guard}"]
    done = subprocess.run(
        command, cwd=PACKAGE.parent, env=environment, capture_output=True, text=True, encoding="utf-8"
    )
    return ENDS.get(done.returncode, f"ERROR\n{done.stdout}{done.stderr}")


def main(names):
    constants = find_constants()
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
        ends = []
        for name in names or GUARDED:
            began = perf_counter()
            path, text = mutate(copy, constants[name])
            ends.append(run(GUARDED[name], copy))
            write(path, text)
            print(f"{ends[-1]:8}  {name:32}  {GUARDED[name]}  ({perf_counter() - began:.0f} s)", flush=True)
    return int(ends != ["killed"] * len(ends))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
