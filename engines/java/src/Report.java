import java.io.OutputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** Writes JSON objects, one per line. */
final class Report {
    private static final int SAMPLES = 1000;
    private final PrintWriter out;

    Report(OutputStream out) {
        this.out = new PrintWriter(out, false, StandardCharsets.UTF_8);
    }

    /** Alternating keys and values. */
    void line(Object... pairs) {
        StringBuilder text = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            text.append(i == 0 ? "" : ",").append(json(pairs[i])).append(':').append(json(pairs[i + 1]));
        }
        out.print(text.append("}\n"));
    }

    /** One per unit, in order. */
    void samples(int thread, String side, Samples samples) {
        for (int begin = 0; begin < samples.count(); begin += SAMPLES) {
            line("type", "samples", "thread", thread, "side", side,
                    "ns", samples.part(begin, Math.min(begin + SAMPLES, samples.count())));
        }
    }

    /** Whether all writes succeeded. */
    boolean flush() {
        return !out.checkError();
    }

    private static String json(Object value) {
        if (value == null || value instanceof Number) {
            return String.valueOf(value);
        }
        if (value instanceof LongStream numbers) {
            return numbers.mapToObj(Long::toString).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof List<?> values) {
            return values.stream().map(Report::json).collect(Collectors.joining(",", "[", "]"));
        }
        StringBuilder text = new StringBuilder("\"");
        for (char c : value.toString().toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return text.append('"').toString();
    }
}
