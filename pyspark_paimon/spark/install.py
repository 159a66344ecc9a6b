"""Sending the package to a server for one session.

A server should have the package installed. Otherwise ``install`` sends our Python files as a zip and registers the data source in the
session. It first checks that driver and executors have the client's Python minor version, which pickled classes need, and our
compiled dependencies. The source then serves batch reads, writes and all of ``Table``. ``writeStream`` fails, because Spark gives its
tasks no files of the session.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paimon_base.public import public
from paimon_base.siblings import PACKAGES
from pyspark_paimon._version import HOME, __version__
from pyspark_paimon.results.message import Message
from pyspark_paimon.spark.client.session import server_of
from pyspark_paimon.spark.wire.errors import INSTALL, InstallRefused
from pyspark_paimon.spark.wire.rpc import ServerFacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPENDENCIES = ("fastavro", "numpy", "pandas", "polars", "pyarrow", "pydantic", "pyroaring", "sqlglot", "xxhash", "zstandard")
SHIPPED_PACKAGES = (*PACKAGES, "pyspark_paimon_short")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time in a zip; a constant, so that the same files give the same bytes
_VERSIONS = re.compile(r"different version: (\d+\.\d+) than that in driver")
_NO_STREAMS = "writeStream needs an installed package; foreachBatch with Table.write works"


@public
class InstallResult(Message):
    """Result of ``install``."""

    package: str
    """Version of the package on the server."""
    shipped: str | None
    """Name of the zip. None: the package is installed on the server, and nothing was sent."""
    limits: tuple[str, ...] = ()
    """Features that a sent package lacks."""


@public
def install(spark: SparkSession) -> InstallResult:
    """Send the package to a server that lacks format ``paimon``.

    It is available in this session only.

    Raises ``InstallRefused`` if the server has another Python minor version, lacks dependencies, or has another build in this session.

    >>> pyspark_paimon.install(spark).shipped  # doctest: +SKIP
    'pyspark_paimon-0.1.0-5f2b8c0d9a1e.zip'
    """
    archive, content = archive_of_package()
    earlier_server = server_of(spark)
    if earlier_server is not None:
        if earlier_server.shipped not in {None, archive}:
            raise InstallRefused(
                f"this session has {earlier_server.shipped} already, which cannot be replaced: make a new session (spark_session(..., new=True))"
            )
        return _result(earlier_server)
    refuse_unfit(_probe(spark))
    _ship(spark, archive, content)
    shipped = server_of(spark)
    if shipped is None:
        raise InstallRefused(f"the server got {archive}, but still lacks format 'paimon': {INSTALL}")
    return _result(shipped)


def archive_of_package() -> tuple[str, bytes]:
    """Return the name and content of a zip of our Python files.

    The name has the version and a hash of the content.
    """
    home = Path(HOME)
    if not home.is_dir():
        raise InstallRefused("this client imports the package from a zip: install it as a directory")
    files = {
        path.relative_to(home).as_posix(): path.read_bytes() for name in SHIPPED_PACKAGES for path in sorted((home / name).rglob("*.py"))
    }
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    with tempfile.SpooledTemporaryFile() as buffer:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
        buffer.seek(0)
        return f"pyspark_paimon-{__version__}-{digest.hexdigest()[:12]}.zip", buffer.read()


def refuse_unfit(task_facts: list[dict[str, Any]]) -> None:
    """Raise ``InstallRefused`` if a Python of the server lacks dependencies.

    ``task_facts`` is the result of ``_probe``.

    >>> refuse_unfit([{"where": "driver", "python": "3.11", "lacks": ["xxhash"]}])
    Traceback (most recent call last):
    pyspark_paimon.InstallRefused: the server's driver lacks xxhash, which cannot be sent ...
    """
    for facts in task_facts:
        if facts["lacks"]:
            names = ", ".join(facts["lacks"])
            raise InstallRefused(f"the server's {facts['where']} lacks {names}, which cannot be sent (compiled code): {INSTALL}")


def _result(facts: ServerFacts) -> InstallResult:
    return InstallResult(package=facts.package, shipped=facts.shipped, limits=() if facts.shipped is None else (_NO_STREAMS,))


def _ship(spark: SparkSession, archive: str, content: bytes) -> None:
    from pyspark_paimon.spark.source import PaimonDataSource, ShortNamedSource  # noqa: PLC0415  # Spark is imported when it is used

    with tempfile.TemporaryDirectory(prefix="pyspark-paimon-") as folder:
        path = Path(folder) / archive
        path.write_bytes(content)
        spark.addArtifacts(str(path), pyfile=True)
    for source in (PaimonDataSource, ShortNamedSource):
        spark.dataSource.register(source)


def _probe(spark: SparkSession) -> list[dict[str, Any]]:
    """Return facts of the Pythons of driver and executors.

    Raises ``InstallRefused`` if their minor version differs from the client's.
    """
    try:
        spark.dataSource.register(_probe_source(DEPENDENCIES))
        frame = spark.read.format("pyspark_paimon_probe").load()
        return [json.loads(frame.schema[0].metadata["facts"]), json.loads(frame.collect()[0][0])]
    except Exception as error:
        versions = _VERSIONS.search(str(error))
        if versions is None:
            raise
        client_version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise InstallRefused(
            f"the server runs Python {versions.group(1)} and this client {client_version}: classes cannot be pickled between them. "
            f"Either {INSTALL}; or use a client with Python {versions.group(1)}"
        ) from None


def _probe_source(dependencies: tuple[str, ...]) -> type[Any]:
    """Return a data source that describes the server's Pythons.

    Its schema describes the driver's Python, and its only row an executor's.
    """
    # Local classes are pickled by value. The server lacks this module, so it could not import them.
    from pyspark.sql import datasource as ds  # noqa: PLC0415  # Spark is imported when it is used

    def facts(where: str) -> str:
        import json  # noqa: PLC0415  # runs on the server, where this module is not
        import sys  # noqa: PLC0415
        from importlib.util import find_spec  # noqa: PLC0415

        lacks = [name for name in dependencies if find_spec(name) is None]
        return json.dumps({"where": where, "python": f"{sys.version_info[0]}.{sys.version_info[1]}", "lacks": lacks})

    class ProbeReader(ds.DataSourceReader):  # type: ignore[misc]  # Spark's own annotations are not followed
        def read(self, partition: Any) -> Any:  # noqa: ARG002  # Spark's signature
            yield (facts("executors"),)

    class Probe(ds.DataSource):  # type: ignore[misc]  # as above
        @classmethod
        def name(cls) -> str:
            return "pyspark_paimon_probe"

        def schema(self) -> Any:
            from pyspark.sql import types as st  # noqa: PLC0415

            return st.StructType([st.StructField("facts", st.StringType(), metadata={"facts": facts("driver")})])

        def reader(self, schema: Any) -> Any:  # noqa: ARG002  # Spark's signature
            return ProbeReader()

    return Probe
