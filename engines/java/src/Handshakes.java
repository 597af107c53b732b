import java.util.List;
import javax.net.ssl.SSLContext;

/** Measures connections from start to end. */
final class Handshakes implements Worker {
    static void measure(Scenario scenario, Report report) throws Exception {
        Ends ends = new Ends(scenario);
        SSLContext server = ends.server();
        List<Handshakes> workers = new Load(scenario).run(report, () -> new Handshakes(scenario, ends, server));
        Tally outcomes = new Tally();
        long verifyNs = 0;
        long verified = 0;
        for (Handshakes worker : workers) {
            outcomes.add(worker.outcomes);
            verifyNs += worker.verification.ns;
            verified += worker.verification.count;
        }
        outcomes.report(report);
        if (verified > 0) {
            report.line("type", "span", "side", "client", "name", "verify", "ns", verifyNs, "count", verified);
        }
    }

    private final Scenario scenario;
    private final Ends ends;
    private final Pair pair;
    private final Verification verification = new Verification();
    private final Samples clientNs = new Samples();
    private final Samples serverNs = new Samples();
    private final Tally outcomes = new Tally();
    private SSLContext server;
    private SSLContext client;

    /** Creates the session for the first handshake to resume, if needed. */
    private Handshakes(Scenario scenario, Ends ends, SSLContext server) throws Exception {
        this.scenario = scenario;
        this.ends = ends;
        this.server = server;
        pair = new Pair(ends);
        client = ends.client(verification);
        if (scenario.resumes()) {
            pair.connect(client, server);
        }
    }

    @Override
    public int unit() throws Exception {
        if (scenario.cold()) {
            client = ends.client(verification);
            server = ends.server();
        }
        if (scenario.resumes() && !client.getClientSessionContext().getIds().hasMoreElements()) {
            throw Fault.stack("the client's store is empty: the server has sent nothing to resume");
        }
        long verified = verification.count;
        Pair.Connection connection = pair.connect(client, server);
        clientNs.add(pair.clientNs);
        serverNs.add(pair.serverNs);
        outcomes.add(connection, verification.count > verified);
        return 1;
    }

    @Override
    public void forget() {
        clientNs.clear();
        serverNs.clear();
        outcomes.clear();
        verification.ns = 0;
        verification.count = 0;
    }

    @Override
    public void report(int thread, Report report) {
        report.samples(thread, "client", clientNs);
        report.samples(thread, "server", serverNs);
    }
}
