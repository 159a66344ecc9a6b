package interop;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.crosspartition.GlobalIndexAssigner;
import org.apache.paimon.crosspartition.IndexBootstrap;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.RowKeyExtractor;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.Pair;

/** Commits: rows, deletions by vector, compactions. */
final class Writes {
    private static final String USER = "interop";

    private Writes() {}

    /** Each batch is flushed to files of its own; all become one commit. */
    static JsonNode write(Request request) throws Exception {
        FileStoreTable table = request.table();
        String user = request.text("user", USER);
        long identifier = request.number("identifier", BatchWriteBuilder.COMMIT_IDENTIFIER);
        List<CommitMessage> messages = new ArrayList<>();
        int rows = 0;
        try (TableWriteImpl<?> write = table.newWrite(user).withIOManager(Request.spill())) {
            write.withIgnorePreviousFiles(request.has("overwrite"));
            try (Router router = new Router(table, write, user)) {
                for (JsonNode batch : request.node("batches")) {
                    for (JsonNode row : batch) {
                        router.write(row(table.rowType(), row));
                        rows++;
                    }
                    messages.addAll(write.prepareCommit(true, identifier));
                }
            }
            ObjectNode answer = commit(request, table, user, identifier, messages);
            return answer.put("rows", rows);
        }
    }

    private static GenericRow row(RowType type, JsonNode node) {
        GenericRow row = Cells.row(type, node);
        if (node.has("_kind")) {
            row.setRowKind(RowKind.fromShortString(node.get("_kind").asText()));
        }
        return row;
    }

    private static ObjectNode commit(Request request, FileStoreTable table, String user, long identifier, List<CommitMessage> messages)
            throws Exception {
        int committed = 1;
        try (TableCommitImpl commit = table.newCommit(user)) {
            commit.ignoreEmptyCommit(!request.has("overwrite"));
            if (request.has("overwrite")) {
                commit.withOverwrite(request.strings("overwrite"));
            }
            if (request.flag("replay")) {
                committed = commit.filterAndCommit(new HashMap<>(Map.of(identifier, messages)));
            } else {
                commit.commit(identifier, messages);
            }
        }
        return Json.object().put("snapshot", table.snapshotManager().latestSnapshotId()).put("committed", committed);
    }

    /** Sends rows to their buckets; of tables with dynamic buckets it is the one that assigns them. */
    private static final class Router implements AutoCloseable {
        private final TableWriteImpl<?> write;
        private final HashBucketAssigner assigner;
        private final RowKeyExtractor keys;
        private final GlobalIndexAssigner across;

        Router(FileStoreTable table, TableWriteImpl<?> write, String user) throws Exception {
            this.write = write;
            boolean dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
            this.keys = dynamic ? table.createRowKeyExtractor() : null;
            this.assigner = dynamic ? new HashBucketAssigner(table.snapshotManager(), user, table.store().newIndexFileHandler(), 1, 1, 0,
                    table.coreOptions().dynamicBucketTargetRowNum(), table.coreOptions().dynamicBucketMaxBuckets()) : null;
            this.across = table.bucketMode() == BucketMode.KEY_DYNAMIC ? new GlobalIndexAssigner(table) : null;
            if (across != null) {
                across.open(0, Request.spill(), 1, 0, this::assigned);
                new IndexBootstrap(table).bootstrap(1, 0, key -> {
                    try {
                        across.bootstrapKey(key);
                    } catch (IOException error) {
                        throw new UncheckedIOException(error);
                    }
                });
                across.endBoostrap(false);
            }
        }

        void write(GenericRow row) throws Exception {
            if (across != null) {
                across.processInput(row);
                return;
            }
            if (assigner == null) {
                write.write(row);
                return;
            }
            keys.setRecord(row);
            write.write(row, assigner.assign(keys.partition(), keys.trimmedPrimaryKey().hashCode()));
        }

        private void assigned(InternalRow row, int bucket) {
            try {
                write.write(row, bucket);
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void close() throws IOException {
            if (across != null) {
                across.close();
            }
        }
    }

    /** Marks the rows of an append table that match in deletion vectors, as Spark's DELETE does. */
    static JsonNode delete(Request request) throws Exception {
        FileStoreTable table = request.table();
        if (!table.primaryKeys().isEmpty()) {
            throw new IllegalArgumentException("rows of a primary-key table are deleted by writing them with kind -D");
        }
        Condition condition = Condition.of(table.rowType(), request.node("filter"));
        Snapshot snapshot = table.latestSnapshot().orElseThrow();
        boolean unaware = table.bucketMode() == BucketMode.BUCKET_UNAWARE;
        IndexFileHandler handler = table.store().newIndexFileHandler();
        Map<Pair<BinaryRow, Integer>, BaseAppendDeleteFileMaintainer> maintainers = new LinkedHashMap<>();
        long deleted = 0;
        for (ManifestEntry entry : Metadata.live(table, snapshot)) {
            DeletionVector vector = table.coreOptions().deletionVectorBitmap64() ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
            long[] position = {0};
            DataFiles.read(table, entry, table.schema(), table.rowType(), row -> {
                if (condition.holds(row)) {
                    vector.delete(position[0]);
                }
                position[0]++;
            });
            if (!vector.isEmpty()) {
                deleted += vector.getCardinality();
                maintainers.computeIfAbsent(Pair.of(entry.partition(), entry.bucket()), at -> unaware
                        ? BaseAppendDeleteFileMaintainer.forUnawareAppend(handler, snapshot, at.getLeft())
                        : BaseAppendDeleteFileMaintainer.forBucketedAppend(handler, snapshot, at.getLeft(), at.getRight()))
                        .notifyNewDeletionVector(entry.fileName(), vector);
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        maintainers.forEach((at, maintainer) -> messages.add(message(table, at, maintainer.persist())));
        return commit(request, table, USER, BatchWriteBuilder.COMMIT_IDENTIFIER, messages).put("rows", deleted);
    }

    private static CommitMessage message(FileStoreTable table, Pair<BinaryRow, Integer> at, List<IndexManifestEntry> entries) {
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> removed = new ArrayList<>();
        entries.forEach(entry -> (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile()));
        DataIncrement increment = new DataIncrement(List.of(), List.of(), List.of(), added, removed);
        return new CommitMessageImpl(at.getLeft(), at.getRight(), table.coreOptions().bucket(), increment, CompactIncrement.emptyIncrement());
    }

    static JsonNode compact(Request request) throws Exception {
        boolean full = request.flag("full");
        Map<String, String> options = new HashMap<>(request.strings("options"));
        options.put("write-only", "false");
        FileStoreTable table = request.plainTable().copy(options);
        String user = request.text("user", USER);
        List<CommitMessage> messages;
        try (TableWriteImpl<?> write = table.newWrite(user).withIOManager(Request.spill())) {
            if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) {
                messages = join(full ? table.copy(Collections.singletonMap("compaction.min.file-num", "2")) : table, write);
            } else {
                Set<Pair<BinaryRow, Integer>> buckets = new LinkedHashSet<>();
                table.latestSnapshot().ifPresent(snapshot -> Metadata.live(table, snapshot)
                        .forEach(entry -> buckets.add(Pair.of(entry.partition(), entry.bucket()))));
                for (Pair<BinaryRow, Integer> bucket : buckets) {
                    write.compact(bucket.getLeft(), bucket.getRight(), full);
                }
                messages = write.prepareCommit(true, BatchWriteBuilder.COMMIT_IDENTIFIER);
            }
            return commit(request, table, user, BatchWriteBuilder.COMMIT_IDENTIFIER, messages);
        }
    }

    private static List<CommitMessage> join(FileStoreTable table, TableWriteImpl<?> write) throws Exception {
        List<CommitMessage> messages = new ArrayList<>();
        for (AppendCompactTask task : new AppendCompactCoordinator(table, false).run()) {
            messages.add(task.doCompact(table, (BaseAppendFileStoreWrite) write.getWrite()));
        }
        return messages;
    }
}
