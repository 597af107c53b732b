import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.Executors;

/** Runs workers on threads that start together. */
final class Load {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** Usage per thread. */
    private record Usage(int units, long wallNs, long cpuNs, long switches) { }

    private final Scenario scenario;
    private final CountDownLatch warm;

    Load(Scenario scenario) {
        this.scenario = scenario;
        this.warm = new CountDownLatch(scenario.threads());
    }

    /** Each thread warms up, starts with the others, and measures until its window or count is over. */
    <W extends Worker> List<W> run(Report report, Callable<W> hire) throws Exception {
        List<W> workers = new ArrayList<>();
        List<Usage> usages = new ArrayList<>();
        for (int i = 0; i < scenario.threads(); i++) {
            workers.add(hire.call());
            usages.add(null);
        }
        // Daemons: an error ends the program whatever they do.
        var threads = new ExecutorCompletionService<Void>(Executors.newFixedThreadPool(scenario.threads(), work -> {
            Thread thread = new Thread(work);
            thread.setDaemon(true);
            return thread;
        }));
        for (int i = 0; i < scenario.threads(); i++) {
            int thread = i;
            threads.submit(() -> {
                warmUp(workers.get(thread));
                usages.set(thread, measure(workers.get(thread)));
                return null;
            });
        }
        for (int i = 0; i < scenario.threads(); i++) {
            try {
                threads.take().get();
            } catch (ExecutionException error) {
                throw error.getCause() instanceof Exception cause ? cause : error;
            }
        }
        for (int i = 0; i < scenario.threads(); i++) {
            workers.get(i).report(i, report);
            Usage usage = usages.get(i);
            report.line("type", "thread", "thread", i, "units", usage.units, "wall_ns", usage.wallNs,
                    "cpu_ns", usage.cpuNs, "voluntary_switches", usage.switches);
        }
        return workers;
    }

    private void warmUp(Worker worker) throws Exception {
        for (int units = 0; units < scenario.warmup();) {
            units += worker.unit();
        }
        worker.forget();
        warm.countDown();
        warm.await();
    }

    private Usage measure(Worker worker) throws Exception {
        long windowNs = scenario.windowMs() * 1_000_000L;
        long switches = switches();
        long cpu = THREADS.getCurrentThreadCpuTime();
        long began = System.nanoTime();
        int units = 0;
        long wall = 0;
        while (units == 0 || units < scenario.count() || wall < windowNs) {
            units += worker.unit();
            wall = System.nanoTime() - began;
        }
        return new Usage(units, wall, THREADS.getCurrentThreadCpuTime() - cpu, switches() - switches);
    }

    /** Voluntary context switches of this thread. */
    private static long switches() throws IOException {
        return status("thread-self", "voluntary_ctxt_switches:");
    }

    /** The kernel's value for a key of a process or thread: a number, possibly with a unit. */
    static long status(String of, String key) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc", of, "status"))) {
            if (line.startsWith(key)) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new IOException("the kernel does not tell " + key);
    }
}
