import java.io.ByteArrayInputStream;
import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Java's HttpClient over HTTP/2. Usage: Client BASE CA; sends many requests at once and prints `ok`. */
public final class Client {
    private static String base;
    private static HttpClient client;

    public static void main(String[] args) throws Exception {
        base = args[0];
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(trusting(args[1])).build();
        check(send("/204", "GET", BodyPublishers.noBody()).join(), 204, 0);
        check(send("/bytes/1000", "HEAD", BodyPublishers.noBody()).join(), 200, 0);
        var downloads = IntStream.range(0, 60).map(number -> number * 5000).mapToObj(size ->
            send("/bytes/" + size, "GET", BodyPublishers.noBody()).thenAccept(got -> check(got, 200, size)));
        all(downloads.toArray(CompletableFuture[]::new));
        // Of known and unknown length.
        var uploads = IntStream.range(0, 60).map(number -> number * 5000).mapToObj(size -> {
            var body = patterned(size);
            var upload = size / 5000 % 2 == 0
                ? BodyPublishers.ofByteArray(body)
                : BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body));
            return send("/echo", "POST", upload).thenAccept(got -> check(got, 200, size));
        });
        all(uploads.toArray(CompletableFuture[]::new));
        check(send("/bytes/5000000", "GET", BodyPublishers.noBody()).join(), 200, 5_000_000);
        System.out.println("ok");
        System.exit(0);
    }

    private static void all(CompletableFuture<?>[] responses) {
        CompletableFuture.allOf(responses).join();
    }

    private static CompletableFuture<HttpResponse<byte[]>> send(String path, String method, BodyPublisher body) {
        var request = HttpRequest.newBuilder(URI.create(base + path)).method(method, body).build();
        return client.sendAsync(request, BodyHandlers.ofByteArray());
    }

    private static void check(HttpResponse<byte[]> got, int status, int size) {
        var isRight = got.version() == HttpClient.Version.HTTP_2 && got.statusCode() == status;
        if (!isRight || !Arrays.equals(got.body(), patterned(size))) {
            throw new IllegalStateException(got + " " + got.version() + ", " + got.body().length + " bytes of " + size);
        }
    }

    /** Byte i is i mod 251: a shift by any power of two shows. */
    private static byte[] patterned(int length) {
        var bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (i % 251);
        }
        return bytes;
    }

    private static SSLContext trusting(String file) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var pem = new FileInputStream(file)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }
}
