import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;

/** Creates both sides' configurations and sessions. */
final class Ends {
    private static final Map<String, String> GROUPS = Map.of("x25519", "x25519", "p256", "secp256r1");
    private static final Map<String, String> SIGNATURES = Map.of(
            "rsa-2048", "rsa_pss_rsae_sha256",
            "ecdsa-p256", "ecdsa_secp256r1_sha256",
            "ecdsa-p384", "ecdsa_secp384r1_sha384");
    private static final Map<String, String> CURVES = Map.of("ecdsa-p256", "secp256r1", "ecdsa-p384", "secp384r1");
    private static final Map<String, String> SUITES = Map.of(
            "aes128-gcm", "AES_128_GCM_SHA256",
            "aes256-gcm", "AES_256_GCM_SHA384",
            "chacha20-poly1305", "CHACHA20_POLY1305_SHA256");
    private static final char[] NO_PASSWORD = {};

    private final Scenario scenario;
    private final String suite;
    private final boolean resumes;

    /** Sets the settings that SSLEngine only reads from properties; call before any use of TLS. */
    Ends(Scenario scenario) {
        this.scenario = scenario;
        suite = suite(scenario);
        resumes = scenario.resumes();
        System.setProperty("jdk.tls.namedGroups", groups());
        // Not the client's: its list also limits the signatures of certificates.
        System.setProperty("jdk.tls.server.SignatureSchemes", SIGNATURES.get(scenario.certificate()));
        // In TLS 1.3 this makes tickets stateless; in TLS 1.2 it enables them.
        String tickets = String.valueOf(scenario.version().equals("1.3") || scenario.tickets() > 0);
        System.setProperty("jdk.tls.client.enableSessionTicketExtension", tickets);
        System.setProperty("jdk.tls.server.enableSessionTicketExtension", tickets);
        if (scenario.version().equals("1.3") && scenario.tickets() == 0) {
            // The server sends no ticket to a client that offers no resumption mode.
            System.setProperty("jdk.tls.client.disableExtensions", "psk_key_exchange_modes");
        }
    }

    /** The server's configuration, with its ticket keys and its store. */
    SSLContext server() throws Exception {
        X509Certificate[] chain = Pem.certificates("chain", scenario.chain());
        String kind = Pem.kind(chain[0].getPublicKey());
        if (!kind.equals(scenario.certificate())) {
            throw Fault.scenario("certificate %s: the chain's is %s", scenario.certificate(), kind);
        }
        KeyStore store = emptyStore();
        store.setKeyEntry("server", Pem.key(scenario.key()), NO_PASSWORD, chain);
        KeyManagerFactory keys = KeyManagerFactory.getInstance("SunX509");
        keys.init(store, NO_PASSWORD);
        return context(keys.getKeyManagers(), null);
    }

    /** A client's configuration, with its store; it notes the time of verifying a chain. */
    SSLContext client(Verification verification) throws Exception {
        KeyStore store = emptyStore();
        for (X509Certificate root : Pem.certificates("ca", scenario.ca())) {
            store.setCertificateEntry("root " + store.size(), root);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
        trust.init(store);
        verification.of = (X509ExtendedTrustManager) trust.getTrustManagers()[0];
        SSLContext context = context(null, new TrustManager[] {verification});
        // Only the last session is ever resumed. Without resumption none is found: see clientSession.
        context.getClientSessionContext().setSessionCacheSize(resumes ? 16 : 1);
        return context;
    }

    SSLEngine clientSession(SSLContext context) throws IOException {
        // The client's store is keyed by host and port: without them the client finds no session.
        SSLEngine engine = resumes ? context.createSSLEngine("localhost", 443) : context.createSSLEngine();
        engine.setUseClientMode(true);
        SSLParameters parameters = parameters();
        parameters.setServerNames(List.of(new SNIHostName("localhost")));
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        engine.setSSLParameters(parameters);
        engine.beginHandshake();
        return engine;
    }

    SSLEngine serverSession(SSLContext context) throws IOException {
        SSLEngine engine = context.createSSLEngine();
        engine.setUseClientMode(false);
        engine.setSSLParameters(parameters());
        engine.beginHandshake();
        return engine;
    }

    /** The scenario's name of the suite, else the library's. */
    static String suiteName(String is) {
        return SUITES.entrySet().stream().filter(suite -> is.endsWith("_" + suite.getValue()))
                .map(Map.Entry::getKey).findAny().orElse(is);
    }

    private SSLParameters parameters() {
        return new SSLParameters(new String[] {suite}, new String[] {"TLSv" + scenario.version()});
    }

    private static String suite(Scenario scenario) {
        String key = scenario.certificate().startsWith("rsa") ? "RSA" : "ECDSA";
        String before = scenario.version().equals("1.3") ? "TLS_" : "TLS_ECDHE_" + key + "_WITH_";
        return before + SUITES.get(scenario.suite());
    }

    /** In TLS 1.2 the list also limits the certificate's curves; the first is the key exchange's. */
    private String groups() {
        String group = GROUPS.get(scenario.group());
        String curve = CURVES.getOrDefault(scenario.certificate(), group);
        return scenario.version().equals("1.3") || curve.equals(group) ? group : group + "," + curve;
    }

    private static SSLContext context(KeyManager[] keys, TrustManager[] trust) throws GeneralSecurityException {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys, trust, null);
        return context;
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, NO_PASSWORD);
        return store;
    }
}
