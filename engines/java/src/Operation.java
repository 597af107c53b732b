/** What is repeated. */
interface Operation {
    /** Does it once. */
    void run() throws Exception;
}
