package bench;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;

/** Runs the job in the last argument as benchmarks/contenders/worker.py says: "ready" before the clock starts, "done" behind it, then the result. */
public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream EVENTS = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    private Main() {}

    public static void main(String[] arguments) {
        System.setOut(System.err); // whatever libraries print is no event
        try {
            run(JSON.readValue(arguments[arguments.length - 1], Job.class));
            System.exit(0); // threads of pools must not hold the process
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.err.println(reason(thrown)); // the harness shows the last lines
            System.exit(1);
        }
    }

    private static String reason(Throwable thrown) {
        Throwable root = thrown;
        while (root.getCause() != null && root.getCause() != root) {
            root = root.getCause();
        }
        return root.toString();
    }

    private static void run(Job job) throws Exception {
        try (Workers workers = new Workers(job.threads)) {
            ObjectNode result = event("result").putNull("answer");
            switch (job.op) {
                case "write" -> write(job, workers, result);
                case "compact" -> {
                    FileStoreTable table = Tables.altered(job);
                    time(result, () -> Compactions.full(table, workers));
                }
                case "read" -> {
                    say("ready");
                    Scans.read(Tables.open(job.path), workers, null, null, Answer.Pass.FETCH); // unmeasured, as everybody's first
                    clock(result, () -> Scans.read(Tables.open(job.path), workers, null, null, Answer.Pass.FETCH));
                    result.set("answer", Scans.read(Tables.open(job.path), workers, null, null, Answer.Pass.HASH).toJson(JSON));
                }
                case "lookup", "plan" -> new Queries(job, workers, JSON).run(result);
                default -> throw new IllegalArgumentException("no operation " + job.op);
            }
            ObjectNode versions = result.putObject("versions");
            versions.put("paimon-bundle", "1.4.2").put("java", System.getProperty("java.version"));
            EVENTS.println(JSON.writeValueAsString(result));
        }
    }

    private static void write(Job job, Workers workers, ObjectNode result) throws Exception {
        Input[] inputs = new Input[job.inputs.size()];
        for (int i = 0; i < inputs.length; i++) {
            inputs[i] = Input.load(job.inputs.get(i));
        }
        FileStoreTable table = job.create ? Tables.create(job, inputs[0].type()) : Tables.altered(job);
        System.gc(); // what loading left behind is not the step's
        time(result, () -> {
            for (Input input : inputs) {
                Commits.write(Tables.open(job.path), input, workers);
            }
        });
    }

    private static void time(ObjectNode result, Clock.Work work) throws Exception {
        say("ready");
        clock(result, work);
    }

    private static void clock(ObjectNode result, Clock.Work work) throws Exception {
        Clock clock = Clock.of(work);
        say("done");
        result.putArray("seconds").add(clock.seconds());
        result.putArray("cpu").add(clock.cpu());
    }

    static void say(String name) throws Exception {
        EVENTS.println(JSON.writeValueAsString(event(name)));
    }

    private static ObjectNode event(String name) {
        return JSON.createObjectNode().put("event", name);
    }
}
