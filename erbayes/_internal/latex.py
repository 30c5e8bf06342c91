"""Tables of text for LaTeX."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd


def to_latex(table: pd.DataFrame, bold: pd.DataFrame, caption: str, label: str) -> str:
    r"""Return a table of text for LaTeX with the package booktabs; cells where `bold` is true are bold.

    >>> table = pd.DataFrame({"50 %": ["0.1"]}, index=["a_b"])
    >>> print(to_latex(table, table == "0.1", "", "").splitlines()[4])
    a\_b & \textbf{0.1} \\
    """
    text = table.where(~bold, "\\textbf{" + table + "}").rename(index=_escape, columns=_escape)
    text = text.rename_axis(index=_escape, columns=_escape)
    return str(text.to_latex(caption=caption or None, label=label or None, multirow=False))


def _escape(name: Any) -> Any:
    """Return a name with the characters that LaTeX reads as commands."""
    return re.sub(r"([&%$#_{}])", r"\\\1", name) if isinstance(name, str) else name
