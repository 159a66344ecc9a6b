package interop;

import org.apache.paimon.data.InternalRow;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.system.SystemTableLoader;
import org.apache.paimon.types.DataField;

/** Tables about a table: their columns and rows. */
final class SystemTables {
    private SystemTables() {}

    static JsonNode names() {
        return Json.array(SystemTableLoader.SYSTEM_TABLES);
    }

    static JsonNode read(Request request) throws Exception {
        Table table = SystemTableLoader.load(request.text("name"), request.table());
        if (table == null) {
            throw new IllegalArgumentException("no system table '" + request.text("name") + "'");
        }
        ObjectNode out = Json.object();
        ArrayNode columns = out.putArray("columns");
        for (DataField field : table.rowType().getFields()) {
            columns.addObject().put("name", field.name()).put("type", field.type().asSQLString());
        }
        out.set("primaryKeys", Json.array(table.primaryKeys()));
        ArrayNode rows = out.putArray("rows");
        ReadBuilder builder = table.newReadBuilder();
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan())) {
            Reads.drain(reader, row -> rows.add(Cells.row(table.rowType(), row)));
        }
        return out;
    }
}
