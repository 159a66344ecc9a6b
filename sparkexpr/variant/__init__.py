"""Values of VARIANT columns: Parquet's Variant Binary Encoding.

A value is two binaries: ``value`` has headers, numbers and texts, ``metadata`` the keys of objects. Knows bytes, Python values, JSON texts and
Arrow arrays, not tables or files.

Public: ``Variant`` (values), ``encode``, ``encode_json`` (encoding), ``decode``, ``to_json`` (decoding), ``VariantRows`` (rows), ``parse_path`` (path),
``get_values`` (extraction), ``plain_variants`` (shredding).
"""
