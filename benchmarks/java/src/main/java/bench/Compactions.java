package bench;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.utils.Pair;

/** Full compactions of tables that are written without. */
final class Compactions {
    private Compactions() {}

    static void full(FileStoreTable writeOnly, Workers workers) throws Exception {
        FileStoreTable table = writeOnly.copy(Map.of("write-only", "false"));
        String user = UUID.randomUUID().toString();
        if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) {
            Commits.commit(table, user, List.of(joined(table.copy(Map.of("compaction.min.file-num", "2")), user, workers)));
            return;
        }
        Set<Pair<BinaryRow, Integer>> found = new LinkedHashSet<>();
        table.store().newScan().plan().files().forEach(entry -> found.add(Pair.of(entry.partition(), entry.bucket())));
        List<Pair<BinaryRow, Integer>> buckets = new ArrayList<>(found);
        Commits.commit(table, user, workers.each(workers.count, task -> () -> {
            try (TableWriteImpl<?> write = table.newWrite(user).withIOManager(Tables.SPILL)) {
                for (int i = task; i < buckets.size(); i += workers.count) {
                    write.compact(buckets.get(i).getLeft(), buckets.get(i).getRight(), true);
                }
                return write.prepareCommit(true, BatchWriteBuilder.COMMIT_IDENTIFIER);
            }
        }));
    }

    private static List<CommitMessage> joined(FileStoreTable table, String user, Workers workers) throws Exception {
        List<AppendCompactTask> tasks = new AppendCompactCoordinator(table, false).run();
        return workers.each(tasks.size(), task -> () -> {
            try (TableWriteImpl<?> write = table.newWrite(user)) {
                return tasks.get(task).doCompact(table, (BaseAppendFileStoreWrite) write.getWrite());
            }
        });
    }
}
