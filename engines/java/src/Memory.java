import java.io.IOException;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLContext;

/** Measures the memory of open sessions. */
final class Memory {
    /** Enough to fill the young generation, 64 MiB: a handshake leaves about 200 KiB there. */
    private static final int BEFORE = 1000;

    static void measure(Scenario scenario, Report report) throws Exception {
        Ends ends = new Ends(scenario);
        SSLContext server = ends.server();
        Verification verification = new Verification();
        SSLContext client = ends.client(verification);
        Pair pair = new Pair(ends);
        // Load classes, compile code and grow the heap before the first session.
        for (int i = 0; i < BEFORE; i++) {
            pair.connect(client, server);
        }
        long before = residentKib();
        List<Pair.Connection> connections = new ArrayList<>();
        Tally outcomes = new Tally();
        for (int i = 0; i < scenario.sessions() / 2; i++) {
            long verified = verification.count;
            Pair.Connection connection = pair.connect(client, server);
            outcomes.add(connection, verification.count > verified);
            connections.add(connection);
        }
        long after = residentKib();
        Reference.reachabilityFence(connections);
        outcomes.report(report);
        report.line("type", "memory", "sessions", scenario.sessions(), "before_kib", before, "after_kib", after);
    }

    /** After a garbage collection. */
    private static long residentKib() throws IOException {
        System.gc();
        return Load.status("self", "VmRSS:");
    }

    private Memory() { }
}
