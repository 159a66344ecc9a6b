"""Answers of the driver to a client's questions.

``DataSource.schema()`` answers them without a job. Spark may call it twice, so a question changes nothing, and an operation has an id that
runs once.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from paimon_base.errors import InvalidArgument
from pyspark_paimon.request.operation import OpenTable, Question, Request
from pyspark_paimon.spark.driver.options import table_path
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import attach_error_notes
from pyspark_paimon.spark.wire.names import WARM
from pyspark_paimon.spark.wire.rpc import server_facts
from pyspark_paimon.system.opened import local_engine

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def schema(options: MutableMapping[str, str]) -> StructType:
    """Return the Spark schema or the answer to the question in ``options``.

    Adds an option with the pinned snapshot of a scan, for the reader.
    """
    with attach_error_notes():
        if rpc.QUESTION in options:
            return rpc.answer_schema(_answer(local_engine(table_path(options)), rpc.parse_question(options[rpc.QUESTION])))
        if WARM in options:
            from pyspark_paimon.spark.warm import warm_schema  # noqa: PLC0415  # see test_imports

            return warm_schema()
        if rpc.SHARED in options:
            return rpc.parts_schema()
        if rpc.HASHES in options:
            from pyspark_paimon.spark.read.hash_index_reader import hash_schema  # noqa: PLC0415  # only writes to dynamic buckets need it

            return hash_schema(local_engine(table_path(options)).schema())
        from pyspark_paimon.stream.options import is_stream  # noqa: PLC0415  # see test_imports

        if is_stream(options):
            from pyspark_paimon.spark.read.stream_reader import stream_schema  # noqa: PLC0415  # only streams need it

            return stream_schema(options)
        from pyspark_paimon.spark.driver.scan_options import scan_schema  # noqa: PLC0415  # see test_imports

        return scan_schema(options)


def _answer(engine: OpenTable, question: Request[Any]) -> str:
    """Return the answer as JSON."""
    match question:
        case Question():
            return question.answer_text(engine.ask(question))
        case rpc.AskAll():
            return question.answer_text([_answer(engine, rpc.parse_question(text)) for text in question.questions])
        case rpc.AskServer():
            return question.answer_text(server_facts())
        case rpc.AskOutcome():
            from pyspark_paimon.spark.driver.outcome import outcome  # noqa: PLC0415  # see test_imports

            return outcome(engine.store(), question.commit_id) or "null"
        case rpc.AskAnswer():
            from pyspark_paimon.spark.driver.outcome import answer_of_command  # noqa: PLC0415  # see test_imports

            return question.answer_text(answer_of_command(question.id))
        case rpc.RunSmall():
            from pyspark_paimon.spark.driver.outcome import run_if_small  # noqa: PLC0415  # see test_imports

            operation = rpc.parse_operation(question.operation)
            return question.answer_text(run_if_small(engine, question.id, operation, question.most_bytes))
        case rpc.AskNative():
            from pyspark_paimon.spark.read.native_files import native_plan  # noqa: PLC0415  # see test_imports

            return question.answer_text(native_plan(engine, question.request))
    raise InvalidArgument(f"option '{rpc.QUESTION}' must be a question, not {type(question).__name__}")
