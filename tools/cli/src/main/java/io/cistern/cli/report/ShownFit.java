package io.cistern.cli.report;

import static io.cistern.cli.common.ResultWriter.array;
import static io.cistern.cli.common.ResultWriter.object;

import io.cistern.cli.trace.Leaks;
import io.cistern.cli.trace.Leaks.Leak;
import io.cistern.cli.trace.Recording;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// How a program fits, for the head of a page.
///
/// @param verdicts a sentence for each device and allocator, the worst first
/// @param facts what they rest on, in lines; empty if nobody asked how it fits
/// @param leaks what looks like a leak on each device
public record ShownFit(List<String> verdicts, String facts, List<Leaking> leaks) {
    /// Nobody asked.
    public static final ShownFit NONE = new ShownFit(List.of(), "", List.of());

    /// Returns what the pages after the first one show.
    public ShownFit onLaterPages() {
        return new ShownFit(List.of(), "", leaks);
    }

    /// The sites that look like leaks on one device.
    public record Leaking(int device, Leaks leaks) {
        static List<Leaking> of(Recording recording) {
            return recording.byDevice().stream()
                    .map(each -> new Leaking((int) each.ordinals()[0], Leaks.of(each)))
                    .toList();
        }

        Map<String, @Nullable Object> fields() {
            return object("device", device, "unknown", leaks.unknown(), "found", array(leaks.found(), Leaking::fields));
        }

        private static Map<String, @Nullable Object> fields(Leak leak) {
            return object(
                    "site", leak.site(),
                    "byteSize", leak.byteSize(),
                    "rises", leak.rises(),
                    "allocated", leak.made(),
                    "freed", leak.freed());
        }
    }
}
