"""What holds for all commands: the table first, help, JSON, the options of stores and catalogs, a way to try and a way not to be asked."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
import typer
from typer.testing import CliRunner

from pyspark_paimon import Table
from pyspark_paimon.plugins.cli.app import COMMANDS, app, load_command

DESTROYING = {
    "write",  # overwrites
    "merge",
    "update",
    "delete",
    "purge",
    "maintain",
    "expire-snapshots",
    "orphans",
    "tag",
    "branch",
    "rollback",
    "restore",
    "drop-partitions",
    "expire-partitions",
    "alter drop",
    "alter type",
    "drop",
    "fsck",
}
WITHOUT_TABLE = {"serve", "list"}
SHARED = {"--json", "--branch", "--warehouse", "--catalog", "--catalog-option", "--storage-option"}


def walked() -> dict[str, object]:
    """All commands, those of groups too."""
    found = {}
    for name in COMMANDS:
        command = load_command(name)
        inner = getattr(command, "commands", None)
        found.update({name: command} if inner is None else {f"{name} {below}": inner[below] for below in inner})
    return found


COMMANDS_BY_NAME = walked()


@pytest.mark.parametrize("name", [name for name in COMMANDS_BY_NAME if name not in WITHOUT_TABLE])
def test_a_command_takes_the_table_first_and_what_all_take(name: str) -> None:
    command = COMMANDS_BY_NAME[name]
    arguments = [param.name for param in command.params if param.param_type_name == "argument"]
    assert arguments[0] == "table"
    options = {option: param for param in command.params if param.param_type_name == "option" for option in param.opts}
    assert set(options) >= SHARED
    assert (name in DESTROYING) == ("--yes" in options) == ("--dry-run" in options)
    assert all(param.help for param in options.values())
    assert command.help
    assert command.help.splitlines()[0].endswith((".", ":"))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_first_line_of_what_runs(name: str) -> None:
    place, line = COMMANDS[name]
    module, function = place.split(".")
    member = getattr(import_module(f"pyspark_paimon.plugins.cli.{module}"), function)
    said = member.info.help if isinstance(member, typer.Typer) else inspect.getdoc(member)
    assert str(said).splitlines()[0] == line


def test_the_list_of_commands_names_all_and_the_version_is_told() -> None:
    told = CliRunner().invoke(app, ["--help"]).output
    assert [name for name in COMMANDS if name not in told] == []
    assert "--install-completion" in told
    assert CliRunner().invoke(app, ["--version"]).output.startswith("pyspark-paimon ")


def test_a_command_that_is_none_is_told_with_its_neighbour() -> None:
    told = CliRunner().invoke(app, ["wirte"])
    assert told.exit_code == 2
    assert "write" in told.output


def test_names_of_commands_are_completed(monkeypatch) -> None:
    asked = {"_PYSPARK_PAIMON_COMPLETE": "complete_bash", "COMP_WORDS": "pyspark-paimon exp", "COMP_CWORD": "1"}
    told = CliRunner().invoke(app, [], prog_name="pyspark-paimon", env=asked).output.split()
    assert {"explain", "expire-snapshots", "expire-partitions"} == set(told)


@pytest.mark.slow("merge")
@pytest.mark.parametrize("name", sorted(DESTROYING - {"write", "tag", "branch", "fsck"}))
def test_who_cannot_be_asked_destroys_nothing(name: str, tmp_path) -> None:
    table = Table.create(tmp_path / "x.db" / "t", "(id INT, day STRING, PRIMARY KEY (id, day)) PARTITIONED BY (day)")
    for turn in range(2):
        table.write([{"id": turn, "day": "2020-01-01"}])
    table.alter_options({"partition.expiration-time": "1 d", "partition.timestamp-formatter": "yyyy-MM-dd"}).add_column("n", "INT")
    (tmp_path / "x.db" / "t" / "day=2020-01-01" / "bucket-0" / "data-left-0.parquet").write_bytes(b"1")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": 1, "day": "2020-01-01"}\n')
    given = {
        "delete": ["-f", "id = 1"],
        "purge": ["-f", "id = 1"],
        "update": ["-f", "id = 1", "--set", "n=1"],
        "merge": [str(rows), "--when-matched", "delete"],
        "expire-snapshots": ["--retain", "1", "--older-than", "2100-01-01"],
        "orphans": ["--remove", "--older-than", "2100-01-01"],
        "rollback": ["--snapshot", "1"],
        "restore": ["--snapshot", "1"],
        "drop-partitions": ["day=2020-01-01"],
        "alter drop": ["n"],
        "alter type": ["n", "TINYINT", "--force"],
    }.get(name, [])
    before = sorted(path.name for path in (tmp_path / "x.db" / "t").rglob("*") if path.is_file())
    command, *below = name.split()
    words = [command, table.path, *below, *given]
    told = CliRunner().invoke(app, words, input="")
    assert told.exit_code == 1
    assert "there is no terminal to ask for confirmation: add --yes or --dry-run" in told.output
    assert CliRunner().invoke(app, [*words, "--dry-run", "--json"]).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "x.db" / "t").rglob("*") if path.is_file()) == before
