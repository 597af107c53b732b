/** An error other than the stack's. */
final class Fault extends Exception {
    private static final long serialVersionUID = 1;

    /** As in the report. */
    final String kind;

    private Fault(String kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** The scenario is invalid or unsupported. */
    static Fault scenario(String format, Object... values) {
        return new Fault("scenario", String.format(format, values));
    }

    /** The runner itself failed. */
    static Fault runner(String format, Object... values) {
        return new Fault("runner", String.format(format, values));
    }

    /** The library misbehaved. */
    static Fault stack(String format, Object... values) {
        return new Fault("stack", String.format(format, values));
    }
}
