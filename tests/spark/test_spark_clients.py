"""Addresses, sessions, errors and shipping, as far as no cluster is needed."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_base.errors import InvalidArgument
from pyspark_paimon import InstallRefused, SourceMissing, SparkUnavailable, Table, __version__, install, spark_session
from pyspark_paimon.spark.client.address import Address
from pyspark_paimon.spark.client.session import package_root
from pyspark_paimon.spark.install import SHIPPED_PACKAGES, archive_of_package, refuse_unfit
from pyspark_paimon.spark.wire.errors import raise_typed_errors
from pyspark_paimon.spark.wire.rpc import server_facts

NOT_FOUND = (
    "(org.apache.spark.SparkClassNotFoundException) [DATA_SOURCE_NOT_FOUND] Failed to find the data source: {name}. Make sure the provider "
    "name is correct and the package is properly registered and compatible with your Spark version. SQLSTATE: 42K02\n\nJVM stacktrace:\n..."
)
"""What Spark 4.3 says through a client of 4.2 or 4.3, for reads, writes, streams and SQL alike."""


@pytest.mark.parametrize(
    ("url", "token", "shown", "sent"),
    [
        ("sc://host", None, "sc://host:15002", "sc://host:15002"),
        ("sc://host:1/", None, "sc://host:1", "sc://host:1"),
        ("sc://host:1/;user_id=me", "abc", "sc://host:1", "sc://host:1/;user_id=me;token=abc"),
        ("sc://host:1/;token=old", "new", "sc://host:1", "sc://host:1/;token=new"),
        ("sc://127.0.0.1:1", "a=/;b", "sc://127.0.0.1:1", "sc://localhost:1/;token=a%3D%2F%3Bb"),
        ("sc://[::1]:1", "abc", "sc://[::1]:1", "sc://localhost:1/;token=abc"),
        ("sc://127.0.0.1:1/;use_ssl=true", "abc", "sc://127.0.0.1:1", "sc://127.0.0.1:1/;use_ssl=true;token=abc"),
    ],
)
def test_an_address_is_shown_without_its_token_and_sent_with_it(url, token, shown, sent):
    address = Address.parse(url, token)
    assert (str(address), address.for_spark()) == (shown, sent)
    assert repr(address) == f"Address({shown})"


@pytest.mark.parametrize(
    "url", ["sc:/host", "http://host", "sc://", "sc://host:port", "sc://host/path", "sc://host/;token", "local[2]", ""]
)
def test_what_is_no_address_is_refused_without_showing_it(url):
    with pytest.raises(InvalidArgument, match="sc://host:port"):
        Address.parse(url, "hunter2")


def test_a_session_is_asked_for_by_an_address_or_by_nothing():
    with pytest.raises(InvalidArgument, match="sc://host:port"):
        spark_session("spark://host:7077")


@pytest.fixture
def listener():
    """The port of a server that takes connections and says what is no TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"HTTP/2.0 400 no TLS here\r\n" * 20)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_nobody_at_an_address_is_found_out_before_spark_dials(listener):
    Address("127.0.0.1", listener).check()
    Address("127.0.0.1", listener, (("token", "abc"),)).check()
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    with pytest.raises(SparkUnavailable, match=f"sc://127.0.0.1:{free}: no Spark Connect server answers"):
        Address("127.0.0.1", free).check()


def test_a_server_without_tls_is_found_out_where_a_token_needs_it(listener):
    with pytest.raises(SparkUnavailable, match=r"a token travels over TLS"):
        Address("127.0.0.1", listener, (("use_ssl", "true"), ("token", "hunter2"))).check()


@pytest.mark.parametrize("name", ["paimon", "pyspark_paimon"])
def test_a_server_without_the_package_is_told_with_the_command_that_installs_it(name):
    with (
        pytest.raises(SourceMissing, match=f"python -m pip install pyspark-paimon=={__version__} and restart") as caught,
        raise_typed_errors(),
    ):
        raise RuntimeError(NOT_FOUND.format(name=name))
    assert isinstance(caught.value, SparkUnavailable)


def test_another_missing_source_is_not_ours_to_explain():
    with pytest.raises(RuntimeError, match="kudu"), raise_typed_errors():
        raise RuntimeError(NOT_FOUND.format(name="kudu"))


def test_the_archive_is_named_for_its_content_and_the_same_each_time():
    name, content = archive_of_package()
    assert (name, content) == archive_of_package()
    assert name.startswith(f"pyspark_paimon-{__version__}-")
    packed = zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert {entry.split("/")[0] for entry in packed} == set(SHIPPED_PACKAGES)
    root = Path(package_root())
    assert set(packed) == {path.relative_to(root).as_posix() for name in SHIPPED_PACKAGES for path in (root / name).rglob("*.py")}
    assert "pyspark_paimon/spark/read/reader.py" in packed


@pytest.mark.slow
def test_the_archive_works_without_the_directory_it_was_made_of(tmp_path):
    name, content = archive_of_package()
    (tmp_path / name).write_bytes(content)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / name)!r})\n"
        "import pyarrow as pa\n"
        "from pyspark_paimon import Table, DefaultSource\n"
        "from pyspark_paimon.spark.wire.rpc import server_facts\n"
        "import pyspark_paimon_short\n"
        "table = Table.create(sys.argv[1], 'id INT, v STRING', primary_keys=['id'], options={'bucket': '1'})\n"
        "table.write(pa.table({'id': pa.array([1, 1], pa.int32()), 'v': ['a', 'b']}))\n"
        "print(table.scan().to_arrow().to_pylist(), server_facts().shipped, DefaultSource.name(), pyspark_paimon_short.DefaultSource.name())\n"
    )
    command = [sys.executable, "-I", "-c", code, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"[{{'id': 1, 'v': 'b'}}] {name} pyspark_paimon paimon"
    assert server_facts().shipped is None


def test_a_server_that_lacks_dependencies_is_told_which_and_what_to_do():
    refuse_unfit([{"where": "driver", "python": "3.11", "lacks": []}])
    with pytest.raises(InstallRefused, match=r"executors lacks pyroaring, xxhash, which cannot be sent .* pip install pyspark-paimon=="):
        refuse_unfit([{"where": "executors", "python": "3.11", "lacks": ["pyroaring", "xxhash"]}])


@pytest.mark.spark
def test_an_embedded_server_has_the_package_and_nothing_is_shipped_twice(spark):
    assert install(spark).model_dump() == {"package": __version__, "shipped": None, "limits": ()}


@pytest.mark.long
@pytest.mark.spark
def test_sessions_of_one_server_have_settings_and_progress_of_their_own(spark, tmp_path):
    seen = {"first": 0, "second": 0}

    def counter(name):
        def handler(stages, inflight_tasks, operation_id, done):
            seen[name] += 1

        return handler

    spark.registerProgressHandler(counter("first"))
    other = spark_session(new=True, conf={"spark.sql.shuffle.partitions": "5"}, progress=counter("second"))
    try:
        assert other is not spark
        assert [each.conf.get("spark.sql.shuffle.partitions") for each in (spark, other)] == ["2", "5"]
        assert other.conf.get("spark.sql.session.timeZone") == "UTC"
        table = Table.create(tmp_path / "t", "id BIGINT", primary_keys=["id"], options={"bucket": "1"}, spark=spark)
        table.write(pa.table({"id": [1, 2]}))
        before = dict(seen)
        Table.open(tmp_path / "t", spark=other).write(other.range(5))
        assert seen["first"] == before["first"]
        assert seen["second"] > 0
        assert table.scan().count() == 5
    finally:
        spark.clearProgressHandlers()
        other.client.close()
