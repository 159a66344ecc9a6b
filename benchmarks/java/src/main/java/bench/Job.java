package bench;

import java.util.List;
import java.util.Map;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.annotation.JsonProperty;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** One step: the Job of worker.py. */
@JsonIgnoreProperties(ignoreUnknown = true)
final class Job {
    public String op;
    public String path;
    public List<String> inputs = List.of();
    public boolean create;

    @JsonProperty("primary_key")
    public List<String> primaryKey = List.of();

    public Map<String, String> options = Map.of();
    public List<Query> queries = List.of();
    public int threads = 2;

    /** Filters are lists of [column, operator, literal] that all hold. */
    @JsonIgnoreProperties(ignoreUnknown = true)
    static final class Query {
        public String name;
        public List<JsonNode> filters = List.of();
        public List<String> columns;
        public boolean count;
        public boolean warm;
    }
}
