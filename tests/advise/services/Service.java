// An HTTPS service with one switchable fault. Usage: java Service.java FAULT CERT KEY; prints its port.
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.concurrent.Executors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;

public class Service {
    public static void main(String[] args) throws Exception {
        // Otherwise head and body are two writes with Nagle's algorithm on: the server's default.
        System.setProperty("sun.net.httpserver.nodelay", String.valueOf(!args[0].equals("nagle")));
        System.setProperty("sun.net.httpserver.idleInterval", "75");
        var server = HttpsServer.create(new InetSocketAddress("127.0.0.1", 0), 128);
        server.setHttpsConfigurator(new HttpsConfigurator(context(Path.of(args[1]), Path.of(args[2]))));
        server.setExecutor(Executors.newFixedThreadPool(16));
        byte[] body = "hello".getBytes();
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }

    static SSLContext context(Path chainFile, Path keyFile) throws Exception {
        Certificate[] chain;
        try (var in = Files.newInputStream(chainFile)) {
            chain = CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
        }
        String encoded = Files.readString(keyFile).replaceAll("-----[A-Z ]+-----|\\s", "");
        var spec = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(encoded));
        var key = KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm()).generatePrivate(spec);
        char[] password = "unused".toCharArray();
        var store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("own", key, password, chain);
        var keys = KeyManagerFactory.getInstance("PKIX");
        keys.init(store, password);
        var context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }
}
