"""The memory of a machine is what its control groups leave."""

from __future__ import annotations

import os

import pytest

from paimon_base.machine_memory import control_group_limits, machine_memory


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("version", [1, 2])
def test_the_limits_of_a_group_and_of_those_above_count(tmp_path, version):
    groups, mount = tmp_path / "cgroup", tmp_path / "mount"
    top, name = (mount / "memory", "memory.limit_in_bytes") if version == 1 else (mount, "memory.max")
    groups.write_text("4:cpu,memory:/jobs/one\n3:cpuset:/\n" if version == 1 else "0::/jobs/one\n")
    write(top / "jobs" / name, "5000\n")
    write(top / "jobs" / "one" / name, "max\n")
    write(top / name, "9000\n")
    write(top / "jobs" / "other" / name, "1\n")
    assert control_group_limits(groups, mount) == [5000, 9000]


def test_the_group_of_a_container_may_be_named_by_its_host(tmp_path):
    (tmp_path / "cgroup").write_text("0::/docker/0123\n")
    write(tmp_path / "mount" / "memory.max", "7000")
    assert control_group_limits(tmp_path / "cgroup", tmp_path / "mount") == [7000]
    assert control_group_limits(tmp_path / "none", tmp_path / "mount") == []


def test_no_more_than_the_machine_has():
    assert 0 < machine_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
