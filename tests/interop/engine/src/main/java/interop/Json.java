package interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** JSON trees, made and taken apart. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static JsonNode parse(String text) throws Exception {
        return MAPPER.readTree(text);
    }

    static String text(JsonNode node) {
        try {
            return MAPPER.writeValueAsString(node);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    static ArrayNode array() {
        return MAPPER.createArrayNode();
    }

    static ArrayNode array(Iterable<String> items) {
        ArrayNode out = array();
        items.forEach(out::add);
        return out;
    }

    static Map<String, String> strings(JsonNode node) {
        Map<String, String> out = new LinkedHashMap<>();
        if (node != null) {
            node.fields().forEachRemaining(entry -> out.put(entry.getKey(), entry.getValue().isNull() ? null : entry.getValue().asText()));
        }
        return out;
    }

    static List<String> words(JsonNode node) {
        List<String> out = new ArrayList<>();
        if (node != null) {
            node.forEach(item -> out.add(item.asText()));
        }
        return out;
    }
}
