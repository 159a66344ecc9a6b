"""Shipping the package to a server that lacks it, for the length of one session.

A server should have the package installed: any client can use it then, and so can SQL and streams. Where that is not to be had,
``install`` sends our Python files as a zip named for its content, and registers the source in the session. What has to match, and is
found out first: the classes that Spark pickles need the client's Python minor version on driver and executors, and our
dependencies, which are compiled, must be there already. A shipped source serves batch reads, writes and all of ``Table``; Spark gives
shipped files to no task of a streaming sink.
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

from fileindex.base.public import public
from fileindex.siblings import PACKAGES
from pyspark_paimon._version import HOME, __version__
from pyspark_paimon.request.message import Message
from pyspark_paimon.spark.client.facts import server_of
from pyspark_paimon.spark.wire.errors import INSTALL, InstallRefused
from pyspark_paimon.spark.wire.server_info import ServerFacts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPENDENCIES = ("fastavro", "numpy", "pandas", "polars", "pyarrow", "pydantic", "pyroaring", "sqlglot", "xxhash", "zstandard")
SHIPPED_PACKAGES = (*PACKAGES, "pyspark_paimon_short")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time that a zip can hold: the same files make the same bytes
_VERSIONS = re.compile(r"different version: (\d+\.\d+) than that in driver")
_NO_STREAMS = "writeStream needs an installed package; foreachBatch with Table.write works"


@public
class InstallResult(Message):
    """What ``install`` found or did.

    ``shipped`` is the name of the zip, None where the package is installed on the server, and then nothing was done; ``package`` is the
    version that answers there; ``limits`` says what the shipped package cannot serve.
    """

    package: str
    shipped: str | None
    limits: tuple[str, ...] = ()


@public
def install(spark: SparkSession) -> InstallResult:
    """Make format ``paimon`` known to ``spark``'s server for this session; nothing is done where it is known already.

    Raises ``InstallRefused`` if the server has another Python minor version, lacks dependencies, or got another build in this session.

    >>> pyspark_paimon.install(spark).shipped  # doctest: +SKIP
    'pyspark_paimon-0.1.0-5f2b8c0d9a1e.zip'
    """
    archive, content = archive_of_package()
    known = server_of(spark)
    if known is not None:
        if known.shipped not in {None, archive}:
            raise InstallRefused(
                f"this session has {known.shipped} already, and cannot forget it; make a new one (spark_session(..., new=True))"
            )
        return _result(known)
    refuse_unfit(_probe(spark))
    _ship(spark, archive, content)
    shipped = server_of(spark)
    if shipped is None:
        raise InstallRefused(f"the package was shipped as {archive}, and the server does not know it all the same; {INSTALL}")
    return _result(shipped)


def archive_of_package() -> tuple[str, bytes]:
    """A zip of our Python files, and its name, which tells version and content."""
    home = Path(HOME)
    if not home.is_dir():
        raise InstallRefused("this client has the package in a zip itself, and cannot take it apart; install it as a directory")
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


def refuse_unfit(found: list[dict[str, Any]]) -> None:
    """Raise ``InstallRefused`` if one of the Pythons that ``_probe`` found cannot run the package.

    >>> refuse_unfit([{"where": "driver", "python": "3.11", "lacks": ["xxhash"]}])
    Traceback (most recent call last):
    pyspark_paimon.InstallRefused: the server's driver lacks xxhash, which cannot be shipped ...
    """
    for facts in found:
        if facts["lacks"]:
            names = ", ".join(facts["lacks"])
            raise InstallRefused(f"the server's {facts['where']} lacks {names}, which cannot be shipped (they are compiled): {INSTALL}")


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
    """What the Pythons of the server's driver and of an executor have. Raises ``InstallRefused`` where they are of another version."""
    try:
        spark.dataSource.register(_probe_source(DEPENDENCIES))
        frame = spark.read.format("pyspark_paimon_probe").load()
        return [json.loads(frame.schema[0].metadata["facts"]), json.loads(frame.collect()[0][0])]
    except Exception as error:
        versions = _VERSIONS.search(str(error))
        if versions is None:
            raise
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise InstallRefused(
            f"the server runs Python {versions.group(1)} and this client {here}: what Spark pickles cannot travel between them. "
            f"Either {INSTALL}; or use a client of Python {versions.group(1)}"
        ) from None


def _probe_source(dependencies: tuple[str, ...]) -> type[Any]:
    """A data source whose schema tells of the driver's Python and whose one row of an executor's.

    It is defined in here so that Spark pickles it whole: the server has no module to import it from.
    """
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


__all__ = ["InstallResult", "archive_of_package", "install", "refuse_unfit"]
