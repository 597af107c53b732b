import java.util.Comparator;

/** What one end says that was negotiated; group and signature are null where none is told. */
record Outcome(String side, String version, String kind, String suite, String group, String signature)
        implements Comparable<Outcome> {

    void report(int count, Report report) {
        report.line("type", "negotiated", "side", side, "version", version, "kind", kind, "suite", suite,
                "group", group, "signature", signature, "count", count);
    }

    @Override
    public int compareTo(Outcome other) {
        return Comparator.comparing(Outcome::toString).compare(this, other);
    }
}
