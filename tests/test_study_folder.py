"""The folder of a study: blocks of other code are not used again."""

import subprocess
import sys
import textwrap
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Estimator, Taylor
from erbayes.labels import Records
from erbayes.metrics.intervals import EqualTailed
from erbayes.study import draw_samples, study
from erbayes.study import populations as sim
from erbayes.study.finished import PACKAGE, code_of, digest_of

PEOPLE = sim.simulate(sim.Zeta(2.2, 40), sim.Misattribution(0.1), 500, np.random.default_rng(1))


def run(estimator, folder, repetitions=3, metrics=(m.pairwise_recall,), plan=None):
    return study(
        {"zeta": PEOPLE},
        {"plan": plan or Records()},
        [20],
        {"own": estimator},
        metrics,
        repetitions=repetitions,
        seed=1,
        folder=folder,
    ).runs.estimate.to_numpy()


def constant(x):
    return lambda sample, metrics, rng: eb.metrics.Draws(
        tuple(m.name for m in metrics), np.full((1, 2, len(metrics)), x), tuple(m.support for m in metrics)
    )


def script(text, name="f"):
    """What a script of a user would define: `name` after running it."""
    space = {"__name__": "__main__"}
    exec(compile(textwrap.dedent(text), "script.py", "exec"), space)
    return space[name]


VERSIONS = {
    "constant in the code": ("f = lambda s: s + 1", "f = lambda s: s + 2"),
    "operator": ("def f(s): return s + 1", "def f(s): return s - 1"),
    "function called": ("def f(s): return abs(s)", "def f(s): return round(s)"),
    "helper": ("def g(): return 1\ndef f(s): return g()", "def g(): return 2\ndef f(s): return g()"),
    "helper in a function within": (
        "def g(): return 1\ndef f(s):\n    def h(): return g()\n    return h()",
        "def g(): return 2\ndef f(s):\n    def h(): return g()\n    return h()",
    ),
    "global value": ("a = .1\nf = lambda s: a", "a = .2\nf = lambda s: a"),
    "long array": (
        "import numpy as np\na = np.zeros(9999)\nf = lambda s: a",
        "import numpy as np\na = np.zeros(9999)\na[5000] = 1\nf = lambda s: a",
    ),
    "set": ("a = {1, 2}\nf = lambda s: a", "a = {1, 3}\nf = lambda s: a"),
    "dict": ("a = {1: 2}\nf = lambda s: a", "a = {1: 3}\nf = lambda s: a"),
    "set in the code": ("f = lambda s: s in {'a', 'b'}", "f = lambda s: s in {'a', 'c'}"),
    "default": ("def f(s, a=1): return a", "def f(s, a=2): return a"),
    "keyword default": ("def f(s, *, a=1): return a", "def f(s, *, a=2): return a"),
    "closure": (
        "def make(u): return lambda s: u\nf = make(.1)",
        "def make(u): return lambda s: u\nf = make(.2)",
    ),
    "one of two lambdas in a line": (
        "f, g = (lambda s: s + 1), (lambda s: s + 2)",
        "g, f = (lambda s: s + 1), (lambda s: s + 2)",
    ),
    "partial": (
        "from functools import partial\ndef g(s, a): return a\nf = partial(g, a=1)",
        "from functools import partial\ndef g(s, a): return a\nf = partial(g, a=2)",
    ),
    "bound method": (
        "class A:\n    def __init__(self, k): self.k = k\n    def g(self): return self.k\nf = A(1).g",
        "class A:\n    def __init__(self, k): self.k = k\n    def g(self): return self.k\nf = A(2).g",
    ),
    "field": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: int\nf = A(1)",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: int\nf = A(2)",
    ),
    "function in a field": (
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: int\nf = A(lambda s: 1)",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    k: int\nf = A(lambda s: 2)",
    ),
    "shown by repr alone": (
        "class A:\n    __slots__ = ()\n    def __repr__(self): return 'A(1)'\nf = A()",
        "class A:\n    __slots__ = ()\n    def __repr__(self): return 'A(%d)' % 2\nf = A()",
    ),
    "method": (
        "class A:\n    def __call__(self): return 1\nf = A()",
        "class A:\n    def __call__(self): return 2\nf = A()",
    ),
    "property": (
        "class A:\n    @property\n    def k(self): return 1\nf = A()",
        "class A:\n    @property\n    def k(self): return 2\nf = A()",
    ),
    "cached property": (
        "from functools import cached_property\nclass A:\n    @cached_property\n    def k(self): return 1\nf = A()",
        "from functools import cached_property\nclass A:\n    @cached_property\n    def k(self): return 2\nf = A()",
    ),
    "class method": (
        "class A:\n    @classmethod\n    def k(cls): return 1\nf = A()",
        "class A:\n    @classmethod\n    def k(cls): return 2\nf = A()",
    ),
    "class attribute": (
        "class A:\n    k = 1\nf = A()",
        "class A:\n    k = 2\nf = A()",
    ),
    "base class": (
        "class B:\n    def __call__(self): return 1\nclass A(B): pass\nf = A()",
        "class B:\n    def __call__(self): return 2\nclass A(B): pass\nf = A()",
    ),
    "wrapped": (
        "from functools import lru_cache\n@lru_cache\ndef f(s): return 1",
        "from functools import lru_cache\n@lru_cache\ndef f(s): return 2",
    ),
}


@pytest.mark.parametrize("change", VERSIONS)
def test_changed_code_is_noticed(change):
    before, after = VERSIONS[change]
    assert code_of(script(before)) == code_of(script(before))
    assert code_of(script(before)) != code_of(script(after))


def test_comments_and_places_do_not_matter():
    short = "def g(): return 1\ndef f(s): return g()"
    long = "# words\n\n\ndef g():\n    # words\n    return 1\n\n\ndef f(s):  # words\n    return g()"
    assert code_of(script(short)) == code_of(script(long))


def test_whether_equal_constants_are_one_object_does_not_matter():
    """The interpreter shares constants in compiled files as it likes."""
    for one in (1.5, 10**9, "two words", (1.5, "two words"), b"two words", 2j):
        other = eval(repr(one))
        assert one is not other
        assert code_of(partial(run, one, one)) == code_of(partial(run, one, other))


def test_code_in_a_module_of_the_user(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for value in (1, 2):
        (tmp_path / "my_helpers.py").write_text(f"def g(): return {value}")
        monkeypatch.delitem(sys.modules, "my_helpers", raising=False)
        found.append(code_of(script("import my_helpers\ndef f(s): return my_helpers.g()")))
        (tmp_path / "my_helpers.py").unlink()
        for kept in (tmp_path / "__pycache__").glob("*"):
            kept.unlink()
    assert found[0] != found[1]


def digest():
    scripts = [script(text) for pair in VERSIONS.values() for text in pair]
    return code_of(Records(), m.ALL, Estimator(Taylor(order=1), EqualTailed()), constant(1.0), *scripts)


DIGEST = """
import sys
sys.path.insert(0, {tests!r})
import test_study_folder
print(test_study_folder.digest(), end="")
"""


@pytest.mark.slow
def test_the_digest_is_the_same_in_every_process():
    """Under another seed of hashes too."""
    found = subprocess.run(
        [sys.executable, "-c", DIGEST.format(tests=str(Path(__file__).parent))],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(eb.__file__).parents[1],
        env={"PYTHONHASHSEED": "7"},
    )
    assert found.stdout == digest()


def test_the_digest_changes_with_the_package(tmp_path):
    """From a folder and from an archive; compiled files do not count, every source does."""
    folder, archive = tmp_path / "erbayes", tmp_path / "erbayes.whl"
    for name, text in {"a.py": "1", "b.py": "2", "in/c.py": "3", "in/__pycache__/c.pyc": "4"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    before = digest_of(folder)
    with zipfile.ZipFile(archive, "w") as into:
        for file in sorted(folder.rglob("*.py"), reverse=True):
            into.write(file, f"erbayes/{file.relative_to(folder)}")
    assert digest_of(zipfile.Path(archive, "erbayes/")) == before
    (folder / "in" / "__pycache__" / "c.pyc").write_text("5")
    assert digest_of(folder) == before
    for name in ("a.py", "in/c.py"):
        (folder / name).write_text("# changed")
        assert digest_of(folder) != before
        before = digest_of(folder)
    (folder / "b.py").rename(folder / "d.py")
    assert digest_of(folder) != before
    assert digest_of(Path(eb.__file__).parent) == PACKAGE


def test_a_name_without_a_value_yet():
    f = script("def make():\n    def f(s): return later\n    return f\n    later = 1\nf = make()")
    assert code_of(f) == code_of(f)


def test_code_that_ran_has_the_same_digest():
    """The interpreter rewrites instructions of code that runs often."""
    f = script("def f(s):\n    total = 0\n    for i in range(s): total += i\n    return total")
    before = code_of(f)
    for _ in range(200):
        f(100)
    assert code_of(f) == before


def test_blocks_of_other_code_are_told_and_not_used(tmp_path):
    folder = tmp_path / "runs"
    assert (run(constant(0.25), folder) == 0.25).all()
    with pytest.warns(UserWarning, match=r"runs: finished blocks that other code made, .* not used: 1\."):
        assert (run(constant(0.5), folder) == 0.5).all()
    assert (run(constant(0.25), folder) == 0.25).all()  # both are kept, and neither is told again


def test_changed_plans_and_metrics_are_noticed(tmp_path):
    folder = tmp_path / "runs"

    def recall(power):
        formula = m.pairwise_recall.formula
        return m.Metric("own", m.pairwise_recall.columns, lambda b, a: formula(b, a) ** power,
                        m.pairwise_recall.size, m.UNIT, "own")  # fmt: skip

    once = run(Taylor(order=1), folder, metrics=[recall(1)])
    with pytest.warns(UserWarning, match="other code"):
        assert run(Taylor(order=1), folder, metrics=[recall(2)]) == pytest.approx(once**2)

    class First:
        def draw_samples(self, units, n, samples, rng):
            return draw_samples(Records(), units, n, samples, np.random.default_rng(7))

    named_alike = First()
    first = run(Taylor(), folder, plan=named_alike)
    First.draw_samples = lambda self, *given: draw_samples(Records(), *given)
    with pytest.warns(UserWarning, match="other code"):
        assert (run(Taylor(), folder, plan=named_alike) != first).any()


def never(sample, metrics, rng):
    raise AssertionError("a folder that cannot be written to is told before the work, not after it")


class TestErrors:
    def test_no_folder_above(self, tmp_path):
        with pytest.raises(
            eb.DataError, match=r"cannot write .*none/runs: No such file .*: name a new folder"
        ):
            run(never, tmp_path / "none" / "runs")

    def test_a_file(self, tmp_path):
        (tmp_path / "runs").write_text("")
        with pytest.raises(eb.DataError, match=r"cannot write .*runs: File exists: name a new folder"):
            run(never, tmp_path / "runs")

    @pytest.mark.parametrize("kept", [0, 20, 150])
    def test_a_truncated_block(self, tmp_path, kept):
        folder = tmp_path / "runs"
        run(constant(1.0), folder)
        (file,) = folder.iterdir()
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(eb.DataError, match=f"{file.name} is damaged: remove it, and its block is made"):
            run(constant(1.0), folder)
        file.unlink()
        assert (run(constant(1.0), folder) == 1).all()

    def test_read_only(self, tmp_path, monkeypatch):
        """Finished blocks are read; others are refused before the work."""
        folder = tmp_path / "runs"
        run(constant(1.0), folder)
        monkeypatch.setattr("os.access", lambda path, mode: False)
        assert (run(constant(1.0), folder) == 1).all()
        with pytest.raises(eb.DataError, match=r"cannot write .*: its folder may only be read"):
            run(never, folder, 4)
