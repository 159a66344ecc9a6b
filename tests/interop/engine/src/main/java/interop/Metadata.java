package interop;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.cluster.IncrementalClusterManager;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.SnapshotManager;

/** What manifests and snapshots say. */
final class Metadata {
    private Metadata() {}

    static List<ManifestEntry> live(FileStoreTable table, Snapshot snapshot) {
        return new ArrayList<>(table.store().newScan().withSnapshot(snapshot).plan().files());
    }

    /** Of the snapshot that the request names, else the newest. */
    static List<ManifestEntry> live(FileStoreTable table, Request request) {
        Snapshot snapshot = request.has("snapshot")
                ? table.snapshotManager().snapshot(request.number("snapshot", 0))
                : table.latestSnapshot().orElse(null);
        List<ManifestEntry> entries = snapshot == null ? new ArrayList<>() : live(table, snapshot);
        entries.sort(Comparator.comparing((ManifestEntry entry) -> Json.text(partition(table, entry.partition())))
                .thenComparing(ManifestEntry::bucket)
                .thenComparing(ManifestEntry::level, Comparator.reverseOrder())
                .thenComparing(entry -> entry.file().minSequenceNumber())
                .thenComparing(ManifestEntry::fileName));
        return entries;
    }

    static JsonNode partition(FileStoreTable table, BinaryRow partition) {
        return Cells.row(table.schema().logicalPartitionType(), partition);
    }

    static JsonNode files(Request request) {
        FileStoreTable table = request.table();
        ArrayNode out = Json.array();
        live(table, request).forEach(entry -> out.add(describe(table, entry)));
        return out;
    }

    /** What incremental clustering would sort now, by partition. */
    static JsonNode cluster(Request request) {
        FileStoreTable table = request.table();
        ArrayNode out = Json.array();
        new IncrementalClusterManager(table).createCompactUnits(request.flag("full")).forEach((partition, unit) -> {
            ObjectNode shown = out.addObject().put("outputLevel", unit.outputLevel());
            shown.set("partition", partition(table, partition));
            ArrayNode files = shown.putArray("files");
            unit.files().forEach(file -> files.add(file.fileName()));
        });
        return out;
    }

    private static ObjectNode describe(FileStoreTable table, ManifestEntry entry) {
        DataFileMeta file = entry.file();
        TableSchema schema = table.schemaManager().schema(file.schemaId());
        boolean keyed = !schema.primaryKeys().isEmpty();
        RowType key = schema.logicalTrimmedPrimaryKeysType();
        byte[] index = file.embeddedIndex();
        ObjectNode out = Json.object();
        out.put("file", file.fileName());
        out.set("partition", partition(table, entry.partition()));
        out.put("bucket", entry.bucket());
        out.put("totalBuckets", entry.totalBuckets());
        out.put("size", file.fileSize());
        out.put("level", file.level());
        out.put("rowCount", file.rowCount());
        out.put("deleteRowCount", file.deleteRowCount().orElse(null));
        out.set("minKey", keyed ? Cells.row(key, file.minKey()) : null);
        out.set("maxKey", keyed ? Cells.row(key, file.maxKey()) : null);
        out.set("keyStats", keyed ? stats(key, file.keyStats()) : null);
        List<String> columns = file.valueStatsCols();
        out.set("valueStats", stats(columns == null ? schema.logicalRowType() : schema.logicalRowType().project(columns), file.valueStats()));
        out.set("valueStatsCols", columns == null ? null : Json.array(columns));
        out.put("minSequenceNumber", file.minSequenceNumber());
        out.put("maxSequenceNumber", file.maxSequenceNumber());
        out.put("schemaId", file.schemaId());
        out.set("extraFiles", Json.array(file.extraFiles()));
        out.put("embeddedIndexLength", index == null ? null : index.length);
        out.put("embeddedIndex", index == null ? null : HexFormat.of().formatHex(index));
        out.set("creationTime", Cells.toJson(DataTypes.TIMESTAMP(3), file.creationTime()));
        out.put("fileSource", file.fileSource().map(Enum::name).orElse(null));
        out.put("externalPath", file.externalPath().orElse(null));
        out.put("firstRowId", file.firstRowId());
        out.set("writeCols", file.writeCols() == null ? null : Json.array(file.writeCols()));
        return out;
    }

    /** Ranges by column; columns without a range have null minima, whatever their type says of nulls. */
    private static ObjectNode stats(RowType type, SimpleStats stats) {
        ObjectNode out = Json.object();
        int known = Math.min(type.getFieldCount(), stats.minValues().getFieldCount());
        RowType nullable = (RowType) new RowType(type.getFields().stream().map(field -> field.newType(field.type().copy(true))).toList());
        for (int i = 0; i < known; i++) {
            ObjectNode column = out.putObject(type.getFieldNames().get(i));
            column.set("min", Cells.toJson(nullable.getTypeAt(i), Cells.field(nullable, stats.minValues(), i)));
            column.set("max", Cells.toJson(nullable.getTypeAt(i), Cells.field(nullable, stats.maxValues(), i)));
            column.put("nulls", stats.nullCounts().isNullAt(i) ? null : (Long) stats.nullCounts().getLong(i));
        }
        return out;
    }

    static JsonNode snapshots(Request request) throws Exception {
        SnapshotManager manager = request.table().snapshotManager();
        List<Snapshot> snapshots = manager.safelyGetAllSnapshots();
        snapshots.sort(Comparator.comparing(Snapshot::id));
        ArrayNode out = Json.array();
        for (Snapshot snapshot : snapshots) {
            out.add(Json.parse(snapshot.toJson()));
        }
        return out;
    }
}
