package io.cistern.cli.fit;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Trace;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The growth of live memory from one recording of a program to another. Each is looked at when its last request was
/// refused, since an exception then frees what it held, else at its end.
///
/// @param changes by call stack as it is shown, the greatest growth first; without those that did not change
record Growth(List<Change> changes) {
    private static final int MOST_CHANGES = 10;
    private static final int MOST_FRAMES = 4;

    /// The growth of one call stack's live memory; negative if it shrank.
    ///
    /// @param frames the innermost first; empty if not known
    record Change(List<String> frames, long byteSize, long blocks) {}

    /// The live memory of one call stack.
    private record Live(long byteSize, long blocks) {
        static final Live NONE = new Live(0, 0);
    }

    static Growth between(Recording first, Recording second) {
        Map<List<String>, Live> before = live(first);
        Map<List<String>, Live> after = live(second);
        before.keySet().forEach(stack -> after.putIfAbsent(stack, Live.NONE));
        return new Growth(after.entrySet().stream()
                .map(each -> {
                    Live was = before.getOrDefault(each.getKey(), Live.NONE);
                    Live is = each.getValue();
                    return new Change(each.getKey(), is.byteSize - was.byteSize, is.blocks - was.blocks);
                })
                .filter(change -> change.byteSize != 0 || change.blocks != 0)
                .sorted(Comparator.comparingLong(Change::byteSize).reversed())
                .toList());
    }

    private static Map<List<String>, Live> live(Recording recording) {
        Trace trace = recording.trace();
        int[] madeBy = new int[trace.slotCount()];
        Arrays.fill(madeBy, -1);
        int end = recording.refusals().isEmpty()
                ? trace.ops().length
                : recording.refusals().getLast().row();
        for (int row = 0; row < end; row++) {
            if (Trace.isOperation(trace.ops()[row])) {
                madeBy[trace.slots()[row]] = trace.ops()[row] == Trace.ALLOCATE ? row : -1;
            }
        }
        Map<List<String>, Live> live = new HashMap<>();
        for (int row : madeBy) {
            if (row >= 0) {
                live.merge(
                        shown(recording.callStacks().lines(recording.stacks()[row])),
                        new Live(trace.byteSizes()[row], 1),
                        (one, other) -> new Live(one.byteSize + other.byteSize, one.blocks + other.blocks));
            }
        }
        return live;
    }

    /// Returns it for people.
    ///
    /// @param first the name of the first file
    /// @param second the name of the second
    String text(String first, String second) {
        long all = changes.stream().mapToLong(Change::byteSize).sum();
        String lines = changes.stream()
                .limit(MOST_CHANGES)
                .map(change -> String.format(
                        Locale.ROOT,
                        "  %10s %,+7d block%s  %s%n",
                        signed(change.byteSize),
                        change.blocks,
                        Math.abs(change.blocks) == 1 ? " " : "s",
                        place(change.frames)))
                .collect(Collectors.joining());
        return "From " + first + " to " + second + ", at the refused request or else at the end: "
                + (changes.isEmpty() ? "nothing grew" : signed(all)) + "\n"
                + lines
                + (changes.size() > MOST_CHANGES
                        ? "  and " + (changes.size() - MOST_CHANGES) + " more call stacks\n"
                        : "");
    }

    private static String signed(long bytes) {
        return (bytes < 0 ? "-" : "+") + ByteSize.format(Math.abs(bytes));
    }

    /// Returns the innermost lines of the program's own code, or of all code if there are none.
    private static List<String> shown(List<String> frames) {
        List<String> own = frames.stream().filter(CallStacks::isOwn).toList();
        return (own.isEmpty() ? frames : own).stream().limit(MOST_FRAMES).toList();
    }

    private static String place(List<String> frames) {
        String place = frames.stream().map(CallStacks::shortened).collect(Collectors.joining(" < "));
        return place.isEmpty() ? "no call stack recorded" : place;
    }

    /// Returns the fields of a JSON object.
    Map<String, @Nullable Object> fields(String first, String second) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        fields.put("from", first);
        fields.put("to", second);
        fields.put(
                "changes",
                changes.stream()
                        .map(change ->
                                Map.of("frames", change.frames, "byteSize", change.byteSize, "blocks", change.blocks))
                        .toList());
        return fields;
    }
}
