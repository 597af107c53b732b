import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;

/** Allocates as many MiB as each line of its input says, keeps 20 of them, and answers each line with one. */
public class Churn {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        var kept = new ArrayDeque<byte[]>();
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            for (long left = Long.parseLong(line) * 16; left > 0; left--) {
                kept.add(new byte[64 * 1024]);
                if (kept.size() > 320) {
                    kept.removeFirst();
                }
            }
            System.out.println("done");
        }
    }
}
