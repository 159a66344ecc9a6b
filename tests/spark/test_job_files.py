"""Files of jobs on the driver: nothing is read or changed through a link that another user may have made."""

from __future__ import annotations

import os
import tempfile
import time
import uuid

import pytest

pytest.importorskip("pyspark.sql.datasource")

from paimon_base.errors import InvalidArgument
from pyspark_paimon.spark.client.session import claims
from pyspark_paimon.spark.driver import job_files
from pyspark_paimon.spark.driver.job_files import answer_file, answer_once, exclusively, is_running, mark_ended, mark_started, stored_answer


def lock_once(name: str) -> None:
    with exclusively(name):
        pass


CALLS = [lambda name: answer_once(name, lambda: "done"), lock_once, stored_answer, mark_started, mark_ended, is_running, answer_file]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The path of the folder of job files, in a directory of temporary files of its own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    path = job_files._directory()
    path.rmdir()
    return path


def contents(directory):
    return {
        str(path.relative_to(directory)): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in directory.rglob("*")
    }


def plant_link(path, outside) -> None:
    path.symlink_to(outside)


def plant_file(path, _outside) -> None:
    path.touch(mode=0o600)


def plant_open_directory(path, _outside) -> None:
    path.mkdir()
    path.chmod(0o770)


def plant_link_to_nothing(path, outside) -> None:
    path.symlink_to(outside / "absent")


@pytest.mark.parametrize("plant", [plant_link, plant_link_to_nothing, plant_file, plant_open_directory])
@pytest.mark.parametrize("call", CALLS)
def test_a_folder_that_others_may_have_made_is_not_used(folder, tmp_path, plant, call) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    (outside / "old.json").write_text("mine")
    os.utime(outside / "old.json", (time.time() - 7 * 86400,) * 2)
    plant(folder, outside)
    before = contents(outside)
    with pytest.raises(InvalidArgument, match="remove it"):
        call("job")
    assert contents(outside) == before


def names_of(name: str) -> list[str]:
    return ["locks", "swept", answer_file(name).name, answer_file(name, "job").name]


@pytest.mark.parametrize("kind", ["link", "link to nothing", "FIFO"])
@pytest.mark.parametrize("member", range(4))
def test_no_file_of_the_folder_is_followed(folder, tmp_path, member, kind) -> None:
    name, outside = str(uuid.uuid4()), tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    os.utime(outside / "file", (time.time() - 7 * 86400,) * 2)
    planted = folder / names_of(name)[member]
    if kind == "FIFO":
        os.mkfifo(planted)
    else:
        planted.symlink_to(outside / ("file" if kind == "link" else "absent"))
    before = contents(outside)
    for call in CALLS:
        answer = refusal = None
        try:
            answer = call(name)
        except InvalidArgument as error:
            refusal = str(error)
        assert answer != "mine"
        assert refusal is None or str(planted) in refusal
    assert contents(outside) == before


def test_a_claim_of_the_port_follows_no_link(tmp_path) -> None:
    (tmp_path / "claim").symlink_to(tmp_path / "other")
    assert not claims(tmp_path / "claim")
    assert not (tmp_path / "other").exists()
