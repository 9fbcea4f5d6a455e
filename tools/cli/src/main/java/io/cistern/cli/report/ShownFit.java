package io.cistern.cli.report;

import java.util.List;

/// How a program fits, for the head of a page.
///
/// @param verdicts a sentence for each device and allocator, the worst first
/// @param facts what they rest on, in lines; empty if nobody asked how it fits
/// @param leaks what looks like a leak on each device
public record ShownFit(List<String> verdicts, String facts, List<ShownLeaks> leaks) {
    /// Nobody asked.
    public static final ShownFit NONE = new ShownFit(List.of(), "", List.of());

    /// Returns what the pages after the first one show.
    public ShownFit onLaterPages() {
        return new ShownFit(List.of(), "", leaks);
    }
}
