"""Drawing: which records of a prediction to label, the design to estimate by afterwards, and when to stop.

drawn = draw(prediction, n=200, seed=1)
sample = Sample(measure(prediction, labels), drawn.design(labels))
check(sample, {"pairwise-precision": 0.95}).verdict
"""
