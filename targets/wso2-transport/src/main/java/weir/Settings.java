package weir;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/** The program's flags: {@code --name value}, each of {@link #NAMES} once. */
final class Settings {
    static final Set<String> NAMES = Set.of("listen-port", "upstream-port", "client-side", "upstream-side",
            "workers", "pool", "cert", "key", "ca", "tls-version", "suite", "group");

    private final Map<String, String> values = new HashMap<>();

    /** @throws IllegalArgumentException naming the flag that is unknown, missing or without a value */
    Settings(String[] flags) {
        for (int i = 0; i < flags.length; i += 2) {
            String name = flags[i].startsWith("--") ? flags[i].substring(2) : "";
            if (!NAMES.contains(name)) {
                throw new IllegalArgumentException(
                        flags[i] + ": unknown flag; expected --" + String.join(", --", NAMES));
            }
            if (i + 1 == flags.length) {
                throw new IllegalArgumentException(flags[i] + ": missing value");
            }
            values.put(name, flags[i + 1]);
        }
        for (String name : NAMES) {
            if (!values.containsKey(name)) {
                throw new IllegalArgumentException("--" + name + ": missing");
            }
        }
    }

    String text(String name) {
        return values.get(name);
    }

    int number(String name) {
        try {
            return Integer.parseInt(text(name));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("--" + name + ": invalid value " + text(name) + ": expected an integer");
        }
    }

    /** Whether this side speaks TLS. */
    boolean tls(String side) {
        return switch (text(side)) {
            case "h1", "h2" -> true;
            case "h1c" -> false;
            default -> throw new IllegalArgumentException(
                    "--" + side + ": invalid value " + text(side) + ": expected h1, h1c or h2");
        };
    }

    /** Whether this side speaks HTTP/2. */
    boolean http2(String side) {
        return text(side).equals("h2");
    }

    /** The suite's name in the JDK, which is the standard one. */
    String suite() {
        return switch (text("suite")) {
            case "aes128-gcm-sha256" -> "TLS_AES_128_GCM_SHA256";
            case "aes256-gcm-sha384" -> "TLS_AES_256_GCM_SHA384";
            case "chacha20-poly1305-sha256" -> "TLS_CHACHA20_POLY1305_SHA256";
            case "ecdhe-ecdsa-aes128-gcm-sha256" -> "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
            case "ecdhe-ecdsa-aes256-gcm-sha384" -> "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
            case "ecdhe-ecdsa-chacha20-poly1305" -> "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
            default -> throw new IllegalArgumentException("--suite: unknown suite " + text("suite"));
        };
    }

    /** The group's name in the JDK. */
    String group() {
        return switch (text("group")) {
            case "x25519" -> "x25519";
            case "p256" -> "secp256r1";
            case "p384" -> "secp384r1";
            default -> throw new IllegalArgumentException(
                    "--group: invalid value " + text("group") + ": expected x25519, p256 or p384");
        };
    }
}
