import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManagerImpl;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypes;

/** Writes the rows of rows.py as one file of an append table, with the interfaces that every engine since 0.8 has. */
public final class ForeignFile {
  public static void main(String[] arguments) throws Exception {
    Options options = new Options();
    options.set("warehouse", arguments[0]);
    Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
    catalog.createDatabase("db", true);
    Schema.Builder schema =
        Schema.newBuilder()
            .column("id", DataTypes.BIGINT())
            .column("s", DataTypes.STRING())
            .column("t", DataTypes.STRING())
            .column("n", DataTypes.INT())
            .column("d", DataTypes.DOUBLE())
            .column("f", DataTypes.BOOLEAN())
            .column("day", DataTypes.DATE())
            .column("ts", DataTypes.TIMESTAMP(6))
            .column("dec", DataTypes.DECIMAL(10, 2))
            .column("l", DataTypes.ARRAY(DataTypes.BIGINT()))
            .column("m", DataTypes.MAP(DataTypes.STRING().notNull(), DataTypes.BIGINT()))
            .column("r", DataTypes.ROW(new DataField(12, "a", DataTypes.BIGINT()), new DataField(13, "b", DataTypes.STRING())));
    Map<String, String> wanted = new HashMap<>();
    for (int at = 2; at < arguments.length; at += 2) {
      wanted.put(arguments[at], arguments[at + 1]);
    }
    schema.options(wanted);
    Identifier identifier = Identifier.create("db", "t");
    catalog.createTable(identifier, schema.build(), false);
    Table table = catalog.getTable(identifier);
    BatchWriteBuilder builder = table.newBatchWriteBuilder();
    try (BatchTableWrite write = builder.newWrite(); BatchTableCommit done = builder.newCommit()) {
      write.withIOManager(new IOManagerImpl(System.getProperty("java.io.tmpdir")));
      for (long i = 0; i < Long.parseLong(arguments[1]); i++) {
        write.write(row(i));
      }
      done.commit(write.prepareCommit());
    }
  }

  private static GenericRow row(long i) {
    Object[] list = Arrays.copyOf(new Object[] {i, null, i + 1}, (int) (i % 4));
    Map<Object, Object> map = new HashMap<>();
    map.put(BinaryString.fromString("k" + i % 3), i);
    return GenericRow.of(
        i,
        i % 7 == 0 ? null : BinaryString.fromString("s" + i % 5),
        BinaryString.fromString(String.format("text-%05d", i * 7919 % 10007)),
        i % 11 == 0 ? null : (int) (i * 37 % 1000 - 500),
        i / 4.0,
        i % 3 == 0,
        (int) (19723 + i % 60),
        Timestamp.fromMicros(1704067200000000L + i * 1000001),
        Decimal.fromUnscaledLong(i * 101, 10, 2),
        i % 13 == 0 ? null : new GenericArray(list),
        new GenericMap(map),
        GenericRow.of(i, BinaryString.fromString("b" + i % 2)));
  }
}
