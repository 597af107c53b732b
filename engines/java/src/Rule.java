import java.util.Arrays;
import java.util.List;

/** The values of a key and its tasks: words; a number, if the maximum is not 0; else a file path. */
record Rule(List<String> tasks, List<String> words, int least, int greatest, boolean required) {
    static final List<String> ALL = List.of();

    static Rule words(List<String> tasks, String... words) {
        return new Rule(tasks, Arrays.asList(words), 0, 0, true);
    }

    static Rule number(List<String> tasks, int least, int greatest) {
        return new Rule(tasks, List.of(), least, greatest, true);
    }

    static Rule path(List<String> tasks) {
        return new Rule(tasks, List.of(), 0, 0, true);
    }

    Rule optional() {
        return new Rule(tasks, words, least, greatest, false);
    }

    boolean takenBy(String task) {
        return tasks.isEmpty() || tasks.contains(task);
    }

    void check(String key, String value) throws Fault {
        boolean good = words.isEmpty() ? greatest == 0 || inRange(value) : words.contains(value);
        if (!good) {
            throw Fault.scenario("%s %s: expected %s", key, value, expected());
        }
    }

    String expected() {
        if (!words.isEmpty()) {
            return String.join(", ", words);
        }
        return greatest == 0 ? "the path of a file" : "a number from " + least + " to " + greatest;
    }

    private boolean inRange(String value) {
        if (!value.matches("0|[1-9][0-9]{0,9}")) {
            return false;
        }
        long number = Long.parseLong(value);
        return number >= least && number <= greatest;
    }
}
