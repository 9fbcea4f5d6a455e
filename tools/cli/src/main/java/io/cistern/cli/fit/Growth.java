package io.cistern.cli.fit;

import static io.cistern.cli.common.ResultWriter.object;

import io.cistern.cli.common.ByteSize;
import io.cistern.cli.common.InputException;
import io.cistern.cli.trace.CallStacks;
import io.cistern.cli.trace.Recording;
import io.cistern.cli.trace.Trace;
import java.nio.file.Path;
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
/// @param changes by device and call stack as it is shown, the greatest first; those of nothing are left out
record Growth(List<Change> changes) {
    private static final int MOST_CHANGES = 10;
    private static final int MOST_FRAMES = 4;

    /// The growth of one call stack's live memory; negative if it shrank.
    ///
    /// @param device its ordinal; null if there is only one
    /// @param frames the innermost first; empty if not known
    record Change(@Nullable Long device, List<String> frames, long byteSize, long blocks) {}

    private record Place(@Nullable Long device, List<String> frames) {}

    private record Live(long byteSize, long blocks) {
        static final Live NONE = new Live(0, 0);
    }

    static Growth between(Recording first, Recording second) {
        boolean several = first.ordinals().length > 1 || second.ordinals().length > 1;
        Map<Place, Live> before = live(first, several);
        Map<Place, Live> after = live(second, several);
        before.keySet().forEach(place -> after.putIfAbsent(place, Live.NONE));
        return new Growth(after.entrySet().stream()
                .map(each -> {
                    Live was = before.getOrDefault(each.getKey(), Live.NONE);
                    Live is = each.getValue();
                    return new Change(
                            each.getKey().device,
                            each.getKey().frames,
                            is.byteSize - was.byteSize,
                            is.blocks - was.blocks);
                })
                .filter(change -> change.byteSize != 0 || change.blocks != 0)
                .sorted(Comparator.comparingLong((Change change) -> Math.abs(change.byteSize))
                        .thenComparingLong(Change::byteSize)
                        .reversed()
                        .thenComparing(Growth::place))
                .toList());
    }

    private static Map<Place, Live> live(Recording recording, boolean several) {
        Trace trace = recording.trace();
        int end = recording.refusals().isEmpty()
                ? trace.ops().length
                : recording.refusals().getLast().row();
        int[] devices = trace.origins().devices();
        Map<Place, Live> live = new HashMap<>();
        for (int row : trace.liveBefore(end)) {
            int waitingSince = recording.waitingSince()[row];
            List<String> lines = recording.callStacks().lines(recording.stacks()[row]);
            live.merge(
                    new Place(
                            several ? recording.ordinals()[devices[trace.streams()[row]]] : null,
                            waitingSince > 0 && waitingSince <= end ? List.of(Holders.WAITING) : shown(lines)),
                    new Live(trace.byteSizes()[row], 1),
                    (one, other) -> new Live(one.byteSize + other.byteSize, one.blocks + other.blocks));
        }
        return live;
    }

    /// Returns it for people.
    String text(Path first, Path second) {
        long all = changes.stream().mapToLong(Change::byteSize).sum();
        String lines = changes.stream()
                .limit(MOST_CHANGES)
                .map(change -> String.format(
                        Locale.ROOT,
                        "  %10s %,+7d block%s  %s%n",
                        signed(change.byteSize),
                        change.blocks,
                        Math.abs(change.blocks) == 1 ? " " : "s",
                        place(change)))
                .collect(Collectors.joining());
        return "From " + InputException.oneLine(first.toString()) + " to "
                + InputException.oneLine(second.toString())
                + ", at the refused request or else at the end, innermost lines first: "
                + (changes.isEmpty() ? "nothing grew" : signed(all)) + "\n"
                + lines
                + (changes.size() > MOST_CHANGES
                        ? "  and " + (changes.size() - MOST_CHANGES) + " more call stack"
                                + (changes.size() == MOST_CHANGES + 1 ? "\n" : "s\n")
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

    private static String place(Change change) {
        String lines = change.frames.stream().map(CallStacks::shortened).collect(Collectors.joining(" < "));
        return (change.device == null ? "" : "device " + change.device + ": ")
                + (lines.isEmpty() ? "no call stack recorded" : lines);
    }

    Map<String, @Nullable Object> fields(String first, String second) {
        return object(
                "from", first,
                "to", second,
                "changes", changes.stream().map(Growth::fields).toList());
    }

    private static Map<String, @Nullable Object> fields(Change change) {
        Map<String, @Nullable Object> fields = new LinkedHashMap<>();
        if (change.device != null) {
            fields.put("device", change.device);
        }
        fields.put("frames", change.frames);
        fields.put("byteSize", change.byteSize);
        fields.put("blocks", change.blocks);
        return fields;
    }
}
