package interop;

import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** What the engine can be asked. */
final class Verbs {
    private Verbs() {}

    static JsonNode run(Request request) throws Exception {
        String verb = request.text("verb");
        return switch (verb) {
            case "create" -> Tables.create(request);
            case "alter" -> Tables.alter(request);
            case "schema" -> Tables.schema(request);
            case "tag" -> Tables.tag(request);
            case "branch" -> Tables.branch(request);
            case "rollback" -> Tables.rollback(request);
            case "expire" -> Tables.expire(request);
            case "write" -> Writes.write(request);
            case "delete" -> Writes.delete(request);
            case "compact" -> Writes.compact(request);
            case "dump" -> Reads.dump(request);
            case "follow" -> Reads.follow(request);
            case "raw" -> Reads.raw(request);
            case "plan" -> Reads.plan(request);
            case "files" -> Metadata.files(request);
            case "snapshots" -> Metadata.snapshots(request);
            case "cluster" -> Metadata.cluster(request);
            case "indexes" -> Indexes.list(request);
            case "index_eval" -> Indexes.evaluate(request);
            case "system_tables" -> SystemTables.names();
            case "system" -> SystemTables.read(request);
            case "fsck" -> new Check(request.table()).run();
            default -> throw new IllegalArgumentException("no verb '" + verb + "'");
        };
    }
}
