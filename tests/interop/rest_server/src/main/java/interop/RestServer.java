package interop;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.options.Options;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.RESTToken;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.view.View;
import org.apache.paimon.view.ViewImpl;

/**
 * Serves a warehouse until standard input ends. Arguments: directory, name of the warehouse, token. The first line of output is the address.
 *
 * <p>A line of input is a command: {@code lose} has the next commit answered by an error although it stands; {@code lend db.t key value}
 * lends the table a token; {@code forbid db.t} refuses it to everybody. {@code view db.v} shows a view as Paimon's client of REST catalogs
 * reads it; {@code views db} lists them; {@code make db.v query} makes one with the column {@code id}. Each is answered by a line.
 */
public final class RestServer {

    private RestServer() {}

    public static void main(String[] arguments) throws Exception {
        Map<String, String> defaults = new HashMap<>();
        defaults.put("prefix", "paimon");
        defaults.put("warehouse", arguments[1]);
        RESTCatalogServer server =
                new RESTCatalogServer(
                        arguments[0],
                        new BearTokenAuthProvider(arguments[2]),
                        new ConfigResponse(defaults, new HashMap<>()),
                        arguments[1]);
        server.start();
        System.out.println(server.getUrl());
        Options options = new Options();
        options.set("metastore", "rest");
        options.set("uri", server.getUrl());
        options.set("warehouse", arguments[1]);
        options.set("token.provider", "bear");
        options.set("token", arguments[2]);
        Catalog client = CatalogFactory.createCatalog(CatalogContext.create(options));
        java.io.BufferedReader commands = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "lose":
                    RESTCatalogServer.commitSuccessThrowException = true;
                    break;
                case "forbid":
                    server.addNoPermissionTable(Identifier.fromString(words[1]));
                    break;
                case "lend":
                    Map<String, String> token = new HashMap<>();
                    token.put(words[2], words[3]);
                    server.setDataToken(
                            Identifier.fromString(words[1]), new RESTToken(token, System.currentTimeMillis() + 7_200_000));
                    break;
                case "view":
                    View view = client.getView(Identifier.fromString(words[1]));
                    System.out.println(
                            String.join(
                                    "|",
                                    view.rowType().toString(),
                                    view.query(),
                                    view.query("spark"),
                                    view.comment().orElse(""),
                                    view.options().toString()));
                    continue;
                case "views":
                    System.out.println(client.listViews(words[1]));
                    continue;
                case "make":
                    Identifier name = Identifier.fromString(words[1]);
                    String query = line.substring(line.indexOf(words[1]) + words[1].length() + 1);
                    List<DataField> fields = Collections.singletonList(new DataField(0, "id", DataTypes.BIGINT()));
                    Map<String, String> dialects = Collections.singletonMap("spark", query);
                    client.createView(
                            name, new ViewImpl(name, fields, "SELECT 0 AS id", dialects, "by Java", new HashMap<>()), false);
                    break;
                default:
                    throw new IllegalArgumentException(line);
            }
            System.out.println("done");
        }
        server.shutdown();
        System.exit(0);
    }
}
