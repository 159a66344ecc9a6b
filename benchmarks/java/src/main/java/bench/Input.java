package bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.format.FileFormat;
import org.apache.paimon.format.FormatReaderContext;
import org.apache.paimon.format.parquet.ParquetSchemaConverter;
import org.apache.paimon.format.parquet.ParquetUtil;
import org.apache.paimon.fs.Path;
import org.apache.paimon.memory.MemorySegment;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.paimon.shade.org.apache.parquet.schema.MessageType;
import org.apache.paimon.shade.org.apache.parquet.schema.Type;
import org.apache.paimon.types.RowType;

/** The rows of a Parquet file as Paimon's binary rows on the heap, packed in blocks, so that millions are not millions of objects. */
final class Input {
    private static final int ROWS_A_BLOCK = 1 << 14;

    /** Rows one behind the other; row {@code i} lies from {@code starts[i]} to {@code starts[i + 1]}. */
    record Block(MemorySegment bytes, int[] starts) {
        int size() {
            return starts.length - 1;
        }

        void point(BinaryRow row, int at) {
            row.pointTo(bytes, starts[at], starts[at + 1] - starts[at]);
        }
    }

    private final RowType type;
    private final List<Block> blocks = new ArrayList<>();

    private byte[] bytes = new byte[ROWS_A_BLOCK * 256];
    private int[] starts = new int[ROWS_A_BLOCK + 1];
    private int rows;

    private Input(RowType type) {
        this.type = type;
    }

    RowType type() {
        return type;
    }

    List<Block> blocks() {
        return blocks;
    }

    static Input load(String file) throws Exception {
        Path path = new Path(file);
        long size = Tables.IO.getFileSize(path);
        RowType type;
        try (ParquetFileReader reader = ParquetUtil.getParquetReader(Tables.IO, path, size, new Options())) {
            type = ParquetSchemaConverter.convertToPaimonRowType(numbered(reader.getFileMetaData().getSchema()));
        }
        Input input = new Input(type);
        InternalRowSerializer binary = new InternalRowSerializer(type);
        FormatReaderContext context = new FormatReaderContext(Tables.IO, path, size);
        FileFormat parquet = FileFormat.fromIdentifier("parquet", new Options());
        try (RecordReader<InternalRow> reader = parquet.createReaderFactory(type, type, List.of()).createReader(context)) {
            reader.forEachRemaining(row -> input.add(binary.toBinaryRow(row)));
        }
        input.finish();
        return input;
    }

    /** With field ids, which Paimon expects and other writers leave out. */
    private static MessageType numbered(MessageType schema) {
        List<Type> fields = new ArrayList<>();
        schema.getFields().forEach(field -> fields.add(field.withId(fields.size())));
        return new MessageType(schema.getName(), fields);
    }

    private void add(BinaryRow row) {
        int size = row.getSizeInBytes();
        int end = starts[rows] + size;
        if (end > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(end, bytes.length + (bytes.length >> 1)));
        }
        row.getSegments()[0].get(row.getOffset(), bytes, starts[rows], size);
        starts[++rows] = end;
        if (rows == ROWS_A_BLOCK) {
            finish();
        }
    }

    private void finish() {
        if (rows > 0) {
            blocks.add(new Block(MemorySegment.wrap(Arrays.copyOf(bytes, starts[rows])), Arrays.copyOf(starts, rows + 1)));
            rows = 0;
        }
    }
}
