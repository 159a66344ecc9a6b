import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManagerImpl;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.types.DataTypes;

/** Small tables with the interfaces that every engine since 0.8 has: four commits of twenty rows, half of whose keys come again. */
public final class OldTables {
  private static final String DYNAMIC = "pk_dynamic";

  public static void main(String[] arguments) throws Exception {
    Options options = new Options();
    options.set("warehouse", arguments[0]);
    Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
    catalog.createDatabase("db", true);
    for (int i = 1; i < arguments.length; i++) {
      make(catalog, arguments[i]);
    }
  }

  private static Map<String, String> optionsOf(String name) {
    Map<String, String> found = new HashMap<>(Map.of("file.format", "parquet", "bucket", "1"));
    if (name.startsWith("codec_")) {
      found.put("manifest.compression", name.substring("codec_".length()));
    } else if (name.startsWith("manifest_")) {
      found.put("manifest.format", name.substring("manifest_".length()));
    } else if (name.equals("append") || name.equals(DYNAMIC)) {
      found.put("bucket", "-1");
    } else if (name.equals("pk_dv")) {
      found.put("deletion-vectors.enabled", "true");
    } else if (name.equals("pk_changelog")) {
      found.put("changelog-producer", "lookup");
    } else if (name.equals("pk_part")) {
      found.put("manifest.merge-min-count", "2");
    }
    return found;
  }

  private static void make(Catalog catalog, String name) throws Exception {
    Schema.Builder schema =
        Schema.newBuilder()
            .column("id", DataTypes.BIGINT().notNull())
            .column("day", DataTypes.STRING().notNull())
            .column("s", DataTypes.STRING())
            .column("n", DataTypes.INT())
            .column("d", DataTypes.DECIMAL(10, 2))
            .column("t", DataTypes.TIMESTAMP(6));
    boolean partitioned = name.equals("pk_part");
    if (!name.equals("append")) {
      schema.primaryKey(partitioned ? new String[] {"id", "day"} : new String[] {"id"});
    }
    if (partitioned) {
      schema.partitionKeys("day");
    }
    schema.options(optionsOf(name));
    Identifier identifier = Identifier.create("db", name);
    catalog.createTable(identifier, schema.build(), false);
    Table table = catalog.getTable(identifier);
    for (int commit = 0; commit < 4; commit++) {
      BatchWriteBuilder builder = table.newBatchWriteBuilder();
      try (BatchTableWrite write = builder.newWrite(); BatchTableCommit done = builder.newCommit()) {
        write.withIOManager(new IOManagerImpl(System.getProperty("java.io.tmpdir")));
        for (int i = 0; i < 20; i++) {
          GenericRow row = row(commit * 10L + i, commit);
          if (name.equals(DYNAMIC)) {
            write.write(row, (int) (row.getLong(0) % 2));
          } else {
            write.write(row);
          }
        }
        done.commit(write.prepareCommit());
      }
    }
  }

  private static GenericRow row(long key, int commit) {
    return GenericRow.of(
        key,
        BinaryString.fromString("2024-01-0" + (1 + key % 3)),
        key % 5 == 0 ? null : BinaryString.fromString("s" + key),
        commit,
        Decimal.fromUnscaledLong(key * 100 + commit, 10, 2),
        Timestamp.fromMicros(1700000000000000L + key));
  }
}
