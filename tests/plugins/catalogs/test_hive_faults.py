"""The Hive catalog on a metastore in memory, whose answers are lost or which fails between the steps of a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from manifest.io.catalog_errors import ResourceMissing, ResourceTaken
from manifest.io.errors import CatalogRefused
from pyspark_paimon import Catalog, CatalogUnavailable, InvalidArgument, Table, TableExists, UnsupportedTable
from pyspark_paimon.plugins.catalogs.hive.metastore import Metastore
from pyspark_paimon.plugins.catalogs.hive.options import HiveOptions
from pyspark_paimon.plugins.catalogs.hive.tables import is_paimon
from pyspark_paimon.plugins.catalogs.hive.wire import text, value_of
from pyspark_paimon.results.results import Removal


class Remembering(Metastore):
    """A metastore in memory. ``lost``: calls that are done, but not answered. ``down``: no call is done."""

    def __init__(self) -> None:
        super().__init__(HiveOptions.of({"uri": "x:1"})[0])
        self.held, self.spaces, self.lost, self.down, self.dies, self.refused = {}, {}, set(), False, set(), set()

    def _call(self, name, arguments, raised=None):
        if self.down:
            raise CatalogUnavailable("no Hive metastore answers; nothing was changed")
        if name in self.dies:
            self.down = True
            raise CatalogUnavailable(f"the Hive metastore failed during {name}; whether a change was made is unknown")
        if name in self.refused:
            raise CatalogRefused(f"the Hive metastore refuses {name}; nothing was changed")
        result = getattr(self, f"_{name}")(*[value_of(arguments, number) for number in sorted(arguments)])
        if name in self.lost:
            raise CatalogUnavailable(f"the Hive metastore failed during {name}; whether a change was made is unknown")
        return result

    def _get_database(self, name):
        return _found(self.spaces, name)

    def _get_all_databases(self):
        return list(self.spaces)

    def _create_database(self, database):
        self.spaces[value_of(database, 1)] = database

    def _alter_database(self, name, database):
        self.spaces[name] = database

    def _get_table(self, database, name):
        return _found(self.held, (database, name))

    def _get_all_tables(self, database):
        return [name for space, name in self.held if space == database]

    def _get_table_objects_by_name(self, database, names):
        return [self.held[database, name] for name in names]

    def _create_table(self, table):
        names = value_of(table, 2), value_of(table, 1)
        if names in self.held:
            raise ResourceTaken(str(names))
        self.held[names] = table

    def _alter_table_with_environment_context(self, database, name, table, _):
        _found(self.held, (database, name))
        del self.held[database, name]
        self.held[value_of(table, 2), value_of(table, 1)] = table

    def _drop_table(self, database, name, _):
        _found(self.held, (database, name))
        del self.held[database, name]


def _found(held, name):
    if name not in held:
        raise ResourceMissing(str(name))
    return held[name]


def columns(entry):
    return [value_of(one, 1) for one in value_of(value_of(entry, 7), 1)]


@pytest.fixture
def metastore():
    return Remembering()


@pytest.fixture
def catalog(tmp_path, metastore):
    catalog = Catalog(tmp_path / "warehouse", {"metastore": "hive", "uri": "x:1"})
    catalog._metastore = metastore
    catalog.create_database("db")
    catalog.create_table("db.t", "id BIGINT, v STRING").write({"id": [1], "v": ["a"]})
    return catalog


def test_a_rename_whose_answer_is_lost_is_done(catalog, metastore) -> None:
    metastore.lost = {"alter_table_with_environment_context"}
    catalog.rename_table("db.t", "db.u")
    metastore.lost = set()
    assert (catalog.list_tables("db"), catalog.table("db.u").count()) == (["u"], 1)


def test_files_move_back_when_the_metastore_dies_during_a_rename(catalog, metastore) -> None:
    metastore.dies = {"alter_table_with_environment_context"}
    with pytest.raises(CatalogUnavailable, match=r"perhaps not renamed to 'db\.u'.*files are at .*/db\.db/t"):
        catalog.rename_table("db.t", "db.u")
    metastore.down = False
    assert (catalog.list_tables("db"), catalog.table("db.t").count()) == (["t"], 1)


def test_a_table_is_not_renamed_to_a_view(catalog, metastore) -> None:
    metastore.held["db", "u"] = {1: text("u"), 2: text("db"), 12: text("VIRTUAL_VIEW")}
    assert not is_paimon(metastore.held["db", "u"])
    with pytest.raises(TableExists, match=r"'db\.u': the metastore has a table or view"):
        catalog.rename_table("db.t", "db.u")
    assert catalog.table("db.t").count() == 1
    assert not Path(f"{catalog.warehouse}/db.db/u").exists()


def test_a_table_is_not_moved_to_another_store(catalog) -> None:
    catalog.create_database("far", options={"location": "hdfs://nn:1/far"})
    with pytest.raises(UnsupportedTable, match="another store; copy it with copy_table"):
        catalog.rename_table("db.t", "far.t")
    assert catalog.table("db.t").count() == 1


def test_the_owner_of_a_database_can_be_removed_but_no_comment(catalog) -> None:
    catalog.create_database("described", options={"comment": "c", "owner": "me", "k": "v"})
    catalog.alter_database("described", {"owner": None})
    assert catalog.database_options("described") == {"location": f"{catalog.warehouse}/described.db", "comment": "c", "k": "v"}
    for comment in (None, " "):
        with pytest.raises(InvalidArgument, match="cannot remove a comment; set another"):
            catalog.alter_database("described", {"comment": comment})


def test_a_fast_forward_to_other_columns_reaches_the_metastore(catalog, metastore) -> None:
    table = catalog.table("db.t")
    table.create_tag("v1")
    table.create_branch("wider", "v1")
    catalog.table("db.t$branch_wider").add_column("n", "INT")
    assert columns(metastore.held["db", "t"]) == ["id", "v"]
    table.fast_forward("wider")
    assert catalog.table("db.t").schema.names == columns(metastore.held["db", "t"]) == ["id", "v", "n"]


def test_the_newest_of_two_schemas_at_once_stays_in_the_metastore(catalog, metastore, monkeypatch) -> None:
    first, second = catalog.table("db.t"), catalog.table("db.t")
    usual, calls = Remembering.alter_table, []

    def alter(self, *arguments):
        calls.append(arguments)
        if len(calls) == 1:
            second.add_column("b", "INT")
        usual(self, *arguments)

    monkeypatch.setattr(Remembering, "alter_table", alter)
    first.add_column("a", "INT")
    assert columns(metastore.held["db", "t"]) == ["id", "v", "a", "b"]


def test_a_table_that_the_metastore_refuses_leaves_no_files(catalog, metastore) -> None:
    metastore.refused = {"create_table"}
    with pytest.raises(CatalogRefused, match=r"'db\.odd name' was not created: the Hive metastore refuses"):
        catalog.create_table("db.odd name", "id BIGINT")
    with pytest.raises(CatalogRefused, match=r"'db\.copy' was not created"):
        catalog.copy_table("db.t", "db.copy")
    assert [path.name for path in Path(f"{catalog.warehouse}/db.db").iterdir()] == ["t"]
    assert catalog.table("db.t").count() == 1


def test_files_of_others_stay_when_the_metastore_refuses_a_table(catalog, metastore) -> None:
    Table.create(f"{catalog.warehouse}/db.db/u", "id BIGINT").write({"id": [1]})
    metastore.refused = {"create_table"}
    for register in (lambda: catalog.repair_table("db.u"), lambda: catalog.create_table("db.u", "id BIGINT", if_not_exists=True)):
        with pytest.raises(CatalogRefused, match="refuses create_table"):
            register()
    assert Table.open(f"{catalog.warehouse}/db.db/u").count() == 1


def test_a_trial_says_that_an_external_table_keeps_its_files(tmp_path, metastore) -> None:
    catalog = Catalog(tmp_path / "warehouse", {"metastore": "hive", "uri": "x:1", "table.type": "external"})
    catalog._metastore = metastore
    catalog.create_database("db")
    catalog.create_table("db.t", "id BIGINT").write({"id": [1]})
    assert catalog.drop_table("db.t", dry_run=True) == Removal()
    assert catalog.table("db.t").count() == 1


def test_directories_of_databases_are_made_on_their_own_store(tmp_path, metastore, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = Catalog(tmp_path / "warehouse", {"metastore": "hive", "uri": "x:1", "location-in-properties": "true"})
    catalog._metastore = metastore
    catalog.create_database("far", options={"location": "memory://elsewhere/far"})
    assert list(tmp_path.iterdir()) == []


def test_no_column_gets_a_name_that_hive_cannot_tell_from_another(catalog) -> None:
    table = catalog.table("db.t")
    for change in (
        lambda: table.add_column("V", "INT"),
        lambda: table.rename_column("v", "Id"),
        lambda: table.replace_columns("id BIGINT, V STRING"),
        lambda: table.write({"id": [2], "v": ["b"], "N": [1]}, options={"write.merge-schema": "true"}),
    ):
        with pytest.raises(InvalidArgument, match=r"column '.*' must be lower case: option 'case-sensitive'"):
            change()
    assert (catalog.table("db.t").schema.names, table.count()) == (["id", "v"], 1)


def test_the_location_of_a_database_cannot_be_changed_as_a_property(catalog) -> None:
    with pytest.raises(InvalidArgument, match="location cannot be changed"):
        catalog.alter_database("db", {"paimon_location": "/elsewhere"})


def test_tables_are_created_and_dropped_although_the_answer_is_lost(catalog, metastore) -> None:
    metastore.lost = {"create_table", "drop_table"}
    assert catalog.create_table("db.u", "id BIGINT").count() == 0
    catalog.drop_table("db.u")
    assert (catalog.list_tables("db"), Path(f"{catalog.warehouse}/db.db/u").exists()) == (["t"], False)


def test_files_stay_when_the_metastore_dies_during_a_drop(catalog, metastore) -> None:
    metastore.dies = {"drop_table"}
    with pytest.raises(CatalogUnavailable):
        catalog.drop_table("db.t")
    metastore.down = False
    assert catalog.table("db.t").count() == 1


def test_no_second_table_has_the_files_of_a_renamed_external_one(catalog, tmp_path, metastore) -> None:
    external = Catalog(tmp_path / "warehouse", {"metastore": "hive", "uri": "x:1", "table.type": "external"})
    external._metastore = metastore
    external.create_table("db.e", "id BIGINT").write({"id": [1]})
    external.create_database("other")
    external.rename_table("db.e", "other.f")
    for register in (lambda: catalog.repair_table("db.e"), lambda: catalog.create_table("db.e", "id BIGINT", if_not_exists=True)):
        with pytest.raises(TableExists, match=r"belong to table 'other\.f'"):
            register()
    assert catalog.list_tables("db") == ["t"]
    assert external.table("other.f").count() == 1
