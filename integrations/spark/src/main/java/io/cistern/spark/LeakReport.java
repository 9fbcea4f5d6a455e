package io.cistern.spark;

import io.cistern.diagnostics.LiveBlock;
import java.io.Serializable;
import java.util.List;
import java.util.stream.Collectors;

/// Describes device memory that a task had not freed at its end, and that Cistern freed for it.
///
/// @param executorId the executor
/// @param task the task
/// @param site the call stack of the allocations, one frame on each line, innermost first; empty if
///     `cistern.leaks` records none
/// @param blocks number of blocks
/// @param byteSize bytes of all these blocks
public record LeakReport(String executorId, TaskName task, String site, long blocks, long byteSize)
        implements Serializable {
    private static final int MAX_FRAMES = 8;

    /// Returns a task's reports, one for each place that allocated.
    static List<LeakReport> of(String executorId, TaskName task, List<LiveBlock> leaked) {
        return leaked.stream().collect(Collectors.groupingBy(LeakReport::siteOf)).entrySet().stream()
                .map(each -> new LeakReport(
                        executorId,
                        task,
                        each.getKey(),
                        each.getValue().size(),
                        each.getValue().stream().mapToLong(LiveBlock::byteSize).sum()))
                .toList();
    }

    private static String siteOf(LiveBlock block) {
        return block.site().stream()
                .limit(MAX_FRAMES)
                .map(StackTraceElement::toString)
                .collect(Collectors.joining("\n"));
    }

    /// Returns a human-readable description of the leak, with the task and the call stack.
    @Override
    public String toString() {
        return task + " on executor " + executorId + " left " + blocks + " blocks of " + byteSize
                + " bytes in total, which Cistern freed; allocated at "
                + (site.isEmpty() ? "an unknown place (spark.cistern.leaks=sites records it)" : site);
    }
}
