"""Errors of annotators, put into true labels by plain loops; imports nothing of erbayes."""


def err(true, prediction, starts, rng, removed=0.0, missed=0.0, kept=0.0, added=0.0, whole=False):
    """Return labels, record -> entity, of one annotator, from true ones; `starts`: entity -> record.

    Foreign records are kept one by one, or all of a cluster or none.
    """
    members, pieces = {}, {}
    for record, cluster in prediction.items():
        members.setdefault(cluster, []).append(record)
    for record, entity in true.items():
        pieces.setdefault(entity, {}).setdefault(prediction[record], []).append(record)
    labels, clusters = {}, list(members)
    for entity, of_entity in pieces.items():
        for cluster, mine in of_entity.items():
            if cluster != prediction[starts[entity]] and rng.random() < missed:
                continue
            for record in mine:
                if record == starts[entity] or rng.random() >= removed:
                    labels[record] = entity
            foreign = [record for record in members[cluster] if record not in true]
            together = rng.random() < kept
            for record in foreign:
                if together if whole else rng.random() < kept:
                    labels.setdefault(record, entity)
        for _ in range(rng.poisson(added)):
            for record in members[clusters[rng.integers(len(clusters))]]:
                if record not in true:
                    labels.setdefault(record, entity)
    return labels
