package interop;

import java.io.InputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.fileindex.FileIndexFormat;
import org.apache.paimon.fileindex.FileIndexPredicate;
import org.apache.paimon.fileindex.FileIndexResult;
import org.apache.paimon.fileindex.bitmap.BitmapIndexResult;
import org.apache.paimon.fs.ByteArraySeekableStream;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.io.FileIndexEvaluator;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.schema.SchemaEvolutionUtil;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.RowType;

/** Index containers of data files: what is in them, and what they answer. */
final class Indexes {
    private Indexes() {}

    /** The container, from the manifest or from the file beside the data file; null for none. */
    static byte[] container(FileStoreTable table, ManifestEntry entry) throws Exception {
        if (entry.file().embeddedIndex() != null) {
            return entry.file().embeddedIndex();
        }
        for (String extra : entry.file().extraFiles()) {
            if (extra.endsWith(".index")) {
                try (InputStream side = table.fileIO().newInputStream(DataFiles.paths(table, entry).toAlignedPath(extra, entry.file()))) {
                    return side.readAllBytes();
                }
            }
        }
        return null;
    }

    /** Payload by column and index type. */
    static Map<String, Map<String, byte[]>> payloads(FileStoreTable table, ManifestEntry entry, byte[] container) throws Exception {
        RowType type = table.schemaManager().schema(entry.file().schemaId()).logicalRowType();
        try (FileIndexFormat.Reader reader = FileIndexFormat.createReader(new ByteArraySeekableStream(container), type)) {
            return reader.readAll();
        }
    }

    static JsonNode list(Request request) throws Exception {
        FileStoreTable table = request.table();
        ArrayNode out = Json.array();
        for (ManifestEntry entry : Metadata.live(table, request)) {
            byte[] container = container(table, entry);
            if (container == null) {
                continue;
            }
            ObjectNode shown = out.addObject().put("file", entry.fileName()).put("embedded", entry.file().embeddedIndex() != null);
            ObjectNode columns = shown.putObject("columns");
            new TreeMap<>(payloads(table, entry, container)).forEach((column, types) -> {
                ObjectNode sizes = columns.putObject(column);
                new TreeMap<>(types).forEach((type, payload) -> sizes.put(type, payload == null ? null : (Integer) payload.length));
            });
        }
        return out;
    }

    /** For each file with a container: its own answer, and what a reader makes of it and of the file's deleted rows. */
    static JsonNode evaluate(Request request) throws Exception {
        FileStoreTable table = request.table();
        Condition condition = Condition.of(table.rowType(), request.node("filter"));
        Map<String, DeletionVector> vectors = new HashMap<>();
        IndexFileHandler handler = table.store().newIndexFileHandler();
        for (IndexManifestEntry entry : handler.scan("DELETION_VECTORS")) {
            vectors.putAll(handler.readAllDeletionVectors(entry));
        }
        ArrayNode out = Json.array();
        for (ManifestEntry entry : Metadata.live(table, request)) {
            byte[] container = container(table, entry);
            if (container == null) {
                continue;
            }
            TableSchema schema = table.schemaManager().schema(entry.file().schemaId());
            List<Predicate> terms = terms(table, condition, schema);
            ObjectNode shown = out.addObject().put("file", entry.fileName()).put("bucket", entry.bucket()).put("rowCount", entry.file().rowCount());
            FileIndexResult own = FileIndexResult.REMAIN;
            FileIndexResult evaluated = FileIndexResult.REMAIN;
            if (!terms.isEmpty()) {
                try (FileIndexPredicate index = new FileIndexPredicate(new ByteArraySeekableStream(container), schema.logicalRowType())) {
                    own = index.evaluate(PredicateBuilder.and(terms));
                    shown.put("index", described(own));
                    positions(own, shown);
                }
                evaluated = FileIndexEvaluator.evaluate(table.fileIO(), schema, terms, null, null, DataFiles.paths(table, entry), entry.file(), vectors.get(entry.fileName()));
            } else {
                shown.put("index", described(own));
            }
            shown.put("evaluated", described(evaluated));
        }
        return out;
    }

    /** The filter in terms of the file's own columns. */
    private static List<Predicate> terms(FileStoreTable table, Condition condition, TableSchema schema) {
        if (schema.id() == table.schema().id()) {
            return PredicateBuilder.splitAnd(condition.whole());
        }
        Predicate pushed = condition.pushed();
        List<Predicate> terms = pushed == null ? List.of() : PredicateBuilder.splitAnd(pushed);
        return SchemaEvolutionUtil.devolveFilters(table.schema().fields(), schema.fields(), terms, false);
    }

    private static String described(FileIndexResult result) {
        if (result instanceof BitmapIndexResult bitmap) {
            return "BITMAP:" + bitmap.get().getCardinality();
        }
        return result.remain() ? "REMAIN" : "SKIP";
    }

    private static void positions(FileIndexResult result, ObjectNode shown) {
        if (result instanceof BitmapIndexResult bitmap) {
            ArrayNode positions = shown.putArray("positions");
            bitmap.get().iterator().forEachRemaining(positions::add);
        }
    }
}
