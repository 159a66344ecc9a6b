package interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.JoinedRow;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.predicate.PredicateVisitor;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.RowType;

/**
 * A filter as the engine's predicate. It has none on map entries, but its indexes do: {@code m[key]} becomes a column of its own
 * behind those of the table, for indexes and for rows, and is kept out of what the engine's scan sees.
 */
final class Condition {
    private record Entry(int map, String key, MapType type) {}

    private static final int ENTRY_IDS = 1 << 24;

    private final RowType table;
    private final RowType widened;
    private final Map<String, Entry> entries = new LinkedHashMap<>();
    private final Predicate predicate;

    private Condition(RowType table, JsonNode filter) {
        this.table = table;
        List<DataField> fields = new ArrayList<>(table.getFields());
        addEntries(filter, fields);
        this.widened = new RowType(fields);
        this.predicate = filter == null ? null : build(filter, new PredicateBuilder(widened));
    }

    static Condition of(RowType table, JsonNode filter) {
        return new Condition(table, filter);
    }

    Predicate whole() {
        return predicate;
    }

    /** The terms that the engine's scan understands, joined by AND; null for none. */
    Predicate pushed() {
        if (predicate == null) {
            return null;
        }
        List<Predicate> terms = new ArrayList<>(PredicateBuilder.splitAnd(predicate));
        Set<String> names = Set.copyOf(table.getFieldNames());
        terms.removeIf(term -> !names.containsAll(PredicateVisitor.collectFieldNames(term)));
        return terms.isEmpty() ? null : PredicateBuilder.and(terms);
    }

    boolean holds(InternalRow row) {
        return predicate == null || predicate.test(entries.isEmpty() ? row : new JoinedRow(row, entriesOf(row)));
    }

    private void addEntries(JsonNode filter, List<DataField> fields) {
        if (filter == null) {
            return;
        }
        if (filter.has("args")) {
            filter.get("args").forEach(child -> addEntries(child, fields));
            return;
        }
        String name = filter.get("col").asText();
        int bracket = name.indexOf('[');
        if (table.containsField(name) || entries.containsKey(name)) {
            return;
        }
        if (bracket < 0 || !table.containsField(name.substring(0, bracket))) {
            throw new IllegalArgumentException("no column '" + name + "'");
        }
        int map = table.getFieldIndex(name.substring(0, bracket));
        MapType type = (MapType) table.getTypeAt(map);
        entries.put(name, new Entry(map, name.substring(bracket + 1, name.length() - 1), type));
        fields.add(new DataField(ENTRY_IDS + entries.size(), name, type.getValueType()));
    }

    private GenericRow entriesOf(InternalRow row) {
        GenericRow out = new GenericRow(entries.size());
        int position = 0;
        for (Entry entry : entries.values()) {
            out.setField(position++, row.isNullAt(entry.map) ? null : valueOf(row.getMap(entry.map), entry));
        }
        return out;
    }

    private static Object valueOf(InternalMap map, Entry entry) {
        InternalArray keys = map.keyArray();
        for (int i = 0; i < map.size(); i++) {
            if (!keys.isNullAt(i) && keys.getString(i).toString().equals(entry.key)) {
                return InternalArray.createElementGetter(entry.type.getValueType()).getElementOrNull(map.valueArray(), i);
            }
        }
        return null;
    }

    private Predicate build(JsonNode filter, PredicateBuilder builder) {
        String op = filter.get("op").asText();
        if (op.equals("and") || op.equals("or")) {
            List<Predicate> children = new ArrayList<>();
            filter.get("args").forEach(child -> children.add(build(child, builder)));
            return op.equals("and") ? PredicateBuilder.and(children) : PredicateBuilder.or(children);
        }
        int column = builder.indexOf(filter.get("col").asText());
        DataType type = widened.getTypeAt(column);
        Object value = Cells.fromJson(type, filter.get("value"));
        List<Object> values = new ArrayList<>();
        if (filter.has("values")) {
            filter.get("values").forEach(item -> values.add(Cells.fromJson(type, item)));
        }
        return switch (op) {
            case "=" -> builder.equal(column, value);
            case "!=" -> builder.notEqual(column, value);
            case "<" -> builder.lessThan(column, value);
            case "<=" -> builder.lessOrEqual(column, value);
            case ">" -> builder.greaterThan(column, value);
            case ">=" -> builder.greaterOrEqual(column, value);
            case "in" -> builder.in(column, values);
            case "not_in" -> builder.notIn(column, values);
            case "between" -> builder.between(column, values.get(0), values.get(1));
            case "is_null" -> builder.isNull(column);
            case "is_not_null" -> builder.isNotNull(column);
            case "starts_with" -> builder.startsWith(column, value);
            default -> throw new IllegalArgumentException("no operation '" + op + "'");
        };
    }
}
