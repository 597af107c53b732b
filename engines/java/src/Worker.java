/** The work of one thread. */
interface Worker {
    /** Does one unit, or several cheap ones; returns how many. */
    int unit() throws Exception;

    /** Drops the measurements so far. */
    void forget() throws Exception;

    /** Reports the measurements. */
    void report(int thread, Report report);
}
