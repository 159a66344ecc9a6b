package bench;

import java.time.Duration;
import java.util.List;
import org.apache.paimon.options.MemorySize;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.shade.caffeine2.com.github.benmanes.caffeine.cache.Caffeine;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.utils.SegmentsCache;

/** Lookups and plans. Each opens the table, but warm ones, which share one with the caches that Paimon's catalogs give to tables. */
final class Queries {
    /** A young JVM interprets: every query is asked this often before the clock starts, which the peers in Python need not. */
    private static final int WARM_UPS = 5;

    private static final MemorySize CACHED = MemorySize.ofMebiBytes(128);
    private static final MemorySize LARGEST_CACHED = MemorySize.ofMebiBytes(1);

    private final Job job;
    private final Workers workers;
    private final ObjectMapper json;
    private final FileStoreTable caching;

    Queries(Job job, Workers workers, ObjectMapper json) {
        this.job = job;
        this.workers = workers;
        this.json = json;
        this.caching = Tables.open(job.path);
        caching.setManifestCache(SegmentsCache.create(CACHED, LARGEST_CACHED.getBytes()));
        caching.setSnapshotCache(Caffeine.newBuilder().maximumSize(20).expireAfterAccess(Duration.ofMinutes(10)).build());
    }

    void run(ObjectNode result) throws Exception {
        for (int i = 0; i < WARM_UPS; i++) {
            for (Job.Query query : job.queries) {
                ask(query, query.filters.get(0), Answer.Pass.FETCH);
            }
        }
        ObjectNode found = result.putObject("queries");
        result.putArray("seconds");
        result.putArray("cpu");
        Main.say("ready");
        for (Job.Query query : job.queries) {
            ObjectNode times = found.putObject(query.name);
            ArrayNode seconds = times.putArray("seconds");
            ArrayNode cpu = times.putArray("cpu");
            ArrayNode answers = times.putArray("answers");
            for (JsonNode filter : query.filters) {
                Clock clock = Clock.of(() -> ask(query, filter, Answer.Pass.FETCH));
                seconds.add(clock.seconds());
                cpu.add(clock.cpu());
                answers.add(ask(query, filter, Answer.Pass.HASH).toJson(json));
            }
        }
        Main.say("done");
    }

    private Answer ask(Job.Query query, JsonNode conditions, Answer.Pass pass) throws Exception {
        FileStoreTable table = query.warm ? caching : Tables.open(job.path);
        Predicate filter = Scans.filter(table.rowType(), conditions);
        if (job.op.equals("plan")) {
            return Answer.number(Scans.files(table, filter));
        }
        Answer found = Scans.read(table, workers, filter, query.count ? List.of() : query.columns, pass);
        return query.count ? Answer.number(found.rows) : found;
    }
}
