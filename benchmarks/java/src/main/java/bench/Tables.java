package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.RowType;

/** Tables of a local directory, without a catalog. */
final class Tables {
    static final FileIO IO = LocalFileIO.create();
    static final IOManager SPILL = IOManager.create(System.getProperty("java.io.tmpdir"));

    private Tables() {}

    static FileStoreTable open(String path) {
        return FileStoreTableFactory.create(IO, new Path(path));
    }

    static FileStoreTable create(Job job, RowType type) throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        for (DataField field : type.getFields()) {
            schema.column(field.name(), field.type());
        }
        schema.primaryKey(job.primaryKey).options(job.options);
        new SchemaManager(IO, new Path(job.path)).createTable(schema.build());
        return open(job.path);
    }

    /** The table with the job's options; those that it has already are not set again, as some never may. */
    static FileStoreTable altered(Job job) throws Exception {
        Map<String, String> present = open(job.path).options();
        List<SchemaChange> changes = new ArrayList<>();
        job.options.forEach((key, value) -> {
            if (!value.equals(present.get(key))) {
                changes.add(SchemaChange.setOption(key, value));
            }
        });
        if (!changes.isEmpty()) {
            new SchemaManager(IO, new Path(job.path)).commitChanges(changes);
        }
        return open(job.path);
    }
}
