/** Measures one crypto operation, in batches, so that reading the clock does not count. */
final class Primitives implements Worker {
    private static final long BATCH_NS = 50_000;

    static void measure(Scenario scenario, Report report) throws Exception {
        new Load(scenario).run(report, () -> new Primitives(scenario));
    }

    private final Operations.Operation operation;
    private final int most;
    private final Samples ns = new Samples();
    private int batch;

    private Primitives(Scenario scenario) throws Exception {
        operation = Operations.of(scenario);
        most = scenario.count() == 0 ? Integer.MAX_VALUE : scenario.count();
        forget();
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

    /** Also determines the batch size: compiled code needs more. */
    @Override
    public void forget() throws Exception {
        batch = 1;
        while (run() < BATCH_NS && 2L * batch <= most) {
            batch *= 2;
        }
        ns.clear();
    }

    @Override
    public void report(int thread, Report report) {
        report.samples(thread, "operation", ns);
    }
}
