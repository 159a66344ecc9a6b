package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;

/** Writes as a job with as many tasks as there are threads: buckets are computed first, then each task writes the rows of its own buckets. */
final class Commits {
    private Commits() {}

    static void write(FileStoreTable table, Input input, Workers workers) throws Exception {
        String user = UUID.randomUUID().toString();
        boolean bucketed = table.bucketMode() != BucketMode.BUCKET_UNAWARE;
        List<Input.Block> blocks = input.blocks();
        List<int[]> buckets = bucketed ? buckets(table, input, workers) : List.of();
        commit(table, user, workers.each(workers.count, task -> () -> {
            try (TableWriteImpl<?> write = table.newWrite(user).withIOManager(Tables.SPILL)) {
                BinaryRow row = new BinaryRow(input.type().getFieldCount());
                for (int at = bucketed ? 0 : task; at < blocks.size(); at += bucketed ? 1 : workers.count) {
                    Input.Block block = blocks.get(at);
                    int[] routes = bucketed ? buckets.get(at) : null;
                    for (int i = 0; i < block.size(); i++) {
                        if (routes == null) {
                            block.point(row, i);
                            write.write(row);
                        } else if (routes[i] % workers.count == task) {
                            block.point(row, i);
                            write.write(row, routes[i]);
                        }
                    }
                }
                return write.prepareCommit(true, BatchWriteBuilder.COMMIT_IDENTIFIER);
            }
        }));
    }

    /** The bucket of each row, block by block. */
    private static List<int[]> buckets(FileStoreTable table, Input input, Workers workers) throws Exception {
        int[][] found = new int[input.blocks().size()][];
        workers.each(workers.count, task -> () -> {
            try (TableWriteImpl<?> router = table.newWrite("router")) {
                BinaryRow row = new BinaryRow(input.type().getFieldCount());
                for (int at = task; at < found.length; at += workers.count) {
                    Input.Block block = input.blocks().get(at);
                    int[] buckets = new int[block.size()];
                    for (int i = 0; i < buckets.length; i++) {
                        block.point(row, i);
                        buckets[i] = router.getBucket(row);
                    }
                    found[at] = buckets;
                }
            }
            return null;
        });
        return List.of(found);
    }

    static void commit(FileStoreTable table, String user, List<List<CommitMessage>> messages) throws Exception {
        List<CommitMessage> all = new ArrayList<>();
        messages.forEach(all::addAll);
        try (TableCommitImpl commit = table.newCommit(user)) {
            commit.commit(BatchWriteBuilder.COMMIT_IDENTIFIER, all);
        }
    }
}
