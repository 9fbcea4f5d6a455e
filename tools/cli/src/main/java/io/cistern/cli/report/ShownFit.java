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
/// @param answers that of each device, in the order in which a page shows them; empty if nobody asked how it fits
/// @param leaks what looks like a leak on each device
public record ShownFit(List<Answer> answers, List<Leaking> leaks) {
    /// Nobody asked.
    public static final ShownFit NONE = new ShownFit(List.of(), List.of());

    /// Returns what the pages after the first one show.
    public ShownFit onLaterPages() {
        return new ShownFit(List.of(), leaks);
    }

    /// How a program fits on one device.
    ///
    /// @param fits whether nothing fails with the allocators that the answer is about
    /// @param heading what was recorded, by whom
    /// @param facts names and what is to say of them; a name is empty if it is that of the fact before
    /// @param columns the lines of headings of a table of allocators
    /// @param rows the cells of that table
    /// @param notes lines about the table
    /// @param verdicts a sentence for each allocator that the answer is about
    /// @param reasons sentences that explain the verdicts
    public record Answer(
            boolean fits,
            String heading,
            List<Fact> facts,
            List<List<String>> columns,
            List<List<String>> rows,
            List<String> notes,
            List<String> verdicts,
            List<String> reasons) {
        Map<String, @Nullable Object> fields() {
            return object(
                    "heading", heading,
                    "facts", array(facts, fact -> object("name", fact.name, "text", fact.text)),
                    "columns", columns,
                    "rows", rows,
                    "notes", notes,
                    "verdicts", verdicts,
                    "reasons", reasons);
        }
    }

    /// One of the facts.
    public record Fact(String name, String text) {}

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
