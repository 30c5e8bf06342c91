"""Size families that the package does not have: that of the documentation, and one with priors of PyMC."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

PAGE = (Path(__file__).parents[1] / "docs" / "guide" / "own-parts.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)

_page: dict[str, Any] = {}
exec(BLOCKS[0].rpartition("\nfit = ")[0], _page)
NegativeBinomial = _page["NegativeBinomial"]


@dataclass(frozen=True)
class BodyAndTail:
    """A probability for each of `body` sizes, with a Dirichlet prior, and a generalised-Pareto tail above."""

    body: int = 7

    def log_weights(self, data):
        w = pm.Dirichlet("size_body", np.ones(self.body + 1))
        xi = pm.TruncatedNormal("size_shape", 0.5, 0.3, lower=0.02, upper=2.0)
        tau = self.body * pt.exp(pm.Normal("size_log_scale", 0.0, 1.0))
        excess = data["size"][self.body :] - self.body
        tail = -(1 / xi + 1) * pt.log1p(xi * excess / tau) + pt.log(data["width"][self.body :])
        return pt.concatenate([pt.log(w[:-1]), tail - pt.logsumexp(tail) + pt.log(w[-1])])
