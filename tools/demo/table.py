"""Tables for a terminal and for a pipe.

Owns: how rows of text become lines. Does not own: what stands in them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one line a row: aligned for a terminal, tab-separated for a pipe.

    All columns but the last are set to the right; the last may have any width.
    """
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            print("\t".join(row))
        return
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)][:-1]
    for row in (columns, *rows):
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        print("  ".join([*cells, row[-1]]))
