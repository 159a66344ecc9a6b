"""Notebook extension: ``%load_ext pyspark_paimon``.

It shows Arrow tables, such as the results of ``snapshots()`` and ``files()``, as HTML.
"""

from __future__ import annotations

from typing import Any

from paimon_base.public import public
from paimon_base.texts import count_text
from pyspark_paimon.plugins.page.html.card import MOST_ROWS, Grid, card, or_error


def arrow_card(rows: Any) -> str:
    """Return the first rows of a ``pyarrow.Table`` as a card.

    >>> import pyarrow as pa
    >>> ">&lt;b&gt;</td>" in arrow_card(pa.table({"name": ["<b>"]}))
    True
    """

    def draw() -> str:
        first = rows.slice(0, MOST_ROWS)
        columns = [column.to_pylist() for column in first.columns]
        shown = Grid.of(rows.column_names, list(zip(*columns, strict=True)))
        grid = Grid(shown.header, shown.rows, more=rows.num_rows - first.num_rows)
        return card(f"{count_text(rows.num_rows, 'row')}", grids=(grid,) if columns else ())

    return or_error("pyarrow.Table", draw)


@public
def load_ipython_extension(shell: Any) -> None:
    """Show Arrow tables as HTML (``%load_ext pyspark_paimon``)."""
    shell.display_formatter.formatters["text/html"].for_type_by_name("pyarrow.lib", "Table", arrow_card)


@public
def unload_ipython_extension(shell: Any) -> None:
    """Show Arrow tables as text (``%unload_ext pyspark_paimon``)."""
    import pyarrow as pa  # noqa: PLC0415  # loaded only if the notebook used tables

    formatter = shell.display_formatter.formatters["text/html"]
    formatter.deferred_printers.pop(("pyarrow.lib", "Table"), None)
    formatter.type_printers.pop(pa.Table, None)
