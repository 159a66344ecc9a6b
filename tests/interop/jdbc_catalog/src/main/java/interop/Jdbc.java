package interop;

import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.types.DataTypes;

/** Changes a JDBC catalog, and prints what it lists: warehouse, address, key, then commands. */
public final class Jdbc {
    public static void main(String[] arguments) throws Exception {
        Options options = new Options();
        options.set("metastore", "jdbc");
        options.set("warehouse", arguments[0]);
        options.set("uri", arguments[1]);
        options.set("catalog-key", arguments[2]);
        try (Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options))) {
            for (int at = 3; at < arguments.length; at++) {
                String[] words = arguments[at].split(" ");
                switch (words[0]) {
                    case "database" -> catalog.createDatabase(words[1], false, new HashMap<>(Map.of("owner", "me")));
                    case "create" -> catalog.createTable(Identifier.fromString(words[1]), schema(), false);
                    case "rename" -> catalog.renameTable(Identifier.fromString(words[1]), Identifier.fromString(words[2]), false);
                    case "drop" -> catalog.dropTable(Identifier.fromString(words[1]), false);
                    case "drop-database" -> catalog.dropDatabase(words[1], false, false);
                    default -> throw new IllegalArgumentException(words[0]);
                }
            }
            for (String database : new TreeSet<>(catalog.listDatabases())) {
                System.out.println(database + " " + new TreeMap<>(catalog.getDatabase(database).options()));
                for (String table : new TreeSet<>(catalog.listTables(database))) {
                    Identifier name = Identifier.create(database, table);
                    var found = catalog.getTable(name);
                    System.out.println(name.getFullName() + " " + found.rowType() + " " + found.latestSnapshot().map(s -> s.totalRecordCount()).orElse(0L));
                }
            }
        }
    }

    private static Schema schema() {
        return Schema.newBuilder()
                .column("id", DataTypes.BIGINT())
                .column("day", DataTypes.STRING())
                .primaryKey("id", "day")
                .partitionKeys("day")
                .option("bucket", "2")
                .build();
    }
}
