package interop;

import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.rest.auth.DLFDefaultSigner;
import org.apache.paimon.rest.auth.DLFOpenApiSigner;
import org.apache.paimon.rest.auth.DLFRequestSigner;
import org.apache.paimon.rest.auth.DLFToken;
import org.apache.paimon.rest.auth.RESTAuthParameter;

/** Prints the headers of a signed request: algorithm, region, host, key, secret, token, seconds, method, path, body, then name=value. */
public final class Dlf {
    public static void main(String[] words) throws Exception {
        DLFRequestSigner signer = words[0].equals("openapi") ? new DLFOpenApiSigner() : new DLFDefaultSigner(words[1]);
        DLFToken token = new DLFToken(words[3], words[4], words[5].isEmpty() ? null : words[5], null);
        Map<String, String> parameters = new HashMap<>();
        for (int at = 10; at < words.length; at++) {
            int equals = words[at].indexOf('=');
            parameters.put(words[at].substring(0, equals), words[at].substring(equals + 1));
        }
        RESTAuthParameter request = new RESTAuthParameter(words[8], parameters, words[7], words[9]);
        Map<String, String> headers =
                signer.signHeaders(words[9], Instant.ofEpochSecond(Long.parseLong(words[6])), token.getSecurityToken(), words[2]);
        headers.put("Authorization", signer.authorization(request, token, words[2], headers));
        new TreeMap<>(headers).forEach((name, value) -> System.out.println(name + ": " + value));
    }
}
