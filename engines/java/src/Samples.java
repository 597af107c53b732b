import java.util.Arrays;
import java.util.stream.LongStream;

/** Times, in order. */
final class Samples {
    private long[] ns = new long[1 << 16];
    private int count;

    void add(long value) {
        if (count == ns.length) {
            ns = Arrays.copyOf(ns, 2 * count);
        }
        ns[count++] = value;
    }

    int count() {
        return count;
    }

    void clear() {
        count = 0;
    }

    LongStream part(int begin, int end) {
        return Arrays.stream(ns, begin, end);
    }
}
