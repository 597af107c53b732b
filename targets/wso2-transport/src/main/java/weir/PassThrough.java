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
 * <p>{@code --version} prints the transport's version; {@code --check} with all flags builds both sides, TLS contexts
 * included, and opens no port; otherwise it serves until a signal stops it.
 */
public final class PassThrough {
    /** Idle timeout in milliseconds: longer than a run, as in the other targets. */
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
        // The group of both sides. The JDK reads it once, for the whole process.
        System.setProperty("jdk.tls.namedGroups", settings.group());

        // One event loop per gateway core. An upstream connection moves to the loop of its client, so the third group,
        // the upstream loops, only connects.
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
        // With HTTP/2, clients choose by ALPN.
        listener.setVersion(settings.http2("client-side") ? "2.0" : "1.1");
        listener.setSocketIdleTimeout(IDLE_MS);
        // Keep the response's framing: Content-Length or chunks.
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
        upstream.setHttpVersion(settings.http2("upstream-side") ? "2.0" : "1.1");
        upstream.setSocketIdleTimeout(IDLE_MS);
        upstream.setChunkingConfig(ChunkConfig.AUTO);
        upstream.setKeepAliveConfig(KeepAliveConfig.ALWAYS);
        // Forward adds the headers; 6.0 would replace them with one of its own.
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

    /** Pins the TLS settings of a side. The TLS stack is the JDK's with HTTP/1.1 and BoringSSL with HTTP/2, as in Ballerina. */
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
