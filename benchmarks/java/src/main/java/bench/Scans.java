package bench;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.predicate.PredicateVisitor;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.TypeUtils;

/** Plans and reads; the splits are shared among the threads. */
final class Scans {
    private Scans() {}

    /** Data files of the plan. */
    static long files(FileStoreTable table, Predicate filter) {
        return splits(builder(table, filter)).stream().mapToLong(split -> ((DataSplit) split).dataFiles().size()).sum();
    }

    /** The rows that match, {@code columns} of them (null: all), filtered exactly. */
    static Answer read(FileStoreTable table, Workers workers, Predicate filter, List<String> columns, Answer.Pass pass) throws Exception {
        RowType type = table.rowType();
        List<String> wanted = columns == null ? type.getFieldNames() : columns;
        List<String> needed = needed(type, wanted, filter);
        ReadBuilder builder = builder(table, filter).withReadType(type.project(needed));
        List<Split> splits = splits(builder);
        int[] positions = wanted.stream().mapToInt(needed::indexOf).toArray();
        Answer answer = Answer.none();
        for (Answer part : workers.each(splits.size(), at -> () -> read(builder, splits.get(at), filter != null, positions, pass))) {
            answer.add(part);
        }
        return answer;
    }

    private static Answer read(ReadBuilder builder, Split split, boolean filtered, int[] positions, Answer.Pass pass) throws Exception {
        TableRead read = builder.newRead().withIOManager(Tables.SPILL);
        if (filtered) {
            read.executeFilter();
        }
        Answer.Hasher hasher = new Answer.Hasher(builder.readType(), positions, pass);
        try (RecordReader<InternalRow> reader = read.createReader(split)) {
            for (RecordReader.RecordIterator<InternalRow> batch; (batch = reader.readBatch()) != null; batch.releaseBatch()) {
                for (InternalRow row; (row = batch.next()) != null; ) {
                    hasher.take(row);
                }
            }
        }
        return hasher.answer;
    }

    private static ReadBuilder builder(FileStoreTable table, Predicate filter) {
        ReadBuilder builder = table.newReadBuilder();
        return filter == null ? builder : builder.withFilter(filter);
    }

    private static List<Split> splits(ReadBuilder builder) {
        return builder.newScan().plan().splits();
    }

    /** In the table's order; an exact filter needs its own columns too. */
    private static List<String> needed(RowType type, List<String> wanted, Predicate filter) {
        Set<String> names = new LinkedHashSet<>(wanted);
        if (filter != null) {
            names.addAll(PredicateVisitor.collectFieldNames(filter));
        }
        return type.getFieldNames().stream().filter(names::contains).toList();
    }

    /** The conditions of a query as one predicate; null for none. */
    static Predicate filter(RowType type, JsonNode conditions) {
        PredicateBuilder builder = new PredicateBuilder(type);
        List<Predicate> terms = new ArrayList<>();
        for (JsonNode condition : conditions) {
            int column = builder.indexOf(condition.get(0).asText());
            Object literal = TypeUtils.castFromString(condition.get(2).asText(), type.getTypeAt(column));
            terms.add(switch (condition.get(1).asText()) {
                case "=" -> builder.equal(column, literal);
                case ">=" -> builder.greaterOrEqual(column, literal);
                case "<=" -> builder.lessOrEqual(column, literal);
                default -> throw new IllegalArgumentException("no operator " + condition.get(1));
            });
        }
        return terms.isEmpty() ? null : PredicateBuilder.and(terms);
    }
}
