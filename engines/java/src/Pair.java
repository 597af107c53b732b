import java.nio.ByteBuffer;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;

/** Two sides, reconnected repeatedly with the same buffers. */
final class Pair {
    private static final int ROOM = 1 << 17;
    private static final int RECORD = 1 << 15;

    /** The state after a handshake. */
    record Connection(SSLEngine client, SSLEngine server, Wire wire) { }

    /** Each side's time in the last connection. */
    long clientNs;
    long serverNs;

    private final Ends ends;
    private final ByteBuffer toClient = ByteBuffer.allocate(ROOM).flip();
    private final ByteBuffer toServer = ByteBuffer.allocate(ROOM).flip();
    private final ByteBuffer plain = ByteBuffer.allocate(RECORD);
    private final ByteBuffer none = ByteBuffer.allocate(0);

    Pair(Ends ends) {
        this.ends = ends;
    }

    /** Opens a connection and runs it until neither side has anything left to send. */
    Connection connect(SSLContext clientContext, SSLContext serverContext) throws Exception {
        toClient.clear().flip();
        toServer.clear().flip();
        Wire wire = new Wire();
        long began = System.nanoTime();
        SSLEngine client = ends.clientSession(clientContext);
        turn(client, toClient, toServer);
        clientNs = System.nanoTime() - began;
        began = System.nanoTime();
        SSLEngine server = ends.serverSession(serverContext);
        turn(server, toServer, toClient);
        serverNs = System.nanoTime() - began;
        while (toClient.hasRemaining() || toServer.hasRemaining()) {
            wire.read(toClient);
            began = System.nanoTime();
            turn(client, toClient, toServer);
            clientNs += System.nanoTime() - began;
            began = System.nanoTime();
            turn(server, toServer, toClient);
            serverNs += System.nanoTime() - began;
        }
        if (unfinished(client) || unfinished(server)) {
            throw Fault.stack("both ends wait: the client with %s, the server with %s", client.getHandshakeStatus(),
                    server.getHandshakeStatus());
        }
        return new Connection(client, server, wire);
    }

    private static boolean unfinished(SSLEngine end) {
        return end.getHandshakeStatus() != HandshakeStatus.NOT_HANDSHAKING;
    }

    /** Lets a side process its input and produce its output. Runs delegated tasks itself. */
    private void turn(SSLEngine end, ByteBuffer in, ByteBuffer out) throws SSLException, Fault {
        out.compact();
        while (true) {
            switch (end.getHandshakeStatus()) {
                case NEED_TASK -> {
                    for (Runnable task; (task = end.getDelegatedTask()) != null;) {
                        task.run();
                    }
                }
                case NEED_WRAP -> good(end.wrap(none, out));
                default -> {
                    if (!in.hasRemaining()) {
                        out.flip();
                        return;
                    }
                    plain.clear();
                    good(end.unwrap(in, plain));
                    if (plain.position() > 0) {
                        throw Fault.stack("unexpected application data in a handshake");
                    }
                }
            }
        }
    }

    /** Fails the run if a step is incomplete. */
    static void good(SSLEngineResult result) throws Fault {
        if (result.getStatus() != SSLEngineResult.Status.OK) {
            throw Fault.stack("a step says %s", result);
        }
    }
}
