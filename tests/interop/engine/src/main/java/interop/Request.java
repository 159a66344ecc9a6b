package interop;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;

/** One request: what its fields say, and the table that it names, opened anew. */
final class Request {
    private static final FileIO LOCAL = LocalFileIO.create();
    private static final IOManager SPILL = IOManager.create(System.getProperty("java.io.tmpdir"));

    private final JsonNode fields;

    Request(JsonNode fields) {
        this.fields = fields;
    }

    static IOManager spill() {
        return SPILL;
    }

    boolean has(String name) {
        return fields.hasNonNull(name);
    }

    JsonNode node(String name) {
        return has(name) ? fields.get(name) : null;
    }

    String text(String name) {
        if (!has(name)) {
            throw new IllegalArgumentException("the request needs '" + name + "'");
        }
        return fields.get(name).asText();
    }

    String text(String name, String otherwise) {
        return has(name) ? text(name) : otherwise;
    }

    long number(String name, long otherwise) {
        return has(name) ? fields.get(name).asLong() : otherwise;
    }

    boolean flag(String name) {
        return has(name) && fields.get(name).asBoolean();
    }

    List<String> words(String name) {
        return Json.words(node(name));
    }

    Map<String, String> strings(String name) {
        return Json.strings(node(name));
    }

    private boolean isRemote() {
        return text("table").contains("://");
    }

    /** Local files, or the store of the path by the options in {@code storage}. */
    private FileIO io() {
        try {
            return isRemote() ? FileIO.get(path(), CatalogContext.create(Options.fromMap(strings("storage")))) : LOCAL;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Path path() {
        if (isRemote()) {
            return new Path(text("table"));
        }
        return new Path(java.nio.file.Paths.get(text("table")).toAbsolutePath().normalize().toString());
    }

    SchemaManager schemas() {
        return has("branch") ? new SchemaManager(io(), path(), text("branch")) : new SchemaManager(io(), path());
    }

    /** The table or its branch, without the options of the request. */
    FileStoreTable plainTable() {
        FileStoreTable table = FileStoreTableFactory.create(io(), path());
        return has("branch") ? table.switchToBranch(text("branch")) : table;
    }

    FileStoreTable table() {
        return plainTable().copy(strings("options"));
    }
}
