import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;

/** Facts of a handshake from the server's unencrypted messages: SSLEngine does not expose them. */
final class Wire {
    private static final int CONTENT_HANDSHAKE = 22;
    private static final int SERVER_HELLO = 2;
    private static final int CERTIFICATE = 11;
    private static final int SERVER_KEY_EXCHANGE = 12;
    private static final int EXTENSION_PRE_SHARED_KEY = 41;
    private static final int EXTENSION_SUPPORTED_VERSIONS = 43;
    private static final int EXTENSION_KEY_SHARE = 51;
    /** The start of a HelloRetryRequest's random. */
    private static final byte[] RETRY = {(byte) 0xcf, 0x21, (byte) 0xad, 0x74, (byte) 0xe5, (byte) 0x9a, 0x61, 0x11};
    private static final Map<Integer, String> GROUPS = Map.of(0x1d, "x25519", 0x17, "p256", 0x18, "p384");
    private static final Map<Integer, String> SIGNATURES = Map.of(
            0x0804, "rsa_pss_rsae_sha256", 0x0401, "rsa_pkcs1_sha256",
            0x0403, "ecdsa_secp256r1_sha256", 0x0503, "ecdsa_secp384r1_sha384");

    private boolean version13;
    private boolean retried;
    private boolean certified;
    private boolean takesUp;
    /** The group of the key exchange; null without one. */
    String group;
    /** The signature scheme; null if encrypted. */
    String signature;

    /** Parses the server's output up to the first record that is not a cleartext handshake record. */
    void read(ByteBuffer sent) {
        byte[] messages = new byte[sent.remaining()];
        int length = 0;
        ByteBuffer records = sent.duplicate();
        while (records.remaining() >= 5 && records.get() == CONTENT_HANDSHAKE) {
            records.getShort();
            int size = Math.min(Short.toUnsignedInt(records.getShort()), records.remaining());
            records.get(messages, length, size);
            length += size;
        }
        ByteBuffer all = ByteBuffer.wrap(messages, 0, length);
        while (all.remaining() >= 4) {
            int head = all.getInt();
            int size = head & 0xffffff;
            // Messages after ChangeCipherSpec in TLS 1.2 are encrypted.
            if (size > all.remaining()) {
                return;
            }
            message(head >>> 24, all.slice(all.position(), size));
            all.position(all.position() + size);
        }
    }

    String kind() {
        if (version13 ? takesUp : !certified) {
            return "resumed";
        }
        return retried ? "full-with-hello-retry" : "full";
    }

    private void message(int type, ByteBuffer body) {
        switch (type) {
            case SERVER_HELLO -> hello(body);
            case CERTIFICATE -> certified = true;
            case SERVER_KEY_EXCHANGE -> {
                body.get(); // a named curve
                group = name(GROUPS, Short.toUnsignedInt(body.getShort()));
                skip(body, Byte.toUnsignedInt(body.get()));
                signature = name(SIGNATURES, Short.toUnsignedInt(body.getShort()));
            }
            default -> { }
        }
    }

    private void hello(ByteBuffer body) {
        body.getShort();
        byte[] random = new byte[32];
        body.get(random);
        boolean retry = Arrays.equals(random, 0, RETRY.length, RETRY, 0, RETRY.length);
        retried |= retry;
        skip(body, Byte.toUnsignedInt(body.get())); // the session ID
        skip(body, 3); // suite and compression
        if (!body.hasRemaining()) {
            return;
        }
        body.getShort();
        while (body.remaining() >= 4) {
            int extension = Short.toUnsignedInt(body.getShort());
            int size = Short.toUnsignedInt(body.getShort());
            switch (extension) {
                case EXTENSION_SUPPORTED_VERSIONS -> version13 = true;
                case EXTENSION_PRE_SHARED_KEY -> takesUp = true;
                case EXTENSION_KEY_SHARE ->
                    group = name(GROUPS, Short.toUnsignedInt(body.getShort(body.position())));
                default -> { }
            }
            skip(body, size);
        }
    }

    private static void skip(ByteBuffer bytes, int count) {
        bytes.position(bytes.position() + count);
    }

    private static String name(Map<Integer, String> names, int number) {
        return names.getOrDefault(number, String.format("0x%04x", number));
    }
}
