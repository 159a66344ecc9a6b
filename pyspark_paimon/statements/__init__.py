"""SQL statements about tables that Spark hands to no Python source: read word by word, and done by ``Table`` and ``Catalog``.

It knows Spark's session, its SQL's words, and the methods of tables; of files and jobs it knows nothing. Public: ``run``.
"""
