"""Labelled pairs of records: what they say about a matcher, and what they cannot say.

Pairs are drawn by bands of the height at which two records join. One labelled sample then serves every
threshold. It gives the precision of links, and the recall *among candidate pairs*, since no pair shows what
blocking left out.
"""

from .drawing import draw_pairs
from .judged import LabelledPairs, ScoredEdges, estimate, scored_edges

__all__ = ["LabelledPairs", "ScoredEdges", "draw_pairs", "estimate", "scored_edges"]
