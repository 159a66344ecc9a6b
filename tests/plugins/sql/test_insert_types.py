"""Types of an INSERT's columns that Spark's store assignment keeps apart."""

from __future__ import annotations

import pytest

types = pytest.importorskip("pyspark.sql.types")

from manifest.io.errors import SchemaMismatch  # noqa: E402  # after the skip
from pyspark_paimon.plugins.sql.insert import _refuse_assignment  # noqa: E402  # as above

BINARY = types.BinaryType()


@pytest.mark.parametrize("source", [types.BooleanType(), types.IntegerType(), types.DecimalType(10, 2), types.DateType()])
def test_only_texts_and_binaries_are_left_to_the_writer_of_a_binary_column(source):
    with pytest.raises(SchemaMismatch, match=r"column 'b' is BINARY.*write CAST\(CAST\(... AS STRING\) AS BINARY\)"):
        _refuse_assignment("b", source, BINARY)
    with pytest.raises(SchemaMismatch, match=r"column 'b' is ARRAY<BINARY>"):
        _refuse_assignment("b", types.ArrayType(source), types.ArrayType(BINARY))
    for accepted in (BINARY, types.StringType(), types.NullType()):
        _refuse_assignment("b", accepted, BINARY)
