"""pypaimon as a client of a REST catalog, in its own environment: ``pypaimon_rest.py <options as JSON> <job as JSON>``; prints JSON.

Jobs: ``{"do": "make", "table": name}``, ``{"do": "write", "table": name, "rows": [[id, total]..]}``, ``{"do": "read", "table": name}``.
"""

import json
import sys

import pyarrow as pa

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("total", pa.int32())])


def main(options, job):
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create(options)
    if job["do"] == "make":
        catalog.create_table(job["table"], Schema.from_pyarrow_schema(SCHEMA, primary_keys=["id"], options={"bucket": "1"}), False)
        return None
    table = catalog.get_table(job["table"])
    if job["do"] == "write":
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        ids, totals = zip(*job["rows"], strict=True)
        write.write_arrow(pa.table({"id": ids, "total": totals}, SCHEMA))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
        return None
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted((row["id"], row["total"]) for row in rows.to_pylist())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))) + "\n")
