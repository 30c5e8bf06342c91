"""Size families that the package does not have, and the code of the page about them."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from erbayes.bayes import NormalPrior

PAGE = (Path(__file__).parents[1] / "docs" / "guide" / "own-parts.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@dataclass(frozen=True)
class NegativeBinomial:
    """Negative binomial sizes without 0, whose prior is centred at the size of a random record's cluster."""

    mean_sd: float = 1.0
    shape_sd: float = 1.5

    def log_weights(self, data):
        predicted = pt.exp(data["log_biased_mean"]) - 0.5
        nu = predicted * pt.exp(NormalPrior(0.0, self.mean_sd)("size_log_mean"))
        alpha = pt.exp(NormalPrior(0.0, self.shape_sd)("size_log_shape"))
        s = data["size"]
        log_p = pt.log(nu) - pt.log(nu + alpha + 1)
        return pt.gammaln(s + alpha) - pt.gammaln(s + 1) + s * log_p + pt.log(data["width"])


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
