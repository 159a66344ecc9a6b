"""Plugins: modules that nothing imports, found by kind and name.

The table below has those of this distribution. Another distribution adds a plugin by an entry point of the group ``pyspark_paimon.<kind>``,
which is looked up where the table has no answer. A plugin that cannot be imported leaves everything else working.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from paimon_base.errors import PaimonError
from paimon_base.process import gc_paused
from paimon_base.public import public

_HOME = "pyspark_paimon.plugins"
_PLUGINS: dict[str, dict[str, str]] = {
    "after-commit": {"iceberg": "iceberg.publish:publish_or_log"},
    "catalog": {
        "hive": "catalogs.hive.catalog:HiveCatalog",
        "jdbc": "catalogs.jdbc.catalog:JdbcCatalog",
        "rest": "catalogs.rest.catalog:RestCatalog",
    },
    "command": {"pyspark-paimon": "cli:main"},
    "feed": {
        "batches": "feeds.batches",
        "canal": "feeds.mysql:from_canal",
        "debezium": "feeds.debezium:from_debezium",
        "maxwell": "feeds.mysql:from_maxwell",
    },
    "file-format": {"avro": "file_formats.avro.format", "orc": "file_formats.orc.format"},
    "location": {"rest": "catalogs.rest.engine:open_location"},
    "orphans": {"iceberg": "iceberg.orphans"},
    "page": {
        "cards": "page.html.card",
        "notebook": "page.html.ipython",
        "plan": "page.report.page:render_scan_plan",
        "report": "page.report.page:render_page",
        "server": "page.ui.server",
        "table": "page.notebook:table_card",
        "tree": "page.tree.assemble:tree_report",
    },
    "request": {
        "check": "fsck.operation:Fsck",
        "remove-snapshots-before-gap": "fsck.repair_operation:RepairEarliestSnapshot",
        "repair": "fsck.repair_operation:repair_table",
    },
    "scheme": {"hdfs": "hdfs.file_io:HdfsFileIO"},
    "statement": {"sql": "sql.run:sql"},
}
"""Modules or their attributes, by kind and name. What each kind must offer stands in ``pyspark_paimon/seams.py``."""


@public
class PluginFailed(PaimonError, ImportError):
    """A plugin is missing, or cannot be imported."""


def has_plugin(kind: str, name: str) -> bool:
    """Return whether a plugin is known. It is not imported.

    >>> has_plugin("file-format", "orc"), has_plugin("file-format", "csv")
    (True, False)
    """
    return name in _PLUGINS.get(kind, ()) or name in _entry_points(kind)


def plugin(kind: str, name: str) -> Any:
    """Return a plugin, imported at its first use.

    Raises:
        PluginFailed: There is none, or its import fails. The error of an import that is typed is raised as it is.

    >>> plugin("file-format", "csv")
    Traceback (most recent call last):
    pyspark_paimon.PluginFailed: file-format 'csv': no installed distribution has this plugin
    """
    target = _PLUGINS.get(kind, {}).get(name)
    try:
        if target is not None:
            return _load(f"{_HOME}.{target}")
        if name in _entry_points(kind):
            return _entry_points(kind)[name].load()
    except PaimonError:
        raise
    except Exception as error:  # a plugin of others may raise anything
        raise PluginFailed(f"{kind} '{name}': its plugin cannot be imported: {error}; reinstall or upgrade its distribution") from error
    raise PluginFailed(f"{kind} '{name}': no installed distribution has this plugin")


@cache
def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    with gc_paused():  # see LazyModule
        imported = import_module(module)
    return getattr(imported, attribute) if attribute else imported


@cache
def _entry_points(kind: str) -> dict[str, Any]:
    from importlib.metadata import entry_points  # noqa: PLC0415  # a tenth of the import of the whole package

    return {point.name: point for point in entry_points(group=f"pyspark_paimon.{kind}")}
