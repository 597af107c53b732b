/** Measures one operation of the library's arithmetic, in batches, so that the clock's own time does not count. */
final class Primitives implements Worker {
    private static final long BATCH_NS = 50_000;

    static void measure(Scenario scenario, Report report) throws Exception {
        Load.run(scenario, report, () -> new Primitives(scenario));
    }

    private final Operation operation;
    private final Samples ns = new Samples();
    private int batch = 1;

    /** Finds how many operations make a batch; compiled code is found to be faster later. */
    private Primitives(Scenario scenario) throws Exception {
        operation = Operations.of(scenario);
        while (run() < BATCH_NS && (scenario.count() == 0 || 2 * batch <= scenario.count())) {
            batch *= 2;
        }
    }

    @Override
    public int unit() throws Exception {
        ns.add(run() / batch);
        return batch;
    }

    private long run() throws Exception {
        long began = System.nanoTime();
        for (int i = 0; i < batch; i++) {
            operation.run();
        }
        return System.nanoTime() - began;
    }

    @Override
    public void forget() {
        ns.clear();
    }

    @Override
    public void report(int thread, Report report) {
        report.samples(thread, "operation", ns);
    }
}
