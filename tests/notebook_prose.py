"""Numbers that sentences of a notebook state, and where the notebook shows them.

A sentence may state a number if an input of the code, an output or a page to which its cell links has it, rounded as
the sentence rounds it. Outputs count up to the next sentences. After another run the same place must show it, of the
code right above and below if the number stands there. So a false number passes only where another one is the same by
chance. Words count from three to nine. Dates are left out, and every reader knows the level of intervals, 95 %.
"""

import ast
import re
from typing import NamedTuple

SEED = re.compile(r"^((?:FIT|STUDY)_SEED) = (\d+)\b", re.M)
"""Seeds of chance. `DATA_SEED` and `SAMPLE_SEED` make the data and the one sample that the sentences describe."""
WORDS = "three four five six seven eight nine".split()
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
NOT_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|^\d+\. |\b(?:19|20)\d\ds?\b"
    rf"|\b\d+ (?=(?:{MONTHS})\b)",
    re.M | re.S,
)
NUMBER = re.compile(
    r"(?<![\w.])(?P<digits>(?:\d[\d,]*)?\.?\d+(?:e[+-]?\d+)?)(?P<percent>\s?%)?(?!\w)"
    rf"|\b(?P<word>{'|'.join(WORDS)})\b",
    re.I,
)


class Stated(NamedTuple):
    """A number as text, its value without sign, and how far a shown one may lie from it: half of the last digit."""

    text: str
    value: float
    half: float

    def is_shown_by(self, value):
        return abs(value - self.value) <= self.half * (1 + 1e-6)


def find_numbers(text):
    """Return the numbers of a text, percentages as shares."""
    found = []
    for match in NUMBER.finditer(text):
        digits = match["digits"] or str(WORDS.index(match["word"].lower()) + 3)
        scale = 0.01 if match["percent"] else 1.0
        places = 0 if "e" in digits else len(digits.partition(".")[2])
        found.append(Stated(match[0], float(digits.replace(",", "")) * scale, 0.5 * 10.0**-places * scale))
    return found


def is_prose(cell):
    return cell["cell_type"] == "markdown"


def read_outputs(cell):
    """Return the numbers that a cell shows, in their order: of tables those of their cells, not of the index."""
    texts = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if "text/html" in data:
            texts += re.findall(r"<td[^>]*>(.*?)</td>", "".join(data["text/html"]), re.S)
        elif "image/png" not in data:
            texts.append("".join(data.get("text/plain", output.get("text", ""))))
    return [number.value for number in find_numbers("\n".join(texts))]


def read_inputs(cells):
    """Return the numbers in the code."""
    nodes = (node for c in cells if not is_prose(c) for node in ast.walk(ast.parse("".join(c["source"]))))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) in (int, float)]


def find_unshown(notebook, folder, now=None):
    """Return each number that nothing shows, with its sentence.

    The notebook lies in `folder`, from which its links lead, and `now` is the same after another run.
    """
    cells, missing = notebook["cells"], []
    before = [read_outputs(cell) for cell in cells]
    after = before if now is None else [read_outputs(cell) for cell in now["cells"]]
    prose = [i for i, cell in enumerate(cells) if is_prose(cell)]
    inputs = [0.95, *read_inputs(cells)]
    for last, i, end in zip([-1, *prose], prose, [*prose[1:], len(cells)], strict=False):
        source = "".join(cells[i]["source"])
        places = [(j, *pair) for j in range(end) for pair in zip(before[j], after[j], strict=False)]
        pages = [folder / target for target in re.findall(r"\]\(([^)#:]+\.md)", source)]
        known = inputs + [n.value for p in pages for n in find_numbers(p.read_text(encoding="utf-8"))]
        for sentence in re.split(r"(?<=[.:?])\s+|\n\n", NOT_PROSE.sub(" ", source)):
            for number in find_numbers(sentence):
                shown = [(j, new) for j, old, new in places if number.is_shown_by(old)]
                shown = [place for place in shown if place[0] > last] or shown
                if not any(map(number.is_shown_by, [*known, *(new for _, new in shown)])):
                    missing.append(f"{number.text} in: {' '.join(sentence.split())}")
    return missing
