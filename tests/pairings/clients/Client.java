import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A client on Java's HttpClient. Usage: Client BASE CA SERVICE LENGTH; prints the transcript. */
public final class Client {
    private static String base;
    private static long length;
    private static HttpClient client;

    public static void main(String[] args) throws Exception {
        base = args[0];
        length = Long.parseLong(args[3]);
        // The gateway speaks HTTP/1.1; from version 2 the client would ask for an upgrade to h2c.
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).sslContext(trusting(args[1])).build();
        switch (args[2]) {
            case "site" -> site();
            case "api" -> api();
            case "chunked" -> chunked();
            case "continued" -> continued();
            case "websocket" -> websocket();
            case "events" -> events();
            case "upload" -> upload();
            case "download" -> download();
            case "slow" -> slow();
            default -> throw new IllegalArgumentException(args[2]);
        }
        System.out.flush();
        System.exit(0);
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

    /** Byte i is i mod 251: a shift by any power of two shows. */
    private static final class Patterned extends InputStream {
        private final long end;
        private long at;

        Patterned(long end) {
            this.end = end;
        }

        @Override
        public int read() {
            return at == end ? -1 : (int) (at++ % 251);
        }

        @Override
        public int read(byte[] buffer, int offset, int size) {
            if (at == end) {
                return -1;
            }
            int count = (int) Math.min(size, end - at);
            int value = (int) (at % 251);
            for (int i = 0; i < count; i++) {
                buffer[offset + i] = (byte) value;
                value = value == 250 ? 0 : value + 1;
            }
            at += count;
            return count;
        }
    }

    private static byte[] patterned(int length) throws Exception {
        return new Patterned(length).readAllBytes();
    }

    private static String digest(InputStream body) throws Exception {
        var sum = MessageDigest.getInstance("SHA-256");
        var block = new byte[65536];
        long bytes = 0;
        for (int read; (read = body.read(block)) >= 0; bytes += read) {
            sum.update(block, 0, read);
        }
        return bytes + " " + HexFormat.of().formatHex(sum.digest());
    }

    private static String digest(byte[] bytes) throws Exception {
        return digest(new ByteArrayInputStream(bytes));
    }

    private static HttpRequest.Builder request(String method, String path, BodyPublisher body) {
        return HttpRequest.newBuilder(URI.create(base + path)).method(method, body);
    }

    private static HttpResponse<byte[]> ask(HttpRequest.Builder request) throws Exception {
        return client.send(request.build(), BodyHandlers.ofByteArray());
    }

    private static HttpResponse<byte[]> get(String path, String... fields) throws Exception {
        var request = request("GET", path, BodyPublishers.noBody());
        return ask(fields.length == 0 ? request : request.headers(fields));
    }

    private static String field(HttpResponse<?> response, String name) {
        return response.headers().firstValue(name).orElse("");
    }

    private static String text(HttpResponse<byte[]> response) {
        return new String(response.body(), StandardCharsets.UTF_8);
    }

    private static void line(Object... words) {
        var line = new StringBuilder();
        for (var word : words) {
            line.append(line.isEmpty() ? "" : " ").append(word);
        }
        byte[] bytes = line.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        System.out.write(bytes, 0, bytes.length);
    }

    private static void site() throws Exception {
        for (var path : new String[] {"/", "/style.css", "/picture.png"}) {
            var response = get(path);
            line("GET", path, response.statusCode(), field(response, "Content-Type"), digest(response.body()));
        }
        var picture = get("/picture.png");
        for (var pair : new String[][] {{"etag", "If-None-Match"}, {"last-modified", "If-Modified-Since"}}) {
            var response = get("/picture.png", pair[1], field(picture, pair[0]));
            line(pair[0], response.statusCode(), response.body().length);
        }
        var part = get("/picture.png", "Range", "bytes=10-19");
        line("range", part.statusCode(), field(part, "Content-Range"), digest(part.body()));
        var head = ask(request("HEAD", "/picture.png", BodyPublishers.noBody()));
        line("HEAD", head.statusCode(), field(head, "Content-Length"), head.body().length);
        line("missing", get("/missing").statusCode());
    }

    private static void api() throws Exception {
        for (var step : new String[][] {
            {"POST", "/api/items", "{\"name\":\"Zo\u00eb\"}"},
            {"GET", "/api/items/1", null},
            {"PUT", "/api/items/1", "{\"name\":\"Ada\"}"},
            {"DELETE", "/api/items/1", null},
            {"GET", "/api/items/1", null},
            {"POST", "/api/items", "{\"name\":"},
        }) {
            var body = step[2] == null ? BodyPublishers.noBody() : BodyPublishers.ofString(step[2]);
            var response = ask(request(step[0], step[1], body).header("Content-Type", "application/json"));
            var words = step[0] + " " + response.statusCode() + " " + field(response, "Location");
            line((words.strip() + " " + text(response)).strip());
        }
        var zipped = get("/api/gzip", "Accept-Encoding", "gzip");
        var plain = new GZIPInputStream(new ByteArrayInputStream(zipped.body()));
        line("gzip", zipped.statusCode(), field(zipped, "Content-Encoding"), digest(plain));
        echo(BodyPublishers.ofByteArray(patterned(300000)));
    }

    private static void chunked() throws Exception {
        echo(BodyPublishers.ofInputStream(() -> new Patterned(300000)));
    }

    private static void echo(BodyPublisher body) throws Exception {
        var echo = ask(request("POST", "/api/echo", body));
        line("echo", echo.statusCode(), field(echo, "X-Framing"), digest(echo.body()));
    }

    private static void continued() throws Exception {
        var body = BodyPublishers.ofByteArray(patterned(300000));
        var response = ask(request("PUT", "/api/continued", body).expectContinue(true));
        line("continued", response.statusCode(), text(response));
    }

    /** Whole messages, as lines of the transcript. */
    private static final class Listener implements WebSocket.Listener {
        final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        private final StringBuilder text = new StringBuilder();
        private final ByteArrayOutputStream binary = new ByteArrayOutputStream();

        @Override
        public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
            text.append(data);
            if (last) {
                lines.add("text " + text);
                text.setLength(0);
            }
            socket.request(1);
            return null;
        }

        @Override
        public CompletionStage<?> onBinary(WebSocket socket, ByteBuffer data, boolean last) {
            var bytes = new byte[data.remaining()];
            data.get(bytes);
            binary.writeBytes(bytes);
            if (last) {
                try {
                    lines.add("binary " + digest(binary.toByteArray()));
                } catch (Exception error) {
                    lines.add(error.toString());
                }
                binary.reset();
            }
            socket.request(1);
            return null;
        }

        @Override
        public CompletionStage<?> onClose(WebSocket socket, int code, String reason) {
            lines.add("close " + code);
            return null;
        }

        @Override
        public void onError(WebSocket socket, Throwable error) {
            lines.add(error.toString());
        }
    }

    private static void websocket() throws Exception {
        var listener = new Listener();
        var place = URI.create(base.replaceFirst("http", "ws") + "/websocket");
        var socket = client.newWebSocketBuilder().subprotocols("echo").buildAsync(place, listener).join();
        line("open", socket.getSubprotocol());
        for (var said : new String[] {"Zo\u00eb \u20ac", ""}) {
            socket.sendText(said, true).join();
            line(listener.lines.take());
        }
        for (int size : new int[] {5, 70000, 1000000}) {
            socket.sendBinary(ByteBuffer.wrap(patterned(size)), true).join();
            line(listener.lines.take());
        }
        socket.sendClose(1000, "").join();
        line(listener.lines.poll(20, TimeUnit.SECONDS));
    }

    private static void events() throws Exception {
        var path = "/events/" + new Random().nextLong();
        int number = 0;
        var stream = client.send(request("GET", path, BodyPublishers.noBody()).build(), BodyHandlers.ofLines());
        for (var lines = stream.body().iterator(); lines.hasNext(); ) {
            var line = lines.next();
            if (line.startsWith("data: ")) {
                number++;
                var confirmed = ask(request("POST", path + "/" + number, BodyPublishers.noBody()));
                line(line.substring(6), confirmed.statusCode());
            }
        }
    }

    private static void upload() throws Exception {
        var stream = BodyPublishers.ofInputStream(() -> new Patterned(length));
        var response = ask(request("PUT", "/bulk", BodyPublishers.fromPublisher(stream, length)));
        var answer = Pattern.compile("\\{\"bytes\":(\\d+),\"sha256\":\"(\\w+)\"}").matcher(text(response));
        line("upload", answer.matches() ? answer.group(1) + " " + answer.group(2) : text(response));
    }

    private static void download() throws Exception {
        var request = request("GET", "/bulk/" + length, BodyPublishers.noBody());
        line("download", digest(client.send(request.build(), BodyHandlers.ofInputStream()).body()));
    }

    private static void slow() throws Exception {
        for (var name : new String[] {"late", "trickle", "never"}) {
            var response = get("/slow/" + name);
            line(name, response.statusCode(), text(response).strip());
        }
    }
}
