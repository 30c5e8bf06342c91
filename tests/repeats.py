"""Samples in which each draw counts as often as it was made."""

import erbayes as eb


def each_draw(sample):
    """Return the same sample, each draw of which counts."""
    return eb.Sample(sample.units, sample.design, sample.expansion.count_each(), sample.looks)
