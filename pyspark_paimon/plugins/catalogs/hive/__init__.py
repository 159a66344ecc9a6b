"""Client of a Hive metastore, and the form that Paimon gives to its tables there.

Knows Thrift's binary protocol and the metastore's calls; not where tables lie. Names for others: ``HiveOptions`` (options), ``Metastore``
(metastore), ``registered``, ``refreshed`` (tables).
"""
