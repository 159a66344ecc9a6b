"""Notebook representation of a table.

It shows columns and the newest snapshot, without reading manifests or data.
"""

from __future__ import annotations

from datetime import UTC, datetime

from paimon_base.redaction import redact, shown
from pyspark_paimon.plugins.page.html.card import Facts, Grid, card
from pyspark_paimon.request.engine import Engine
from pyspark_paimon.request.requests import TravelRequest
from pyspark_paimon.request.state import Pin, SchemaOf


def table_card(engine: Engine) -> str:
    """Return the table as HTML.

    If the newest snapshot cannot be read, the error is shown instead.
    """
    schema = engine.ask(SchemaOf())
    keys = {**dict.fromkeys(schema.partition_keys, "partition"), **dict.fromkeys(schema.primary_keys, "primary key")}
    columns = [(field.name, field.type, keys.get(field.name, ""), field.description or "") for field in schema.fields]
    facts, error = _newest(engine)
    grids = [Grid.of(("column", "type", "key", "comment"), columns)]
    options = sorted(shown(schema.options).items())
    if options:
        grids.append(Grid.of(("option", "value"), options))
    return card(redact(engine.path), facts, grids, error)


def _newest(engine: Engine) -> tuple[Facts, str | None]:
    try:
        snapshot = engine.ask(Pin(travel=TravelRequest()))
    except Exception as error:  # noqa: BLE001  # the card shows the error
        return (), f"{type(error).__name__}: {error}"
    if snapshot is None:
        return [("snapshot", "none yet")], None
    when = f"{datetime.fromtimestamp(snapshot.time_millis / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    rows = f"{snapshot.total_record_count:,} in files, {snapshot.delta_record_count:+,} by this snapshot"
    return [("snapshot", str(snapshot.id)), ("made by", f"{snapshot.commit_kind.value} at {when}"), ("rows", rows)], None
