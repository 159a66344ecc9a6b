"""Plugins of other distributions are found by entry points, and a broken plugin breaks itself only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from paimon_base import plugins
from tests.build import keyed
from tests.children import run_python

TOY = """
from pyspark_paimon import Catalog


class ToyCatalog(Catalog):
    \"\"\"Directories below ``shelf``.\"\"\"

    def __new__(cls, options):
        return super().__new__(cls)

    def __init__(self, options):
        super().__init__(options["shelf"])
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder with another distribution, as pip installs it."""
    home = tmp_path / "site"
    facts = home / "toy_catalog-1.0.dist-info"
    facts.mkdir(parents=True)
    (home / "toy_catalog.py").write_text(TOY)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-catalog\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[pyspark_paimon.catalog]\ntoy = toy_catalog:ToyCatalog\nbroken = toy_catalog:Missing\n")
    return home


def test_a_catalog_of_another_distribution_is_found_by_its_entry_point(toy: Path, tmp_path: Path) -> None:
    done = run_python(
        "from pyspark_paimon import Catalog\n"
        f"catalog = Catalog.create({{'metastore': 'toy', 'shelf': {str(tmp_path)!r}}})\n"
        "catalog.create_table('t', 'id BIGINT')\n"
        "print(type(catalog).__name__, catalog.list_tables())\n"
        "try:\n    Catalog.create({'metastore': 'broken'})\n"
        "except ImportError as error:\n    print(error)\n",
        variables={"PYTHONPATH": os.pathsep.join([str(toy), *filter(None, [os.environ.get("PYTHONPATH")])])},
    )
    first, second = done.stdout.splitlines()
    assert first == "ToyCatalog ['t']"
    assert "catalog 'broken': its plugin cannot be imported" in second


def test_a_plugin_that_cannot_be_imported_breaks_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark_paimon.plugins.file_formats.orc.format", None)
    plugins._load.cache_clear()
    table = keyed(tmp_path / "parquet", "id BIGINT, city STRING")
    table.write([{"id": 1, "city": "Oslo"}])
    assert table.count() == 1
    broken = keyed(tmp_path / "orc", "id BIGINT, city STRING", {"file.format": "orc"})
    with pytest.raises(plugins.PluginFailed, match="file-format 'orc': its plugin cannot be imported"):
        broken.write([{"id": 1, "city": "Oslo"}])
    assert broken.snapshots().num_rows == 0
