import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.interfaces.ECKey;
import java.security.interfaces.RSAPrivateCrtKey;
import java.security.spec.AlgorithmParameterSpec;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPublicKeySpec;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.NamedParameterSpec;
import java.security.spec.PSSParameterSpec;
import java.security.spec.RSAPublicKeySpec;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** The operations, through the interfaces of java.security and javax.crypto that SSLEngine uses itself. */
final class Operations {
    private static final String[] NAMES = {
        "rsa-2048-sign", "rsa-2048-verify", "ecdsa-p256-sign", "ecdsa-p256-verify", "ecdsa-p384-sign",
        "ecdsa-p384-verify", "x25519", "p256", "aes128-gcm-seal", "aes128-gcm-open", "aes256-gcm-seal",
        "aes256-gcm-open", "chacha20-poly1305-seal", "chacha20-poly1305-open",
    };
    /** Hashed in the operation, as in a handshake. */
    private static final byte[] MESSAGE = new byte[32];
    /** Replaces a record's header, which is authenticated. */
    private static final byte[] HEADER = new byte[5];
    private static final int TAG = 16;
    /** The first byte of an uncompressed point. */
    private static final byte UNCOMPRESSED = 4;

    /** The repeated operation. */
    interface Operation {
        /** Runs once. */
        void run() throws Exception;
    }

    static String[] names() {
        return NAMES.clone();
    }

    /** Checks that the scenario has exactly the keys of the operation. */
    static void check(Scenario scenario) throws Fault {
        String name = scenario.operation();
        boolean ciphers = name.endsWith("-seal") || name.endsWith("-open");
        boolean signs = name.endsWith("-sign") || name.endsWith("-verify");
        if (ciphers && scenario.record() == 0) {
            throw Fault.scenario("record is missing: expected a number from 1 to 16384");
        }
        if (!ciphers && scenario.record() != 0 && !(signs && scenario.record() == MESSAGE.length)) {
            throw Fault.scenario("record %d: expected none with operation %s", scenario.record(), name);
        }
        if (signs != (scenario.key() != null)) {
            throw Fault.scenario("key %s: expected a file only for rsa and ecdsa operations",
                    scenario.key());
        }
    }

    static Operation of(Scenario scenario) throws Exception {
        String name = scenario.operation();
        int last = name.lastIndexOf('-');
        return switch (last < 0 ? name : name.substring(last + 1)) {
            case "sign" -> sign(scenario);
            case "verify" -> verify(scenario);
            case "x25519" -> agree("X25519", NamedParameterSpec.X25519, "X25519");
            case "p256" -> agree("EC", new ECGenParameterSpec("secp256r1"), "ECDH");
            case "seal" -> seal(name.substring(0, last), scenario.record());
            default -> open(name.substring(0, last), scenario.record());
        };
    }

    private static Operation sign(Scenario scenario) throws Exception {
        PrivateKey key = key(scenario);
        Signature signature = signature(Pem.kind(key));
        return () -> {
            signature.initSign(key);
            signature.update(MESSAGE);
            signature.sign();
        };
    }

    private static Operation verify(Scenario scenario) throws Exception {
        PrivateKey key = key(scenario);
        PublicKey publicKey = publicKey(key, scenario.key());
        Signature signature = signature(Pem.kind(key));
        signature.initSign(key);
        signature.update(MESSAGE);
        byte[] signed = signature.sign();
        return () -> {
            signature.initVerify(publicKey);
            signature.update(MESSAGE);
            if (!signature.verify(signed)) {
                throw Fault.stack("a signature of the key itself is not valid");
            }
        };
    }

    private static PrivateKey key(Scenario scenario) throws Fault {
        PrivateKey key = Pem.key(scenario.key());
        if (!scenario.operation().startsWith(Pem.kind(key) + "-")) {
            throw Fault.scenario("key %s: its kind is %s: expected a key for operation %s", scenario.key(), Pem.kind(key),
                    scenario.operation());
        }
        return key;
    }

    /** The library does not expose the public half of an EC private key: in the file it is the last point. */
    private static PublicKey publicKey(PrivateKey key, String path) throws Exception {
        if (key instanceof RSAPrivateCrtKey rsa) {
            return KeyFactory.getInstance("RSA")
                    .generatePublic(new RSAPublicKeySpec(rsa.getModulus(), rsa.getPublicExponent()));
        }
        ECParameterSpec curve = ((ECKey) key).getParams();
        int size = curve.getCurve().getField().getFieldSize() / 8;
        byte[] file = Pem.keyBytes(path);
        int begin = file.length - 2 * size;
        if (begin < 1 || file[begin - 1] != UNCOMPRESSED) {
            throw Fault.scenario("key %s: expected one with its public part", path);
        }
        ECPoint point = new ECPoint(new BigInteger(1, file, begin, size), new BigInteger(1, file, begin + size, size));
        return KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(point, curve));
    }

    /** The signature algorithm of a handshake's server. */
    private static Signature signature(String kind) throws GeneralSecurityException {
        if (kind.startsWith("ecdsa")) {
            return Signature.getInstance(kind.endsWith("p384") ? "SHA384withECDSA" : "SHA256withECDSA");
        }
        Signature signature = Signature.getInstance("RSASSA-PSS");
        signature.setParameter(new PSSParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, 32, 1));
        return signature;
    }

    /** One side's part: its key pair and the shared secret. */
    private static Operation agree(String keys, AlgorithmParameterSpec group, String agreement) throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance(keys);
        generator.initialize(group);
        PublicKey other = generator.generateKeyPair().getPublic();
        return () -> {
            KeyPair own = generator.generateKeyPair();
            KeyAgreement secret = KeyAgreement.getInstance(agreement);
            secret.init(own.getPrivate());
            secret.doPhase(other, true);
            secret.generateSecret();
        };
    }

    private static Operation seal(String suite, int size) throws Exception {
        Aead aead = new Aead(suite);
        byte[] plain = new byte[size];
        byte[] sealed = new byte[size + TAG];
        long[] number = {0};
        return () -> aead.apply(Cipher.ENCRYPT_MODE, number[0]++, plain, sealed);
    }

    /** Two alternating messages: the library may reject a nonce that it has just used. */
    private static Operation open(String suite, int size) throws Exception {
        Aead aead = new Aead(suite);
        byte[][] sealed = new byte[2][size + TAG];
        byte[] plain = new byte[size];
        for (int i = 0; i < sealed.length; i++) {
            aead.apply(Cipher.ENCRYPT_MODE, i, plain, sealed[i]);
        }
        int[] turn = {0};
        return () -> {
            aead.apply(Cipher.DECRYPT_MODE, turn[0], sealed[turn[0]], plain);
            turn[0] ^= 1;
        };
    }

    /** A cipher with its own key, initialised for each message as for records. */
    private static final class Aead {
        private final Cipher cipher;
        private final SecretKeySpec key;
        private final boolean gcm;

        Aead(String suite) throws GeneralSecurityException {
            gcm = suite.endsWith("gcm");
            cipher = Cipher.getInstance(gcm ? "AES/GCM/NoPadding" : "ChaCha20-Poly1305");
            byte[] bytes = new byte[suite.equals("aes128-gcm") ? 16 : 32];
            new SecureRandom().nextBytes(bytes);
            key = new SecretKeySpec(bytes, gcm ? "AES" : "ChaCha20");
        }

        void apply(int mode, long number, byte[] from, byte[] to) throws GeneralSecurityException {
            byte[] nonce = ByteBuffer.allocate(12).putLong(4, number).array();
            cipher.init(mode, key, gcm ? new GCMParameterSpec(8 * TAG, nonce) : new IvParameterSpec(nonce));
            cipher.updateAAD(HEADER);
            cipher.doFinal(from, 0, from.length, to, 0);
        }
    }

    private Operations() { }
}
