"""The two names of the data source.

Measured on Spark 4.3: discovery imports each top-level module ``pyspark_*`` of the server's Python path. It registers the module's class
``DefaultSource`` by the name that the class returns, ignoring case. So each name needs its own top-level module:
``pyspark_paimon`` for the unique name, ``pyspark_paimon_short`` for the format's name.

A jar on the server may register ``paimon`` too, as Paimon's own connector does. Then Spark uses the jar for that name without a
warning, and a session cannot replace it. Our clients therefore send the unique name.
"""

from __future__ import annotations

NAME = "paimon"
UNIQUE_NAME = "pyspark_paimon"
WARM = "paimon.warm"
"""Option of an empty read or write that starts Python processes. The value is the number of tasks."""
