package weir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.wso2.transport.http.netty.contract.HttpClientConnector;
import org.wso2.transport.http.netty.contract.HttpWsConnectorFactory;
import org.wso2.transport.http.netty.contract.ServerConnector;
import org.wso2.transport.http.netty.contract.ServerConnectorFuture;
import org.wso2.transport.http.netty.contract.config.ChunkConfig;
import org.wso2.transport.http.netty.contract.config.ForwardedExtensionConfig;
import org.wso2.transport.http.netty.contract.config.KeepAliveConfig;
import org.wso2.transport.http.netty.contract.config.ListenerConfiguration;
import org.wso2.transport.http.netty.contract.config.Parameter;
import org.wso2.transport.http.netty.contract.config.SenderConfiguration;
import org.wso2.transport.http.netty.contract.config.ServerBootstrapConfiguration;
import org.wso2.transport.http.netty.contract.config.SslConfiguration;
import org.wso2.transport.http.netty.contractimpl.DefaultHttpWsConnectorFactory;

/**
 * A pass-through on WSO2's HTTP transport, the ancestor of Ballerina's.
 *
 * <p>{@code --version} tells what it was built of; {@code --check} with all flags builds both sides, TLS contexts
 * included, and opens no port; else it serves until it is ended by a signal.
 */
public final class PassThrough {
    /** As long as the other targets keep a connection: longer than a run. In milliseconds. */
    private static final int IDLE_MS = 3_600_000;

    private PassThrough() {}

    public static void main(String[] arguments) throws Exception {
        List<String> flags = Arrays.asList(arguments);
        if (flags.equals(List.of("--version"))) {
            System.out.print(version());
            return;
        }
        boolean check = !flags.isEmpty() && flags.get(0).equals("--check");
        try {
            run(new Settings(check ? Arrays.copyOfRange(arguments, 1, arguments.length) : arguments), check);
        } catch (IllegalArgumentException fault) {
            System.err.println(fault.getMessage());
            System.exit(2);
        }
    }

    private static void run(Settings settings, boolean check) throws Exception {
        boolean clientSideTls = settings.tls("client-side");
        // The group of both sides; the JDK has it for the whole process, and reads it once.
        System.setProperty("jdk.tls.namedGroups", settings.group());

        // One event loop per core given. An upstream connection moves to the loop of the client that it serves, so the
        // third group, of upstream loops, only ever makes connections.
        HttpWsConnectorFactory factory = new DefaultHttpWsConnectorFactory(1, settings.number("workers"), 1);
        HttpClientConnector origin = Release.client(factory, upstream(settings));
        // The default of 100 would drop clients that connect at once.
        Map<String, Object> socket = Map.of("server.bootstrap.socket.backlog", 4096);
        ServerConnector server =
                factory.createServerConnector(new ServerBootstrapConfiguration(socket), listener(settings));
        if (check) {
            System.exit(0);
        }
        ServerConnectorFuture started = server.start();
        started.setHttpConnectorListener(new Forward(origin, settings.number("upstream-port"), clientSideTls));
        started.sync();
    }

    private static ListenerConfiguration listener(Settings settings) {
        ListenerConfiguration listener = new ListenerConfiguration();
        listener.setHost("127.0.0.1");
        listener.setPort(settings.number("listen-port"));
        listener.setVersion("1.1");
        listener.setSocketIdleTimeout(IDLE_MS);
        // An answer's length stays a length, and chunks stay chunks.
        listener.setChunkConfig(ChunkConfig.AUTO);
        listener.setKeepAliveConfig(KeepAliveConfig.AUTO);
        if (settings.tls("client-side")) {
            tls(listener, settings);
            listener.setServerCertificates(settings.text("cert"));
            listener.setServerKeyFile(settings.text("key"));
        }
        return listener;
    }

    private static SenderConfiguration upstream(Settings settings) {
        SenderConfiguration upstream = new SenderConfiguration();
        upstream.setHttpVersion("1.1");
        upstream.setSocketIdleTimeout(IDLE_MS);
        upstream.setChunkingConfig(ChunkConfig.AUTO);
        upstream.setKeepAliveConfig(KeepAliveConfig.ALWAYS);
        // The headers are Forward's; 6.0 would turn them into one of its own.
        upstream.setForwardedExtensionConfig(ForwardedExtensionConfig.DISABLE);
        upstream.getPoolConfiguration().setMaxIdlePerPool(settings.number("pool"));
        if (settings.tls("upstream-side")) {
            tls(upstream, settings);
            upstream.setClientTrustCertificates(settings.text("ca"));
            // The certificate's name is verified, as Weir does by default.
            upstream.setHostNameVerificationEnabled(true);
        }
        return upstream;
    }

    /** What both sides pin. The JDK's TLS does the work: it is what Ballerina uses for HTTP/1.1. */
    private static void tls(SslConfiguration side, Settings settings) {
        side.setScheme("https");
        side.setSSLProtocol("TLS");
        side.setParameters(List.of(new Parameter("sslEnabledProtocols", "TLSv" + settings.text("tls-version")),
                new Parameter("ciphers", settings.suite())));
    }

    private static String version() throws IOException {
        try (InputStream text = PassThrough.class.getResourceAsStream("/version.txt")) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
