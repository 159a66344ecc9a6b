package interop;

import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.rest.RESTCatalogServer;
import org.apache.paimon.rest.RESTToken;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;
import org.apache.paimon.catalog.Identifier;

/**
 * Serves a warehouse until standard input ends. Arguments: directory, name of the warehouse, token. The first line of output is the address.
 *
 * <p>A line of input is a command: {@code lose} has the next commit answered by an error although it stands; {@code lend db.t key value}
 * lends the table a token; {@code forbid db.t} refuses it to everybody. Each is answered by a line.
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
                default:
                    throw new IllegalArgumentException(line);
            }
            System.out.println("done");
        }
        server.shutdown();
        System.exit(0);
    }
}
