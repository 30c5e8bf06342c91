"""Remedies of errors in the words of the shell, made of those for Python."""

from __future__ import annotations

import re

from .._internal.errors import Remedy

COLUMNS = "name them: --record, --cluster, --entity"
"""The remedy of tables with more columns than are read."""
OTHER_WORDS = {
    Remedy.COLUMNS: COLUMNS,
    Remedy.ORDER: f"if columns are in the other order, {COLUMNS}",
    Remedy.SCANNED_COLUMNS: COLUMNS,
    Remedy.COVER: (
        "give these records clusters of their own in it or, if none of them is labelled, leave them out: "
        "--frame SECOND"
    ),
    Remedy.LINKS: "if rows are links between records, --edges makes clusters of them",
    Remedy.SCORE: "name those of the two records and of scores: --left, --right, --score with --threshold",
    Remedy.BLANK: (
        "erbayes clusters FILE --blank own -o clusters.csv makes each a cluster of its own, and --blank omit "
        "leaves them out"
    ),
    Remedy.AT_COLUMNS: "name the column of each: --at 0.9=COLUMN,0.5=ANOTHER",
    Remedy.BARE_LINKS: "or, if each is a link, name both records, as in FILE:LEFT,RIGHT with --edges",
    Remedy.SCORED: "name those of the two records and of scores: --left, --right, --score",
    Remedy.DECIDE: "erbayes labels FOLDER lists them: decide them in the sheets, or all together by --decide",
    Remedy.FRAME: "--frame with the older prediction counts its records only",
    Remedy.MEMORY: "allow it more, such as --memory-limit 8GB",
    Remedy.DATABASE: "name its table: --table NAME",
    Remedy.VIEW: "if you trust the database, make a table of its view, or name the files of the view",
    Remedy.DISTINCT: (
        "if repeats were dropped, choose --design distinct-entities with --draws; if records were drawn "
        "without replacement, list the entity of every draw in --drawn, with --population"
    ),
    Remedy.EVERY_DRAW: "if repeats were dropped, list the entity of every draw in the file of --drawn",
    Remedy.LARGE: (
        "label more units, or draw more records of large predicted clusters: erbayes draw --design mixture"
    ),
    Remedy.UNSEEN: "draw records, or more of them: erbayes draw --design uniform-records or mixture",
    Remedy.LOOK: (
        "look whether the entities of five of these clusters go on in others, with at least a fifth as many "
        "records, and say of how many to a command on one prediction: --looks FOUND/5"
    ),
    Remedy.CAPPED: "a size model allows for it: erbayes estimate --engine size-model",
    Remedy.RECORDS: "or draw records, whose entities show it: erbayes draw --design uniform-records",
    Remedy.INFLUENCE: (
        "few units carry the estimate: erbayes report names them, and shows the jackknife's intervals as well"
    ),
    Remedy.FEATURE: "name it: --feature span=year:range",
    Remedy.BANDS: "look at these answers again, or draw pairs from a file without the lowest scores",
    Remedy.SIZE_MODEL: "a size model needs other draws: erbayes draw --design uniform-records",
    Remedy.WORST_CASES: "ask more annotators, and report the bounds of --worst-cases next to the estimates",
}
"""Remedies for which the shell has other means than an option with the name of the argument."""
CALL = re.compile(r"[\w.]+[(](?:[^()=]*, )?(\w+=[^()]*)[)]")
"""A call whose last argument has a name, which is that of an option."""
ARGUMENT = re.compile(r"\b([a-z_]+)=(Missing\.[A-Z]+|'[^']*'|True|\.\.\.|[a-z]+)")
"""An argument with its name and value."""
POLICY = re.compile(r"Missing\.([A-Z]+)")


def to_options(remedy: str) -> str:
    """Return a remedy with options in the place of arguments: --missing omit of missing=Missing.OMIT."""
    text = ARGUMENT.sub(_write_option, CALL.sub(r"\1", remedy))
    return POLICY.sub(lambda match: match[1].lower(), text)


def _write_option(match: re.Match[str]) -> str:
    """Return the option of an argument, whose value is a placeholder in capitals if it has no quotes."""
    name, value = match.groups()
    option = f"--{name.replace('_', '-')}"
    if value in ("True", "..."):
        return option
    if value.startswith(("'", "Missing.")):
        return f"{option} {value.strip("'")}"
    return f"{option} {'FILE' if value == 'ids' else value.upper()}"


REMEDIES = {remedy: OTHER_WORDS.get(remedy) or to_options(remedy.value) for remedy in Remedy}
"""Each remedy in the words of the shell, for PREDICTION and LABELS."""
