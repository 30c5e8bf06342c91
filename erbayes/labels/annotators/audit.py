"""Errors of one annotator, such as a machine, by careful labels of the same mentions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pandas as pd

from ..._internal.arrays import FloatArray
from ..._internal.errors import Alarm, Grade, Sentence
from .error_models import Annotator, KeptRecords, MissedRecords
from .rates import Beta

MANY = 0.1
"""Errors that no model has, over the others, from which an audit raises an alarm."""


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """Errors of an annotator, such as a machine, by careful labels of the same mentions (see `Pair.audit`).

    `invented`: foreign records in answers, of clusters without a record that was rightly found; `removed`:
    records of the entity in home that answers leave out. No model of errors has these two.
    """

    table: pd.DataFrame
    invented: int
    removed: int

    def _estimate_rate(self, row: str) -> Beta:
        """Return the rate of a row, which weighs as much as its cases."""
        wrong, right, cases = self.table.loc[row].to_numpy(dtype=float)
        scale = cases / max(wrong + right, 1.0)
        return Beta(0.5 + wrong * scale, 0.5 + right * scale)

    @property
    def rates(self) -> tuple[Beta, Beta]:
        """The shares missed and kept, for a model of annotators."""
        return self._estimate_rate("missed"), self._estimate_rate("kept")

    @property
    def annotator(self) -> Annotator:
        """The model with these rates, for `erbayes.analysis.sensitivity.restored_analysis`."""
        return Annotator(
            MissedRecords(self._estimate_rate("missed")),
            KeptRecords(self._estimate_rate("kept"), self._estimate_rate("kept elsewhere")),
        )


def warn_unmodelled(audit: Audit) -> None:
    """Warn if errors that no model has are more than a tenth of those in the table."""
    modelled = int(audit.table["wrong"].sum())
    if audit.invented + audit.removed > MANY * modelled:
        what = (
            f"{audit.removed:,} records of entities were removed from home, and {audit.invented:,} foreign "
            f"ones added from elsewhere. The errors that an audit rates are {modelled:,}. "
            "Estimates corrected by its rates come out too low: take the labels as cheap ones of "
            "erbayes.two_phase"
        )
        warnings.warn(Sentence(what, Grade.FAULT), Alarm, stacklevel=3)  # where `Pair.audit` is called


def count_audited_errors(t: pd.DataFrame) -> Audit:
    """Count the errors of the first annotator by a table of `Pair`, as if the second were right."""
    first, second, home = (t[c].to_numpy() for c in ("first", "second", "home"))
    clusters = t.assign(right=first & second).groupby(["mention", "cluster"])
    met = clusters["right"].transform("any").to_numpy()
    there = t.assign(wrong=first & ~second)[~home & met].groupby(["mention", "cluster"])
    foreign = (there["m"].first() - there["second"].sum()).to_numpy(dtype=float)
    wrong = there["wrong"].sum().to_numpy(dtype=float)
    missed, kept = (
        [rows.groupby(["mention", "cluster"])[c].sum().to_numpy(dtype=float) for c in ("wrong", "all")]
        for rows in (
            t.assign(wrong=~first, all=1)[~home & second],
            t.assign(wrong=first, all=1)[home & ~second],
        )
    )
    rows = [_count_audited(*missed), _count_audited(*kept), _count_audited(wrong, foreign)]
    table = pd.DataFrame(rows, ["missed", "kept", "kept elsewhere"], ["wrong", "right", "cases"])
    invented, removed = int((first & ~second & ~home & ~met).sum()), int((home & second & ~first).sum())
    return Audit(table.astype({"wrong": int, "right": int}), invented, removed)


def _count_audited(wrong: FloatArray, records: FloatArray) -> tuple[float, float, float]:
    """Return the records of blocks judged wrongly and rightly, and the cases that all of them count as."""
    cases = records.sum() ** 2 / max((records**2).sum(), 1.0)
    return float(wrong.sum()), float((records - wrong).sum()), float(cases)
