/** What one thread does. */
interface Worker {
    /** Does one unit, or, if it is cheap, some: says how many. */
    int unit() throws Exception;

    /** Drops what was measured so far. */
    void forget() throws Exception;

    /** Tells what was measured. */
    void report(int thread, Report report);
}
