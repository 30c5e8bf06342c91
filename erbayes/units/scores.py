"""Which columns of a table of links have the scores or answers that decide which rows are links."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .._internal.errors import DataError, Remedy, head
from .._internal.known_columns import find_known, plain
from .facts import SWEEP, Facts, mark_answers, read_numbers


def list_scores(facts: Facts, left: Any, right: Any) -> list[tuple[Any, float | None]]:
    """Return the columns that decide which rows are links, with their thresholds."""
    named, table = facts.named, facts.table
    threshold = named.threshold
    scores = [named.score] if named.score is not None else _find_scores(facts, {left, right})
    if not scores:
        return [(None, None)]
    if answers := [c for c in scores if mark_answers(table[c]) is not None]:
        return [(answers[0], threshold)]
    if threshold is None:
        raise DataError(
            f"{facts.what}: without a threshold, scores {scores[0]!r} of any size would be links",
            Remedy.THRESHOLD,
        )
    if threshold == SWEEP:
        return [(scores[0], threshold)]
    numbers = {c: read_numbers(table[c]) for c in scores}
    if len(scores) == 1:
        _refuse_share(facts, scores[0], numbers[scores[0]], threshold)
        return [(scores[0], threshold)]
    above = [c for c, x in numbers.items() if x is not None and x.max() > 1]
    # a threshold above 1 is none of probabilities, and one up to 1 may be of either
    fitting = above if threshold > 1 else sorted(scores, key=lambda c: c in above)
    return [(c, threshold) for c in fitting]


def _find_scores(facts: Facts, ends: set[Any]) -> list[Any]:
    """Return the columns apart from `ends` that have scores or answers, none if each row is a link."""
    table, threshold = facts.table, facts.named.threshold
    taken = ends.union(facts.sources, *({p.left, p.right} for p in facts.pairs))
    rest = [c for c in facts.columns if c not in taken]
    scores = find_known(rest, "score")
    if numeric := [c for c in scores if read_numbers(table[c]) is not None]:
        return numeric  # no other column is looked at, of which matchers write many
    answers = find_known(rest, "answer")
    if marked := [c for c in answers if mark_answers(table[c]) is not None]:
        return marked[:1]
    measured = [c for c in rest if read_numbers(table[c]) is not None]
    if answers and answers[0] not in measured:
        _refuse_answers(facts, answers[0])
    if len(measured) == 1 and (threshold is not None or len(rest) == 1):
        return measured
    # words where scores should be are shown by whoever reads them
    if scores or (threshold is not None and len(rest) == 1):
        return scores or rest
    if threshold == SWEEP:
        columns = f"the table of the {facts.what} has {head(facts.columns, 20)}"
        raise DataError(f"{columns}: it is not clear which has the scores", Remedy.SCORED)
    if threshold is not None:
        said = f"{facts.what}: a threshold of {threshold:g} needs the column of scores"
        raise DataError(f"{said}; there is {head(rest, 20) or 'none'}", Remedy.SCORE)
    words = [c for c in rest if c not in measured and mark_answers(table[c]) is not None]
    loose = [c for c in [*measured, *words] if plain(c) != "matchkey"]
    if loose and not facts.named.ends:
        said = f"{facts.what}: is each row a link, or is {head(loose)} a score or an answer?"
        raise DataError(said, Remedy.SCORE, Remedy.BARE_LINKS)
    return []


def _refuse_answers(facts: Facts, column: Any) -> None:
    """Refuse a column of answers that has other words than those for yes and no."""
    words = pd.Series(facts.table[column].unique()).dropna()
    shown = head([word for word in words if mark_answers(pd.Series([word])) is None])
    raise DataError(f"{facts.what}: answers {column!r} must be 1 or 0, yes or no, not such as {shown}")


def _refuse_share(facts: Facts, column: Any, numbers: pd.Series | None, threshold: float) -> None:
    """Refuse a threshold in [0, 1] below all of scores, some of which are above 1, such as percentages."""
    if numbers is None or len(numbers) < 2 or not 0 <= threshold <= 1:
        return
    if numbers.min() >= threshold and numbers.max() > 1:
        raise DataError(
            f"{facts.what}: scores {column!r} lie between {numbers.min():g} and {numbers.max():g}, all "
            f"above {threshold:g}: is that a share, and scores are not?",
            Remedy.THRESHOLD,
        )
