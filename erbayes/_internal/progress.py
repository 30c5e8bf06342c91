"""Progress bars, for work that takes more than a moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack


def show_progress[Item](items: Iterable[Item], total: int, what: str, show: bool = True) -> Iterator[Item]:
    """Yield `items`, and show a bar labelled `what` on standard error if they take over two seconds."""
    start, advance = time.monotonic(), None
    with ExitStack() as stack:
        for done, item in enumerate(items, 1):
            yield item
            elapsed = time.monotonic() - start
            # a bar that is gone at once would only flicker
            if show and advance is None and elapsed > 0.2 and elapsed / done * total > 2:
                from rich.console import Console
                from rich.progress import Progress

                bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
                task = bar.add_task(what, total=total, completed=done)
                advance = bar.advance
            elif advance is not None:
                advance(task)
