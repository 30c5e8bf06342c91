"""Names that well-known matchers give to the columns of their tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

KNOWN = {
    "record": ("unique_id", "z_zid"),
    "cluster": ("cluster_id", "Cluster ID", "canonical_id", "z_cluster"),
    "left": ("unique_id_l",),
    "right": ("unique_id_r",),
    "score": ("match_probability", "confidence_score", "z_score"),
}
"""Names that Splink, dedupe and Zingg give to columns of each meaning. Their scores lie between 0 and 1."""


def fill_known(wanted: Mapping[str, str | None], columns: Iterable[str]) -> dict[str, str | None]:
    """Return columns of meanings; one name that a matcher is known for stands for a None."""
    taken, there = set(wanted.values()), list(columns)
    found = {m: [c for c in there if c in KNOWN.get(m, ()) and c not in taken] for m in wanted}
    return {
        meaning: found[meaning][0] if name is None and len(found[meaning]) == 1 else name
        for meaning, name in wanted.items()
    }
