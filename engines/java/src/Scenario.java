import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The run's parameters. Keys that do not apply to `do` are null or zero. */
record Scenario(
        String task, String version, String resumption, String suite, String group, String certificate,
        String chain, String key, String ca, int tickets, boolean cold,
        int threads, int warmup, int windowMs, int count,
        int record, int write, int bytes, int sessions, String operation) {

    private static final List<String> CONNECTED = List.of("handshake", "transfer", "memory");
    private static final List<String> MEASURED = List.of("handshake", "transfer", "primitive");
    private static final int MOST = 1 << 30;

    private static final Map<String, Rule> RULES = new TreeMap<>(Map.ofEntries(
            Map.entry("do", Rule.words(Rule.ALL, "facts", "handshake", "transfer", "memory", "primitive")),
            Map.entry("version", Rule.words(CONNECTED, "1.2", "1.3")),
            Map.entry("resumption", Rule.words(List.of("handshake"), "none", "id", "ticket", "psk")),
            Map.entry("suite", Rule.words(CONNECTED, "aes128-gcm", "aes256-gcm", "chacha20-poly1305")),
            Map.entry("group", Rule.words(CONNECTED, "x25519", "p256")),
            Map.entry("certificate", Rule.words(CONNECTED, "rsa-2048", "ecdsa-p256", "ecdsa-p384")),
            Map.entry("chain", Rule.path(CONNECTED)),
            Map.entry("key", Rule.path(List.of("handshake", "transfer", "memory", "primitive")).optional()),
            Map.entry("ca", Rule.path(CONNECTED)),
            Map.entry("tickets", Rule.words(List.of("handshake"), "0", "1").optional()),
            Map.entry("config", Rule.words(List.of("handshake"), "warm", "cold").optional()),
            Map.entry("threads", Rule.number(MEASURED, 1, 1024).optional()),
            Map.entry("warmup", Rule.number(MEASURED, 0, MOST).optional()),
            Map.entry("window_ms", Rule.number(MEASURED, 1, MOST).optional()),
            Map.entry("count", Rule.number(MEASURED, 1, MOST).optional()),
            Map.entry("record", Rule.number(List.of("transfer", "primitive"), 1, 16384).optional()),
            Map.entry("write", Rule.number(List.of("transfer"), 1, MOST)),
            Map.entry("bytes", Rule.number(List.of("transfer"), 1, MOST)),
            Map.entry("sessions", Rule.number(List.of("memory"), 2, MOST)),
            Map.entry("operation", Rule.words(List.of("primitive"), Operations.names()))));

    static Scenario read(InputStream in) throws IOException, Fault {
        Map<String, String> given = pairs(in);
        String task = given.get("do");
        if (task == null) {
            throw Fault.scenario("do is missing: expected %s", RULES.get("do").expected());
        }
        RULES.get("do").check("do", task);
        String keys = RULES.entrySet().stream().filter(entry -> entry.getValue().takenBy(task))
                .map(Map.Entry::getKey).collect(Collectors.joining(", "));
        for (Map.Entry<String, String> pair : given.entrySet()) {
            Rule rule = RULES.get(pair.getKey());
            if (rule == null) {
                throw Fault.scenario("%s %s: unknown key: expected one of %s", pair.getKey(), pair.getValue(), keys);
            }
            if (!rule.takenBy(task)) {
                throw Fault.scenario("%s %s: not for do %s: expected %s", pair.getKey(), pair.getValue(), task, keys);
            }
            rule.check(pair.getKey(), pair.getValue());
        }
        for (Map.Entry<String, Rule> entry : RULES.entrySet()) {
            if (entry.getValue().required() && entry.getValue().takenBy(task) && !given.containsKey(entry.getKey())) {
                throw Fault.scenario("%s is missing: expected %s", entry.getKey(), entry.getValue().expected());
            }
        }
        if (task.equals("handshake") && !given.containsKey("tickets")) {
            given.put("tickets", impliedTickets(given.get("version"), given.get("resumption")));
        }
        Scenario scenario = of(given);
        scenario.check();
        return scenario;
    }

    private static Map<String, String> pairs(InputStream in) throws IOException, Fault {
        String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(in.readAllBytes())).toString();
        } catch (CharacterCodingException error) {
            throw Fault.scenario("the input: expected UTF-8");
        }
        Map<String, String> given = new TreeMap<>();
        if (text.endsWith("\n")) {
            text = text.substring(0, text.length() - 1);
        }
        for (String line : text.split("\n", -1)) {
            int space = line.indexOf(' ');
            if (space < 1 || space + 1 == line.length()) {
                throw Fault.scenario("`%s`: expected a key, one space and a value", line);
            }
            String key = line.substring(0, space);
            String value = line.substring(space + 1);
            String before = given.put(key, value);
            if (before != null) {
                throw Fault.scenario("%s %s: repeated, first with %s: expected once", key, value, before);
            }
        }
        return given;
    }

    /** TLS 1.2 has one ticket if it resumes by ticket. */
    private static String impliedTickets(String version, String resumption) throws Fault {
        if (version.equals("1.3")) {
            throw Fault.scenario("tickets is missing: expected %s", RULES.get("tickets").expected());
        }
        return resumption.equals("ticket") ? "1" : "0";
    }

    private static Scenario of(Map<String, String> given) {
        return new Scenario(
                given.get("do"), given.get("version"), given.get("resumption"), given.get("suite"), given.get("group"),
                given.get("certificate"), given.get("chain"), given.get("key"), given.get("ca"),
                number(given, "tickets", 0), "cold".equals(given.get("config")),
                number(given, "threads", 1), number(given, "warmup", 0), number(given, "window_ms", 0),
                number(given, "count", 0), number(given, "record", 0), number(given, "write", 0),
                number(given, "bytes", 0), number(given, "sessions", 0), given.get("operation"));
    }

    /** Whether sessions are resumed: a scenario without the key connects once. */
    boolean resumes() {
        return resumption != null && !resumption.equals("none");
    }

    private static int number(Map<String, String> given, String key, int absent) {
        return given.containsKey(key) ? Integer.parseInt(given.get(key)) : absent;
    }

    /** Checks the combination of values. */
    private void check() throws Fault {
        if (MEASURED.contains(task) && (windowMs == 0) == (count == 0)) {
            throw Fault.scenario("window_ms, count: expected exactly one of them");
        }
        if (CONNECTED.contains(task) && key == null) {
            throw Fault.scenario("key is missing: expected the path of a file");
        }
        if (task.equals("handshake")) {
            checkResumption();
        }
        if (task.equals("transfer") && record < 512) {
            throw Fault.scenario("record %d: expected a number from 512 to 16384", record);
        }
        if (sessions % 2 == 1) {
            throw Fault.scenario("sessions %d: expected an even number", sessions);
        }
        if (task.equals("primitive")) {
            Operations.check(this);
        }
    }

    private void checkResumption() throws Fault {
        List<String> allowed = version.equals("1.2") ? List.of("none", "id", "ticket") : List.of("none", "psk");
        if (!allowed.contains(resumption)) {
            throw Fault.scenario("resumption %s: with version %s expected %s", resumption, version,
                    String.join(", ", allowed));
        }
        if (cold && resumes()) {
            throw Fault.scenario("config cold: expected warm with resumption %s: a new configuration has no session",
                    resumption);
        }
        int needed = resumption.equals("id") ? 0 : 1;
        if (resumes() && tickets != needed) {
            throw Fault.scenario("tickets %d: with resumption %s expected %d", tickets, resumption, needed);
        }
    }
}
