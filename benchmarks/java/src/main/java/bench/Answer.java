package bench;

import java.math.BigInteger;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.memory.MemorySegment;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.RowType;

/**
 * Number of rows and their hash, as benchmarks/answers.py defines it. Hashing is not what is timed: a timed pass only fetches every
 * column of every row, and a second one answers.
 */
final class Answer {
    private static final long FACTOR = 0x9E3779B97F4A7C15L;
    private static final long NULL = 0x5DEECE66DL;

    /** A value of a row as 64 bits. */
    private interface Word {
        long of(InternalRow row);
    }

    long rows;
    private long hash;

    private Answer(long rows, long hash) {
        this.rows = rows;
        this.hash = hash;
    }

    /** What a pass does with the columns of a row. */
    enum Pass {
        FETCH,
        HASH
    }

    static Answer none() {
        return new Answer(0, 0);
    }

    /** A number: files of a plan, rows of a count. */
    static Answer number(long rows) {
        return new Answer(rows, 0);
    }

    void add(Answer other) {
        rows += other.rows;
        hash += other.hash;
    }

    ObjectNode toJson(ObjectMapper json) {
        return json.createObjectNode().put("rows", rows).put("hash", new BigInteger(Long.toUnsignedString(hash)));
    }

    /** Takes rows into an answer; one for each thread. */
    static final class Hasher {
        final Answer answer = none();
        private final Word[] words;
        private final int[] positions;
        private final boolean hashing;

        /** Of the columns at {@code positions} of rows of {@code type}, in that order. */
        Hasher(RowType type, int[] positions, Pass pass) {
            this.hashing = pass == Pass.HASH;
            this.positions = positions;
            this.words = new Word[positions.length];
            for (int i = 0; i < words.length; i++) {
                words[i] = word(type.getTypeAt(positions[i]), positions[i]);
            }
        }

        void take(InternalRow row) {
            long h = 0;
            for (int i = 0; i < words.length; i++) {
                h += row.isNullAt(positions[i]) ? NULL : words[i].of(row);
                if (hashing) {
                    h *= FACTOR;
                    h ^= h >>> 32;
                }
            }
            answer.rows++;
            answer.hash += h;
        }
    }

    private static Word word(DataType type, int at) {
        return switch (type.getTypeRoot()) {
            case INTEGER, DATE -> row -> row.getInt(at);
            case SMALLINT -> row -> row.getShort(at);
            case TINYINT -> row -> row.getByte(at);
            case BIGINT -> row -> row.getLong(at);
            case DOUBLE -> row -> Double.doubleToRawLongBits(row.getDouble(at));
            case DECIMAL -> {
                int precision = DataTypeChecks.getPrecision(type);
                int scale = DataTypeChecks.getScale(type);
                yield row -> row.getDecimal(at, precision, scale).toUnscaledLong();
            }
            case TIMESTAMP_WITHOUT_TIME_ZONE, TIMESTAMP_WITH_LOCAL_TIME_ZONE -> {
                int precision = DataTypeChecks.getPrecision(type);
                yield row -> precision <= 3 ? row.getTimestamp(at, precision).getMillisecond() : row.getTimestamp(at, precision).toMicros();
            }
            case CHAR, VARCHAR -> row -> text(row.getString(at));
            default -> throw new IllegalArgumentException("no hash for " + type);
        };
    }

    private static long text(BinaryString text) {
        int length = text.getSizeInBytes();
        MemorySegment[] segments = text.getSegments();
        if (length >= 8 && segments.length == 1) {
            int start = text.getOffset();
            return segments[0].getLongLittleEndian(start) + 31 * segments[0].getLongLittleEndian(start + length - 8) + length;
        }
        long first = 0;
        long last = 0;
        for (int i = 0; i < Math.min(8, length); i++) {
            first |= (text.byteAt(i) & 0xFFL) << 8 * i;
            last |= (text.byteAt(Math.max(0, length - 8) + i) & 0xFFL) << 8 * i;
        }
        return first + 31 * last + length;
    }
}
