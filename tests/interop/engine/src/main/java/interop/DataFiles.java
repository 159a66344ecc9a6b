package interop;

import java.util.List;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.format.FileFormatDiscover;
import org.apache.paimon.format.FormatReaderContext;
import org.apache.paimon.format.FormatReaderFactory;
import org.apache.paimon.fs.Path;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataFilePathFactory;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.RowType;

/** Data files, read one by one as they lie there: no merging, no deletion vectors. */
final class DataFiles {
    private DataFiles() {}

    static DataFilePathFactory paths(FileStoreTable table, ManifestEntry entry) {
        return table.store().pathFactory().createDataFilePathFactory(entry.partition(), entry.bucket());
    }

    static Path path(FileStoreTable table, ManifestEntry entry) {
        return paths(table, entry).toPath(entry.file());
    }

    static void read(FileStoreTable table, ManifestEntry entry, TableSchema schema, RowType columns, Reads.Sink sink) throws Exception {
        DataFileMeta file = entry.file();
        if (file.schemaId() != schema.id()) {
            throw new IllegalArgumentException(file.fileName() + " has schema " + file.schemaId() + ", not " + schema.id());
        }
        FormatReaderFactory readers =
                FileFormatDiscover.of(table.coreOptions()).discover(file.fileFormat()).createReaderFactory(columns, columns, List.of());
        FormatReaderContext context = new FormatReaderContext(table.fileIO(), path(table, entry), file.fileSize());
        try (RecordReader<InternalRow> reader = readers.createReader(context)) {
            Reads.drain(reader, sink);
        }
    }
}
