"""Do NUTS and the fast fit say the same?

    python benchmarks/agreement.py

95 % intervals of precision P and recall R of 20 samples: five pairs of PatentsView releases and noise,
uniform clusters and uniform records, 100 and 400 draws. Differences of the ends, fast less NUTS, in
posterior standard deviations. Many draws (4 chains of 7,500 against 60,000 of importance sampling), so
that little of a difference is Monte Carlo error: tails of R are long, and their 2.5 % quantile moves by .1
to .25 standard deviations from seed to seed with 10,000 draws. Exits 1 where an end is off by more than .15.
"""

import sys
import warnings

import numpy as np
from intervals import METRICS, PLANS, populations

from erbayes import bayes

DRAWS, CHAINS, FAST, BAR = 7500, 4, 60_000, 0.15

if __name__ == "__main__":
    warnings.simplefilter("ignore", bayes.NotConverged)
    off = []
    people = populations()
    for k, (plan, name, n) in enumerate((p, name, n) for p in PLANS for name in people for n in (100, 400)):
        sample = PLANS[plan].draw(people[name].units, n, 1, np.random.default_rng([11, k])).each[0]
        slow = bayes.nuts(sample, draws=DRAWS, chains=CHAINS, rng=np.random.default_rng(1), progressbar=False)
        quick = bayes.fast(sample, draws=FAST, rng=np.random.default_rng(2))
        a, b = slow.apply(METRICS), quick.apply(METRICS)
        off.append((b.interval() - a.interval()) / a.sd[:, None])
        ends = " ".join(f"{x:+.3f}" for x in off[-1].ravel())
        print(f"{plan:18s} {name:12s} {n:4d}   ends of P, R off by {ends}", flush=True)
    worst, typical = np.abs(off).max(), np.sqrt(np.square(off).mean())
    beyond = int((np.abs(off) > BAR).sum())
    print(f"root mean square {typical:.3f}, largest {worst:.3f}, {beyond} of {np.size(off)} above {BAR}")
    sys.exit(int(worst > BAR))
