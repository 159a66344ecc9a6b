package interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;

/** Tables as wholes: schemas, tags, branches, and what is kept of their history. */
final class Tables {
    private Tables() {}

    static JsonNode create(Request request) throws Exception {
        Schema.Builder builder = Schema.newBuilder();
        for (JsonNode field : request.node("fields")) {
            builder.column(field.get("name").asText(), type(field.get("type")), textOrNull(field, "description"), textOrNull(field, "defaultValue"));
        }
        builder.primaryKey(request.words("primaryKeys"));
        builder.partitionKeys(request.words("partitionKeys"));
        builder.options(request.strings("options"));
        builder.comment(request.text("comment", null));
        return shown(request.schemas().createTable(builder.build()));
    }

    static JsonNode schema(Request request) {
        long id = request.number("id", -1);
        return shown(id < 0 ? request.schemas().latest().orElseThrow() : request.schemas().schema(id));
    }

    private static JsonNode shown(TableSchema schema) {
        try {
            return Json.parse(schema.toString());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static JsonNode alter(Request request) throws Exception {
        List<SchemaChange> changes = new ArrayList<>();
        request.node("changes").forEach(change -> changes.add(change(change)));
        return shown(request.schemas().commitChanges(changes));
    }

    private static SchemaChange change(JsonNode change) {
        String kind = change.get("change").asText();
        String[] column = change.has("column") ? path(change.get("column")) : null;
        return switch (kind) {
            case "add" -> SchemaChange.addColumn(column, type(change.get("type")), textOrNull(change, "comment"), move(change, column));
            case "drop" -> SchemaChange.dropColumn(column);
            case "rename" -> SchemaChange.renameColumn(column, change.get("to").asText());
            case "type" -> SchemaChange.updateColumnType(column, type(change.get("type")), false);
            case "nullable" -> SchemaChange.updateColumnNullability(column, change.get("nullable").asBoolean());
            case "comment" -> SchemaChange.updateColumnComment(column, textOrNull(change, "comment"));
            case "default" -> SchemaChange.updateColumnDefaultValue(column, textOrNull(change, "value"));
            case "move" -> SchemaChange.updateColumnPosition(move(change, column));
            case "set" -> SchemaChange.setOption(change.get("key").asText(), change.get("value").asText());
            case "remove" -> SchemaChange.removeOption(change.get("key").asText());
            default -> throw new IllegalArgumentException("no schema change '" + kind + "'");
        };
    }

    private static SchemaChange.Move move(JsonNode change, String[] column) {
        String name = column[column.length - 1];
        if (change.has("after")) {
            return SchemaChange.Move.after(name, change.get("after").asText());
        }
        if (change.has("before")) {
            return SchemaChange.Move.before(name, change.get("before").asText());
        }
        return change.has("first") ? SchemaChange.Move.first(name) : null;
    }

    private static String[] path(JsonNode column) {
        return column.isArray() ? Json.words(column).toArray(new String[0]) : new String[] {column.asText()};
    }

    /** A type as text or as in schema files; fields of rows may lack ids, the engine gives them new ones anyway. */
    private static DataType type(JsonNode node) {
        boolean numbered = node.findValue("id") != null;
        return numbered ? DataTypeJsonParser.parseDataType(node) : DataTypeJsonParser.parseDataType(node, new AtomicInteger());
    }

    private static String textOrNull(JsonNode node, String name) {
        return node.hasNonNull(name) ? node.get(name).asText() : null;
    }

    static JsonNode tag(Request request) {
        FileStoreTable table = request.table();
        String name = request.text("name");
        switch (request.text("do", "create")) {
            case "create" -> {
                if (request.has("snapshot")) {
                    table.createTag(name, request.number("snapshot", 0));
                } else {
                    table.createTag(name);
                }
            }
            case "delete" -> table.deleteTag(name);
            case "rename" -> table.renameTag(name, request.text("to"));
            default -> throw new IllegalArgumentException("tags are created, deleted or renamed");
        }
        return Json.array(table.tagManager().allTagNames());
    }

    static JsonNode branch(Request request) {
        FileStoreTable table = request.table();
        String name = request.text("name");
        switch (request.text("do", "create")) {
            case "create" -> {
                if (request.has("tag")) {
                    table.createBranch(name, request.text("tag"));
                } else {
                    table.createBranch(name);
                }
            }
            case "delete" -> table.deleteBranch(name);
            case "fast_forward" -> table.fastForward(name);
            default -> throw new IllegalArgumentException("branches are created, deleted or fast-forwarded");
        }
        return Json.array(table.branchManager().branches());
    }

    static JsonNode rollback(Request request) {
        FileStoreTable table = request.table();
        if (request.has("tag")) {
            table.rollbackTo(request.text("tag"));
        } else {
            table.rollbackTo(request.number("snapshot", 0));
        }
        return Json.object().put("snapshot", table.snapshotManager().latestSnapshotId());
    }

    static JsonNode expire(Request request) {
        int keep = Math.toIntExact(request.number("keep", 1));
        ExpireConfig config = ExpireConfig.builder()
                .snapshotRetainMin(keep)
                .snapshotRetainMax(Math.toIntExact(request.number("keepMax", keep)))
                .snapshotTimeRetain(Duration.ofMillis(request.number("millis", 0)))
                .build();
        return Json.object().put("expired", request.table().newExpireSnapshots().config(config).expire());
    }
}
