"""Options of the engine that turns a sample into estimates, and the engine of each name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from .._internal.errors import DataError
from .lazily import named_engines
from .options import flag, message, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..design.sample import Sample
    from ..engine import Engine
    from ..metrics.definitions import Metric

COMPILES = "note: the size model compiles first, which takes about a minute"
SEED = 1
"""Seed of engines that draw, so that the same call prints the same numbers."""


class EngineName(Enum):
    """Engines of estimates."""

    CLOSED_FORM = "closed-form"
    BOOTSTRAP = "bootstrap"
    JACKKNIFE = "jackknife"
    SIZE_MODEL = "size-model"
    POOL = "pool"
    ADVISED = "advised"


@dataclass(frozen=True, kw_only=True)
class Engines:
    """Options of the engine."""

    panel: ClassVar = "Metrics"

    engine: EngineName | None = option(
        "closed-form (the default), bootstrap, jackknife, size-model, pool, or advised, which says why.",
        metavar="ENGINE",
    )
    side_by_side: bool = flag("Closed form, bootstrap and size model in one table.")

    def __post_init__(self) -> None:
        if self.engine is not None and self.side_by_side:
            raise DataError("--side-by-side has engines of its own: leave out --engine")

    @property
    def given(self) -> bool:
        """True if the options ask for another engine than the closed form."""
        return self.engine not in (None, EngineName.CLOSED_FORM) or self.side_by_side

    @property
    def engines(self) -> dict[str, Engine]:
        """Return the engines that the options name, each under its name."""
        three = [EngineName.CLOSED_FORM, EngineName.BOOTSTRAP, EngineName.SIZE_MODEL]
        names = three if self.side_by_side else [self.engine or EngineName.CLOSED_FORM]
        return {name.value: _make_engine(name) for name in names}

    def announce(self, sample: Sample, metrics: Sequence[Metric]) -> None:
        """Print that a model compiles if the advised engine has one, which the sample decides."""
        if self.engine is EngineName.ADVISED:
            taken, _ = named_engines.advise(sample, metrics)
            if named_engines.fits_a_model(taken):
                message(COMPILES)


def _make_engine(name: EngineName) -> Engine:
    """Return the engine of a name. The room of models is loaded only for one."""
    engine = named_engines.find_engine(name.value)  # which refuses if its packages are missing
    if name in (EngineName.SIZE_MODEL, EngineName.POOL):
        message(COMPILES)
    return engine
