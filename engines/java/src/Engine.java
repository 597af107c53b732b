import java.util.List;

/** A TLS engine on the JDK's SSLEngine: reads a scenario, runs it and reports. See docs/ENGINES.md. */
public final class Engine {
    public static void main(String[] arguments) {
        Report report = new Report(System.out);
        boolean good = false;
        try {
            run(report);
            report.line("type", "done");
            good = true;
        } catch (Fault fault) {
            report.line("type", "error", "fault", fault.kind, "message", fault.getMessage());
        } catch (Exception | LinkageError | OutOfMemoryError error) {
            // Exceptions of TLS or the crypto backend are the stack's.
            report.line("type", "error", "fault", "stack", "message", error.toString());
            error.printStackTrace();
        }
        // Other threads may still be in a measurement that has failed.
        System.exit(report.flush() && good ? 0 : 1);
    }

    private static void run(Report report) throws Exception {
        Scenario scenario = Scenario.read(System.in);
        String version = "java " + Runtime.version().version().stream().map(String::valueOf)
                .reduce((all, part) -> all + "." + part).orElseThrow();
        report.line("type", "facts", "stack", "java", "tls", version, "crypto", version,
                "compiler", System.getProperty("java.vm.name") + " " + Runtime.version(),
                "allocator", "system", "build", "release",
                // Which CPU features the compiler's intrinsics use is internal to it.
                "features", List.of());
        switch (scenario.task()) {
            case "handshake" -> Handshakes.measure(scenario, report);
            case "transfer" -> Transfers.measure(scenario, report);
            case "memory" -> Memory.measure(scenario, report);
            case "primitive" -> Primitives.measure(scenario, report);
            default -> { }
        }
    }

    private Engine() { }
}
