"""Predicted links of each domain: estimated, and known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from ...design.sample import Sample
from ...engine.diagnostics import compare_with_known, scale_to_records
from ...engine.fitted import fit_sample
from ...metrics.columns import PREDICTED_LINKS, Domain, InDomain, Links
from .effective import FEWEST
from .metric import in_domain


def balance_domains(sample: Sample, domains: Sequence[Domain], links: Links = Links.SHARED) -> pd.DataFrame:
    """Compare the estimated predicted links of each domain with their known number.

    The estimate is N_g Σwy/Σw records of the domain. Far below the known number, the sample missed large
    clusters that have records of the domain, and its other estimates are unreliable too.
    """
    of_domains = [in_domain(scale_to_records(PREDICTED_LINKS), d, links, known=True) for d in domains]
    fit = fit_sample(sample, of_domains)
    totals = fit.totals
    columns = [InDomain(PREDICTED_LINKS, d, links) for d in domains]
    at = [totals.names.index(column.name) for column in columns]
    with np.errstate(invalid="ignore"):  # a domain without draws
        df = np.maximum(totals.mean[at] ** 2 / np.diagonal(totals.moment)[at] - 1, 1)
    table = compare_with_known(fit.plain, [sample.units.total(c) for c in columns])
    table.insert(2, "df", df)
    return table.set_axis(pd.Index(list(map(str, domains)), name="domain"))


def domains_out_of_balance(
    sample: Sample, domains: Sequence[Domain], links: Links = Links.SHARED, fewest: float = FEWEST
) -> list[str]:
    """Return a clause for each domain whose predicted links are far from their known number.

    A single domain is far if it is over 3 standard errors off. Several have the same chance of a false alarm
    together (Bonferroni), and few draws count by Student's t.
    """
    table = balance_domains(sample, domains, links)
    table = table[table["df"] + 1 >= fewest]
    # three standard errors for one domain, and a smaller chance of each if many are looked at
    limit = -stdtrit(table["df"], ndtr(-3) / max(len(table), 1))
    # sums of exact numbers differ by rounding
    far = abs(table["estimate"] - table["known"]) > limit * table["se"] + 1e-9 * table["known"]
    return [
        f"Out of balance: the sample estimates {row.estimate:,.0f} predicted links of {domain} (se "
        f"{row.se:,.0f}), the prediction holds {row.known:,.0f}"
        for domain, row in table[far].iterrows()
    ]
