import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import javax.net.ssl.SSLEngine;

/** Counts the outcomes of connections per side. */
final class Tally {
    /** The outcome on one side; group and signature are null if unknown. */
    private record Outcome(String side, String version, String kind, String suite, String group, String signature) { }

    private final Map<Outcome, Integer> outcomes = new TreeMap<>(Comparator.comparing(Outcome::toString));

    /** `verified`: whether the client has verified a chain. The library does not expose what the server did. */
    void add(Pair.Connection connection, boolean verified) {
        Wire wire = connection.wire();
        String kind = wire.kind();
        add("client", connection.client(), wire, !verified ? "resumed" : kind.equals("resumed") ? "full" : kind);
        add("server", connection.server(), wire, kind);
    }

    void add(Tally other) {
        other.outcomes.forEach((outcome, count) -> outcomes.merge(outcome, count, Integer::sum));
    }

    void clear() {
        outcomes.clear();
    }

    void report(Report report) {
        outcomes.forEach((is, count) -> report.line("type", "negotiated", "side", is.side, "version", is.version,
                "kind", is.kind, "suite", is.suite, "group", is.group, "signature", is.signature, "count", count));
    }

    private void add(String side, SSLEngine engine, Wire wire, String kind) {
        var session = engine.getSession();
        outcomes.merge(new Outcome(side, session.getProtocol().replace("TLSv", ""), kind,
                Ends.suiteName(session.getCipherSuite()), wire.group, wire.signature), 1, Integer::sum);
    }
}
