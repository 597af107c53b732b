/** An error that is not the stack's. */
final class Fault extends Exception {
    private static final long serialVersionUID = 1;

    /** As in the report. */
    final String kind;

    private Fault(String kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** The scenario asks for what is not known, or cannot be done. */
    static Fault scenario(String format, Object... values) {
        return new Fault("scenario", String.format(format, values));
    }

    /** This program cannot do what it should. */
    static Fault runner(String format, Object... values) {
        return new Fault("runner", String.format(format, values));
    }

    /** The library has done what it should not. */
    static Fault stack(String format, Object... values) {
        return new Fault("stack", String.format(format, values));
    }
}
