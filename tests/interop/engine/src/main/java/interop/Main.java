package interop;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** Answers one JSON request a line on standard input with one JSON line on standard output, until the input ends. */
public final class Main {
    private static final int TRACE_LINES = 12;

    private Main() {}

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever libraries print is no answer
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = requests.readLine()) != null; ) {
            answers.println(Json.text(answer(line)));
            answers.flush();
        }
        System.exit(0); // compaction threads of a failed write must not hold the process
    }

    private static ObjectNode answer(String line) {
        ObjectNode answer = Json.object();
        try {
            answer.set("ok", Verbs.run(new Request(Json.parse(line))));
        } catch (Throwable thrown) {
            answer.set("error", described(thrown));
        }
        return answer;
    }

    private static JsonNode described(Throwable thrown) {
        Throwable root = thrown;
        while (root.getCause() != null && root.getCause() != root) {
            root = root.getCause();
        }
        ObjectNode error = Json.object();
        error.put("type", thrown.getClass().getSimpleName());
        error.put("message", String.valueOf(thrown.getMessage()));
        error.put("cause", root.getClass().getSimpleName() + ": " + root.getMessage());
        ArrayNode trace = error.putArray("trace");
        StackTraceElement[] frames = root.getStackTrace();
        for (int i = 0; i < Math.min(TRACE_LINES, frames.length); i++) {
            trace.add(frames[i].toString());
        }
        return error;
    }
}
