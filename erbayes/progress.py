"""Progress bars, for work that takes more than a moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack


def track[Item](items: Iterable[Item], total: int, what: str, show: bool = True) -> Iterator[Item]:
    """`items` one by one, with a bar on standard error once they are seen to take over two seconds.

    Examples
    --------
    >>> list(track([1, 2], 2, "counting"))
    [1, 2]
    """
    start, advance = time.monotonic(), None
    with ExitStack() as stack:
        for done, item in enumerate(items, 1):
            yield item
            elapsed = time.monotonic() - start
            if show and advance is None and elapsed > 0.2 and elapsed / done * total > 2:
                from rich.console import Console
                from rich.progress import Progress

                bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
                task = bar.add_task(what, total=total, completed=done)
                advance = bar.advance
            elif advance is not None:
                advance(task)
