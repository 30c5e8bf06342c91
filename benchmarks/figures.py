"""The first line of a page of figures, which its scripts write: commit, date, seed and `NUMBERS`.

`python benchmarks/figures.py` marks the pages whose figures are older than the last change of numbers.
"""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

MOVED: tuple[tuple[str, ...] | None, ...] = (
    None,
    None,
    ("averages", "compared-domains", "domains", "settled", "stopping", "unseen"),
    ("advised", "averages", "heavy-tails", "model-differences", "size-model"),
    ("README", "labelling-error"),
    ("README", "labelling-error"),
    ("advised",),
    ("assisted",),
    ("averages", "heavy-tails", "model-differences", "size-model"),
    ("advised", "averages", "heavy-tails", "model-differences", "size-model"),
    (),
    ("settled",),
    (),
    ("settled",),
)
"""Pages whose figures each change moved that moves estimates, intervals or alarms on purpose; None: all.

Such a change adds a line, and `NUMBERS` of it and all before stands in the first lines of pages.
"""
NUMBERS = len(MOVED)
FOLDER = Path(__file__).parent
RUN = re.compile(r"`(\w+\.py)` \(commit ([^,]+), (\d{4}-\d\d-\d\d), ([^)]+), numbers (\d+)\)")


def is_older(page: str, numbers: str) -> bool:
    """Return whether a later change moved the figures of a run of a page."""
    return any(pages is None or page in pages for pages in MOVED[int(numbers) :])


def write_line(page: str, runs: list[tuple[str, ...]]) -> str:
    """Return the first line of a page whose figures are of some runs: script, commit, date, seed, numbers."""
    told = [f"`{name}` (commit {commit}, {day}, {seed}, numbers {n})" for name, commit, day, seed, n in runs]
    older = [f"`{name}`" for name, *_, n in runs if is_older(page, n)]
    mark = f" **Older than the last change of numbers**: {', '.join(older)}." if older else ""
    return f"Figures of {', '.join(told)}.{mark}"


def mark_page(page: Path, *new: tuple[str, ...]) -> None:
    """Write the first line of a page anew, with new runs in place of those of the same scripts."""
    first, rest = page.read_text(encoding="utf-8").split("\n", 1)
    runs = {run[0]: run for run in (*RUN.findall(first), *new)}
    page.write_text(f"{write_line(page.stem, list(runs.values()))}\n{rest}", encoding="utf-8")


def stamp(page: str, seed: str) -> None:
    """Say in the first line of a page that its figures are of the script that runs, at its end.

    The tables that the script has printed are then put into the page by hand.
    """

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(FOLDER), *words], capture_output=True, check=True, text=True
        ).stdout

    changed = git("status", "--porcelain", "--", "../erbayes", "*.py")
    commit = git("rev-parse", "--short=8", "HEAD").strip() + " and changes" * bool(changed)
    run = Path(sys.argv[0]).name, commit, f"{datetime.now(UTC):%Y-%m-%d}", seed, str(NUMBERS)
    mark_page(FOLDER / f"{page}.md", run)


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.md")):
        mark_page(path)
