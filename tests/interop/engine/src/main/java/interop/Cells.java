package interop;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Blob;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/** Values of rows as JSON and back; the driver documents the form. */
final class Cells {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final HexFormat HEX = HexFormat.of();
    private static final DateTimeFormatter CLOCK = DateTimeFormatter.ofPattern("HH:mm:ss.SSS");
    private static final DateTimeFormatter MICROS = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS");
    private static final DateTimeFormatter NANOS = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSSSSS");

    private Cells() {}

    // ------------------------------------------------------------------ to JSON

    static JsonNode toJson(DataType type, Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        return switch (type.getTypeRoot()) {
            case CHAR, VARCHAR -> NODES.textNode(value.toString());
            case BINARY, VARBINARY -> NODES.textNode(HEX.formatHex((byte[]) value));
            case BOOLEAN -> NODES.booleanNode((Boolean) value);
            case TINYINT, SMALLINT, INTEGER, BIGINT -> NODES.numberNode(((Number) value).longValue());
            case FLOAT -> Float.isFinite((Float) value) ? NODES.numberNode((Float) value) : NODES.textNode(value.toString());
            case DOUBLE -> Double.isFinite((Double) value) ? NODES.numberNode((Double) value) : NODES.textNode(value.toString());
            case DECIMAL -> NODES.textNode(((Decimal) value).toBigDecimal().toPlainString());
            case DATE -> NODES.textNode(LocalDate.ofEpochDay((Integer) value).toString());
            case TIME_WITHOUT_TIME_ZONE -> NODES.textNode(LocalTime.ofNanoOfDay((Integer) value * 1_000_000L).format(CLOCK));
            case TIMESTAMP_WITHOUT_TIME_ZONE -> NODES.textNode(time(type, (Timestamp) value));
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> NODES.textNode(time(type, (Timestamp) value) + "Z");
            case ARRAY -> items(((ArrayType) type).getElementType(), (InternalArray) value);
            case MAP -> pairs(((MapType) type).getKeyType(), ((MapType) type).getValueType(), (InternalMap) value);
            case MULTISET -> pairs(((MultisetType) type).getElementType(), DataTypes.INT(), (InternalMap) value);
            case ROW -> row((RowType) type, (InternalRow) value);
            case VARIANT -> NODES.textNode(((Variant) value).toJson());
            case BLOB -> NODES.textNode(HEX.formatHex(((Blob) value).toData()));
            default -> throw new IllegalArgumentException("no JSON form for " + type);
        };
    }

    static ObjectNode row(RowType type, InternalRow row) {
        ObjectNode out = Json.object();
        for (int i = 0; i < type.getFieldCount(); i++) {
            out.set(type.getFieldNames().get(i), toJson(type.getTypeAt(i), field(type, row, i)));
        }
        return out;
    }

    static Object field(RowType type, InternalRow row, int position) {
        return InternalRow.createFieldGetter(type.getTypeAt(position), position).getFieldOrNull(row);
    }

    private static String time(DataType type, Timestamp value) {
        return value.toLocalDateTime().format(DataTypeChecks.getPrecision(type) > 6 ? NANOS : MICROS);
    }

    private static ArrayNode items(DataType type, InternalArray array) {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
        ArrayNode out = Json.array();
        for (int i = 0; i < array.size(); i++) {
            out.add(toJson(type, getter.getElementOrNull(array, i)));
        }
        return out;
    }

    /** Entries in the order of their keys' texts, byte by byte: maps have none of their own. */
    private static ArrayNode pairs(DataType keyType, DataType valueType, InternalMap map) {
        ArrayNode keys = items(keyType, map.keyArray());
        ArrayNode values = items(valueType, map.valueArray());
        List<ArrayNode> entries = new ArrayList<>();
        for (int i = 0; i < keys.size(); i++) {
            entries.add(Json.array().add(keys.get(i)).add(values.get(i)));
        }
        entries.sort(Comparator.comparing(entry -> Json.text(entry.get(0)).getBytes(java.nio.charset.StandardCharsets.UTF_8), Arrays::compareUnsigned));
        return Json.array().addAll(entries);
    }

    // ------------------------------------------------------------------ from JSON

    static Object fromJson(DataType type, JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        return switch (type.getTypeRoot()) {
            case CHAR, VARCHAR -> BinaryString.fromString(node.asText());
            case BINARY, VARBINARY -> HEX.parseHex(node.asText());
            case BOOLEAN -> node.asBoolean();
            case TINYINT -> Byte.valueOf(node.asText());
            case SMALLINT -> Short.valueOf(node.asText());
            case INTEGER -> Integer.valueOf(node.asText());
            case BIGINT -> Long.valueOf(node.asText());
            case FLOAT -> Float.valueOf(node.asText());
            case DOUBLE -> Double.valueOf(node.asText());
            case DECIMAL -> decimal((DecimalType) type, node.asText());
            case DATE -> Math.toIntExact(LocalDate.parse(node.asText()).toEpochDay());
            case TIME_WITHOUT_TIME_ZONE -> Math.toIntExact(LocalTime.parse(node.asText()).toNanoOfDay() / 1_000_000);
            case TIMESTAMP_WITHOUT_TIME_ZONE, TIMESTAMP_WITH_LOCAL_TIME_ZONE -> instant(node.asText());
            case ARRAY -> new GenericArray(objects(((ArrayType) type).getElementType(), node));
            case MAP -> map(((MapType) type).getKeyType(), ((MapType) type).getValueType(), node);
            case MULTISET -> map(((MultisetType) type).getElementType(), DataTypes.INT(), node);
            case ROW -> row((RowType) type, node);
            case VARIANT -> GenericVariant.fromJson(node.asText());
            case BLOB -> Blob.fromData(HEX.parseHex(node.asText()));
            default -> throw new IllegalArgumentException("no JSON form for " + type);
        };
    }

    static GenericRow row(RowType type, JsonNode node) {
        GenericRow out = new GenericRow(type.getFieldCount());
        int position = 0;
        for (DataField field : type.getFields()) {
            out.setField(position++, fromJson(field.type(), node.get(field.name())));
        }
        return out;
    }

    private static Decimal decimal(DecimalType type, String text) {
        return Decimal.fromBigDecimal(new BigDecimal(text), type.getPrecision(), type.getScale());
    }

    private static Timestamp instant(String text) {
        return Timestamp.fromLocalDateTime(LocalDateTime.parse(text.endsWith("Z") ? text.substring(0, text.length() - 1) : text));
    }

    private static Object[] objects(DataType type, JsonNode list) {
        Object[] out = new Object[list.size()];
        for (int i = 0; i < out.length; i++) {
            out[i] = fromJson(type, list.get(i));
        }
        return out;
    }

    private static GenericMap map(DataType keyType, DataType valueType, JsonNode pairs) {
        Map<Object, Object> out = new LinkedHashMap<>();
        pairs.forEach(pair -> out.put(fromJson(keyType, pair.get(0)), fromJson(valueType, pair.get(1))));
        return new GenericMap(out);
    }
}
