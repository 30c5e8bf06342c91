"""Agreement of NUTS and the fast fit.

    python benchmarks/agreement.py

95 % intervals of precision P and recall R of 20 samples: five pairs of PatentsView releases and noise,
uniform clusters and uniform records, 100 and 400 draws. Differences of the ends, fast less NUTS, in
posterior standard deviations. Tails of R are long, and their 2.5 % quantile moves by .1 to .3 standard
deviations from seed to seed with 10,000 draws of either: so four fast fits of 60,000 draws and four long
chains are averaged, and what they vary by tells the Monte Carlo standard error. Exits 1 if an end is
off by more than .15 and two such errors.
"""

import sys
import warnings
from dataclasses import replace

import numpy as np
from common import PLANS
from common import PR as METRICS
from heavy_tails import populations

from erbayes import bayes
from erbayes.study import draw_samples

DRAWS, TIMES, FAST, BAR = 7500, 4, 60_000, 0.15


if __name__ == "__main__":
    warnings.simplefilter("ignore", bayes.NotConverged)
    off, error = [], []
    people = populations()
    for k, (plan, name, n) in enumerate((p, name, n) for p in PLANS for name in people for n in (100, 400)):
        drawn = draw_samples(PLANS[plan], people[name].units, n, 1, np.random.default_rng([11, k]))
        (sample,) = drawn.separate
        fit = bayes.nuts(sample, draws=DRAWS, chains=TIMES, rng=np.random.default_rng(1), progressbar=False)
        slow = fit.apply(METRICS)
        quick = [
            bayes.fast(sample, draws=FAST, rng=np.random.default_rng([2, i])).apply(METRICS)
            for i in range(TIMES)
        ]
        chains = np.array([replace(slow, values=chain[None]).interval() for chain in slow.values])
        fits = np.array([one.interval() for one in quick])
        sd = slow.sd[:, None]
        off.append((fits.mean(axis=0) - slow.interval()) / sd)
        error.append(np.sqrt((fits.var(axis=0, ddof=1) + chains.var(axis=0, ddof=1)) / TIMES) / sd)
        told = zip(off[-1].ravel(), error[-1].ravel(), strict=True)
        shown = " ".join(f"{x:+.3f} ({e:.3f})" for x, e in told)
        print(f"{plan:18s} {name:12s} {n:4d}   ends of P, R off by {shown}", flush=True)
    worst, typical, noise = np.abs(off).max(), *(np.sqrt(np.square(x).mean()) for x in (off, error))
    missed = np.abs(off) - 2 * np.array(error) > BAR
    print(
        f"root mean square {typical:.3f} (Monte Carlo error {noise:.3f}), largest {worst:.3f}, "
        f"{int((np.abs(off) > BAR).sum())} of {np.size(off)} above {BAR}, {int(missed.sum())} beyond error"
    )
    sys.exit(int(missed.any()))
