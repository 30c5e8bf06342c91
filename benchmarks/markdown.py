"""Tables as Markdown."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a header, a rule and one line per row."""
    lines = [header, *rows]
    cells = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([cells[0], "|" + " --- |" * len(header), *cells[1:]])
