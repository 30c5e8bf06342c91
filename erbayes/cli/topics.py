"""Topics of `erbayes help`: what options mean together, and every option of a panel."""

from __future__ import annotations

from typing import Any

import typer

from .._internal.errors import DataError, head
from .options import slug, write_panels

TOPICS = {
    "files": (
        "Files are CSV, TSV (both may be compressed) or Parquet, as matchers write them. Columns are found "
        "by names and values, and printed. FILE:COLUMNS names them for a file, such as p.csv:id,cluster, "
        "shop+id joins a source, and edges.csv@0.9 has the least score of a link. Ids are text: 7 is not "
        "007."
    ),
    "edges": (
        "Many matchers write pairs of records. Linked records are one cluster, directly or through others. "
        "--edges says that rows are pairs, if columns do not. Records in no pair are known if --records "
        "lists them."
    ),
    "scans": (
        "Folders of files, tables of a DuckDB database and files of 256 MiB or more are scanned in place, "
        "within the memory that --memory-limit allows. That needs the extra scale: pip install "
        "'erbayes[scale]'."
    ),
    "design": (
        "The same labels mean different things under different designs. If records were drawn, --drawn lists "
        "the unit of each draw. One that was drawn twice is listed twice, which says how many draws there "
        "were, and counts once where its chance is known. If the list is lost, but each entity is there "
        "once, --design distinct-entities takes the number of draws. If nothing could be drawn twice, "
        "--population says of how many. If alarms tell of a heap in the predicted sizes, --looks says what "
        "looks at some of its clusters have found."
    ),
    "frame": (
        "New records of labelled entities would count as false links if the labels were made for an older "
        "prediction. A frame counts only the records that existed then."
    ),
    "groups": (
        "Every metric for each group of records, such as a country. A link counts half for each of its "
        "records, so that groups add up to all. --across counts links between different groups alone, such "
        "as those between two sources, in metrics of links."
    ),
    "your-own-numbers": (
        "Numbers that were computed from the clusters, such as the count of customers, are as wrong as the "
        "clusters. A feature describes one entity by a column of its records, and a statistic is computed "
        "from entities and their features."
    ),
    "metrics": (
        "Six metrics are estimated by default. precision, recall and f1 are the pairwise ones, b3 both of "
        "B-cubed, and erbayes metrics lists all with their meaning."
    ),
    "output": "Tables fit the terminal. A file that is written is complete or not there at all.",
    "what-to-draw": (
        "Designs with chances of their own take them from another design (--of), from classes of predicted "
        "size (--starts) or from a file (--values)."
    ),
    "what-annotators-see": (
        "Each annotator gets a page and a sheet with the same tasks, of which one is to be filled. In a "
        'sheet every row needs y (the same as the drawn record) or n in the column "same", and y in the row '
        "of the drawn record says that all of its records are found. A record that is missing gets a new "
        "row with the number of the task, its id, and y. A task that nobody can answer gets an x in "
        '"cannot_tell". The page saves a file of answers, which belongs into the folder.'
    ),
    "minima": (
        "A metric holds if its whole interval is at or above the minimum, fails if it is below, and is open "
        "otherwise."
    ),
}
"""What the options of each panel mean together."""


def explain(topic: str | None, shell: Any) -> str:
    """Return the text of a topic or the help of a command, by default the list of topics."""
    context = typer.Context(shell, info_name="erbayes", max_content_width=110)
    formatter = context.make_formatter()
    if topic is None:
        formatter.write_text("Topics: " + ", ".join(TOPICS))
        formatter.write_text("Commands: " + ", ".join(shell.list_commands(context)))
        return str(formatter.getvalue())
    if topic in TOPICS:
        options: dict[tuple[str, ...], Any] = {}
        for command in shell.commands.values():
            for option in command.params:
                if slug(option) == topic:
                    option.hidden = False
                    options.setdefault(tuple(option.opts), option)
        formatter.write_text(TOPICS[topic])
        write_panels(list(options.values()), context, formatter)
        return str(formatter.getvalue())
    if topic in shell.commands:
        command = shell.commands[topic]
        inner = typer.Context(command, info_name=topic, parent=context)
        return f"{command.get_help(inner)}\n"
    raise DataError(f"no topic {topic!r}; there are {head(list(TOPICS), len(TOPICS))}, and the commands")
