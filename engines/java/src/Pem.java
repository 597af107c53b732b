import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.interfaces.ECKey;
import java.security.interfaces.RSAKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the scenario's PEM files. */
final class Pem {
    private static final Pattern KEY = Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");

    static X509Certificate[] certificates(String name, String path) throws Fault {
        try (var in = Files.newInputStream(Path.of(path))) {
            var all = CertificateFactory.getInstance("X.509").generateCertificates(in).stream()
                    .map(X509Certificate.class::cast).toArray(X509Certificate[]::new);
            if (all.length > 0) {
                return all;
            }
        } catch (IOException | GeneralSecurityException | InvalidPathException error) {
            throw Fault.scenario("%s %s: %s: expected a PEM file of certificates", name, path, error);
        }
        throw Fault.scenario("%s %s: it has none: expected a PEM file of certificates", name, path);
    }

    static PrivateKey key(String path) throws Fault {
        var encoded = new PKCS8EncodedKeySpec(keyBytes(path));
        for (String algorithm : List.of("RSA", "EC")) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
            } catch (GeneralSecurityException error) {
                // Try the other kind.
            }
        }
        throw Fault.scenario("key %s: expected a PEM file of a PKCS #8 key of RSA or EC", path);
    }

    /** The key in the file. */
    static byte[] keyBytes(String path) throws Fault {
        try {
            Matcher found = KEY.matcher(Files.readString(Path.of(path)));
            if (found.find()) {
                return Base64.getMimeDecoder().decode(found.group(1));
            }
        } catch (IOException | IllegalArgumentException error) {
            throw Fault.scenario("key %s: %s: expected a PEM file of a PKCS #8 key", path, error);
        }
        throw Fault.scenario("key %s: it has no PRIVATE KEY: expected a PEM file of a PKCS #8 key", path);
    }

    /** The scenario's name. */
    static String kind(Object key) {
        if (key instanceof RSAKey rsa) {
            return "rsa-" + rsa.getModulus().bitLength();
        }
        if (key instanceof ECKey ec) {
            return "ecdsa-p" + ec.getParams().getCurve().getField().getFieldSize();
        }
        return "unknown";
    }

    private Pem() { }
}
