import java.nio.ByteBuffer;
import java.util.Arrays;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;

/** Measures moving bytes from the server to the client over an established connection. */
final class Transfers implements Worker {
    /**
     * Number of distinct texts: each unit starts a byte later in the pattern than the previous one, so
     * that leftovers of an earlier unit cannot be mistaken for this one's. Also the pattern's period, a prime.
     */
    private static final int SHIFTS = 251;
    /** Maximum overhead of a record, and the free space that unwrap requires. */
    private static final int SLACK = 1 << 15;

    static void measure(Scenario scenario, Report report) throws Exception {
        Ends ends = new Ends(scenario);
        SSLContext server = ends.server();
        Tally outcomes = new Tally();
        for (Transfers worker : new Load(scenario).run(report, () -> new Transfers(scenario, ends, server))) {
            outcomes.add(worker.connection, worker.verified);
        }
        outcomes.report(report);
    }

    private final Scenario scenario;
    private final Pair.Connection connection;
    private final boolean verified;
    private final SSLEngine client;
    private final SSLEngine server;
    private final byte[] pattern;
    private final byte[] read;
    private final ByteBuffer wire;
    private final Samples clientNs = new Samples();
    private final Samples serverNs = new Samples();
    private int units;
    private long bytesWritten;
    private long bytesRead;

    private Transfers(Scenario scenario, Ends ends, SSLContext serverContext) throws Exception {
        this.scenario = scenario;
        Verification verification = new Verification();
        connection = new Pair(ends).connect(ends.client(verification), serverContext);
        verified = verification.count > 0;
        client = connection.client();
        server = connection.server();
        SSLParameters parameters = server.getSSLParameters();
        parameters.setMaximumPacketSize(scenario.record() + overhead(scenario));
        server.setSSLParameters(parameters);
        pattern = new byte[scenario.bytes() + SHIFTS];
        for (int i = 0; i < pattern.length; i++) {
            pattern[i] = (byte) (i % SHIFTS);
        }
        read = new byte[scenario.bytes() + SLACK];
        long records = scenario.bytes() / Math.min(scenario.record(), scenario.write()) + 1L;
        long room = scenario.bytes() + records * overhead(scenario) + SLACK;
        if (room > Integer.MAX_VALUE) {
            throw Fault.scenario("bytes %d: with this record and write more than a buffer holds", scenario.bytes());
        }
        wire = ByteBuffer.allocate((int) room);
        // Allocate the buffer's pages before the measurement.
        Arrays.fill(wire.array(), (byte) 1);
    }

    /** A record's header, its explicit nonce or type, and its tag. */
    private static int overhead(Scenario scenario) {
        int inside = scenario.version().equals("1.3") ? 1 : scenario.suite().startsWith("aes") ? 8 : 0;
        return 5 + inside + 16;
    }

    @Override
    public int unit() throws Exception {
        int begin = units++ % SHIFTS;
        wire.clear();
        long began = System.nanoTime();
        write(begin);
        serverNs.add(System.nanoTime() - began);
        wire.flip();
        ByteBuffer into = ByteBuffer.wrap(read);
        began = System.nanoTime();
        while (wire.hasRemaining()) {
            Pair.good(client.unwrap(wire, into));
        }
        clientNs.add(System.nanoTime() - began);
        if (into.position() != scenario.bytes()
                || !Arrays.equals(read, 0, scenario.bytes(), pattern, begin, begin + scenario.bytes())) {
            throw Fault.stack("what was read is not what was written");
        }
        bytesWritten += scenario.bytes();
        bytesRead += into.position();
        return 1;
    }

    /** Writes the bytes in pieces; the library creates one record per call. */
    private void write(int begin) throws Exception {
        for (int done = 0; done < scenario.bytes();) {
            int size = Math.min(scenario.write(), scenario.bytes() - done);
            ByteBuffer piece = ByteBuffer.wrap(pattern, begin + done, size);
            while (piece.hasRemaining()) {
                Pair.good(server.wrap(piece, wire));
            }
            done += size;
        }
    }

    @Override
    public void forget() {
        clientNs.clear();
        serverNs.clear();
        bytesWritten = 0;
        bytesRead = 0;
    }

    @Override
    public void report(int thread, Report report) {
        report.samples(thread, "client", clientNs);
        report.samples(thread, "server", serverNs);
        report.line("type", "moved", "thread", thread, "side", "server", "bytes", bytesWritten);
        report.line("type", "moved", "thread", thread, "side", "client", "bytes", bytesRead);
    }
}
