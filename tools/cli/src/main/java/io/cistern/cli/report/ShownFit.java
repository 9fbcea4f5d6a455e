package io.cistern.cli.report;

import java.util.List;

/// How a program fits, for the head of a page.
///
/// @param verdicts a sentence for each device and allocator, the worst first
/// @param facts what they rest on, in lines; empty if nobody asked how it fits
public record ShownFit(List<String> verdicts, String facts) {
    /// Nobody asked.
    public static final ShownFit NONE = new ShownFit(List.of(), "");
}
