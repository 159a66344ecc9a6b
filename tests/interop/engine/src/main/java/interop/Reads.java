package interop;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.DeletionFile;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.types.RowType;

/** Scans: rows and plans. */
final class Reads {
    /** Takes one row, which is only good until the next. */
    interface Sink {
        void take(InternalRow row) throws Exception;
    }

    private Reads() {}

    static JsonNode dump(Request request) throws Exception {
        FileStoreTable table = request.table();
        RowType type = table.rowType();
        Condition condition = Condition.of(type, request.node("filter"));
        List<String> columns = request.has("columns") ? request.words("columns") : type.getFieldNames();
        boolean kinds = request.flag("kinds");
        ArrayNode rows = Json.array();
        read(table, condition.pushed(), true, splits(table, condition.pushed()), row -> {
            if (condition.holds(row)) {
                ObjectNode shown = Cells.row(type, row).retain(columns);
                rows.add(kinds ? Json.object().<ObjectNode>set("_kind", Json.array().add(row.getRowKind().shortString()).get(0)).setAll(shown) : shown);
            }
        });
        return rows;
    }

    /** What a stream gives, from where the options let it begin to the newest snapshot, each row with its kind. */
    static JsonNode follow(Request request) throws Exception {
        FileStoreTable table = request.table();
        RowType type = table.rowType();
        ArrayNode rows = Json.array();
        StreamTableScan scan = table.newReadBuilder().newStreamScan();
        long newest = table.snapshotManager().latestSnapshotId();
        while (scan.checkpoint() == null || scan.checkpoint() <= newest) {
            read(table, null, false, scan.plan().splits(), row -> {
                ObjectNode shown = Json.object().put("_kind", row.getRowKind().shortString());
                rows.add(shown.<ObjectNode>setAll(Cells.row(type, row)));
            });
        }
        return rows;
    }

    /** How many rows come out when nothing but skipping of files, pages and indexed rows filters them. */
    static JsonNode raw(Request request) throws Exception {
        FileStoreTable table = request.table();
        Predicate pushed = Condition.of(table.rowType(), request.node("filter")).pushed();
        long[] rows = {0};
        read(table, pushed, false, splits(table, pushed), row -> rows[0]++);
        return Json.object().put("rows", rows[0]);
    }

    static JsonNode plan(Request request) {
        FileStoreTable table = request.table();
        List<ObjectNode> shown = new ArrayList<>();
        for (Split split : splits(table, Condition.of(table.rowType(), request.node("filter")).pushed())) {
            shown.add(describe(table, (DataSplit) split));
        }
        shown.sort(Comparator.comparing((ObjectNode split) -> Json.text(split.get("partition")))
                .thenComparing(split -> split.get("bucket").asInt())
                .thenComparing(split -> split.get("files").get(0).get("file").asText()));
        return Json.array().addAll(shown);
    }

    static List<Split> splits(FileStoreTable table, Predicate pushed) {
        return builder(table, pushed).newScan().plan().splits();
    }

    static void read(FileStoreTable table, Predicate pushed, boolean recheck, List<Split> splits, Sink sink) throws Exception {
        TableRead read = builder(table, pushed).newRead().withIOManager(Request.spill());
        if (recheck && pushed != null) {
            read.executeFilter();
        }
        try (RecordReader<InternalRow> reader = read.createReader(splits)) {
            drain(reader, sink);
        }
    }

    static void drain(RecordReader<InternalRow> reader, Sink sink) throws Exception {
        for (RecordReader.RecordIterator<InternalRow> batch; (batch = reader.readBatch()) != null; batch.releaseBatch()) {
            for (InternalRow row; (row = batch.next()) != null; ) {
                sink.take(row);
            }
        }
    }

    private static ReadBuilder builder(FileStoreTable table, Predicate pushed) {
        ReadBuilder builder = table.newReadBuilder();
        return pushed == null ? builder : builder.withFilter(pushed);
    }

    private static ObjectNode describe(FileStoreTable table, DataSplit split) {
        ObjectNode out = Json.object();
        out.put("snapshot", split.snapshotId());
        out.set("partition", Cells.row(table.schema().logicalPartitionType(), split.partition()));
        out.put("bucket", split.bucket());
        out.put("totalBuckets", split.totalBuckets());
        out.put("rawConvertible", split.rawConvertible());
        ArrayNode files = out.putArray("files");
        List<DeletionFile> vectors = split.deletionFiles().orElse(null);
        for (int i = 0; i < split.dataFiles().size(); i++) {
            DataFileMeta file = split.dataFiles().get(i);
            ObjectNode shown = files.addObject().put("file", file.fileName()).put("level", file.level()).put("rowCount", file.rowCount());
            shown.set("deletion", describe(vectors == null ? null : vectors.get(i)));
        }
        return out;
    }

    private static JsonNode describe(DeletionFile vector) {
        if (vector == null) {
            return null;
        }
        String name = vector.path().substring(vector.path().lastIndexOf('/') + 1);
        return Json.object().put("file", name).put("offset", vector.offset()).put("length", vector.length()).put("cardinality", vector.cardinality());
    }
}
