"""The two names of our data source, and how Spark finds what stands behind a name.

Measured on Spark 4.3: discovery imports every top-level module of the server's Python path whose name begins with ``pyspark_``
and takes the one class that it calls ``DefaultSource``, by the name that the class gives; names ignore case. So two names need
two top-level modules: ``pyspark_paimon`` has the unique one, ``pyspark_paimon_short`` that of the format.

Where a jar on the server registers ``paimon`` too, as Paimon's own connector does, Spark takes the jar's for ``spark.read``,
``df.write`` and SQL, and says nothing of ours; nor can a session register a Python source over it. Our clients therefore send the
unique name, and users may write either where there is no such jar.
"""

from __future__ import annotations

NAME = "paimon"
UNIQUE_NAME = "pyspark_paimon"
WARM = "paimon.warm"
"""The option of a read or a write of nothing, in so many tasks: it starts processes."""

__all__ = ["NAME", "UNIQUE_NAME", "WARM"]
