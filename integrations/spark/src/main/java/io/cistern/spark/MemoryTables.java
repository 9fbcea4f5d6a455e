package io.cistern.spark;

import io.cistern.spark.ExecutorFigures.PoolFigures;
import java.util.List;
import java.util.Locale;

/// Renders the figures of a cluster as HTML tables, with the CSS classes of Spark's own pages.
final class MemoryTables {
    private static final List<String> DEVICE_COLUMNS = List.of(
            "Executor",
            "Host",
            "Device",
            "Allocator",
            "Memory",
            "Requested",
            "Peak",
            "Reserved",
            "Tasks",
            "Spilled now: host of limit",
            "Spilled now: files",
            "Spilled in total",
            "Waited",
            "Retries",
            "Splits",
            "Leaked");
    private static final List<String> POOL_COLUMNS = List.of("Executor", "Task", "Requested", "Peak", "Limit");
    private static final List<String> LEAK_COLUMNS =
            List.of("Last task", "Last executor", "Blocks", "Bytes", "Allocated at");

    private final ClusterFigures figures;
    private final StringBuilder html = new StringBuilder();

    MemoryTables(ClusterFigures figures) {
        this.figures = figures;
    }

    /// Returns one element of well-formed XML.
    String html() {
        html.append("<div>");
        summary();
        section(
                "Devices",
                DEVICE_COLUMNS,
                figures.alive().stream().map(this::executor).toList());
        section("Pools of running tasks", POOL_COLUMNS, pools());
        section("Leaks", LEAK_COLUMNS, figures.leaks().stream().map(this::leak).toList());
        section(
                "Executors that are gone",
                DEVICE_COLUMNS,
                figures.gone().stream().map(this::executor).toList());
        return html.append("</div>").toString();
    }

    private void summary() {
        ClusterTotal total = figures.total();
        html.append("<ul class=\"list-unstyled\" id=\"gpu-memory-summary\">");
        item("Executors now", Long.toString(figures.executorCount()));
        item("Requested now", bytes(total.requestedBytes()));
        item("Spilled", bytes(total.spilledBytes()) + " in " + total.spills() + " spills");
        item("Waited for memory", time(total.blockedNanos()));
        item("Retries", Long.toString(total.retries()));
        item("Splits", Long.toString(total.splits()));
        item("Leaked, and freed", bytes(total.leakedBytes()));
        html.append("</ul>");
    }

    private void item(String name, String value) {
        html.append("<li><strong>")
                .append(name)
                .append(": </strong>")
                .append(escaped(value))
                .append("</li>");
    }

    private void section(String title, List<String> columns, List<List<String>> rows) {
        html.append("<h4>").append(title).append(" (").append(rows.size()).append(")</h4>");
        if (rows.isEmpty()) {
            return;
        }
        html.append("<table class=\"table table-bordered table-sm table-striped\"><thead><tr>");
        columns.forEach(column -> cell("th", column));
        html.append("</tr></thead><tbody>");
        rows.forEach(row -> {
            html.append("<tr>");
            row.forEach(value -> cell("td", value));
            html.append("</tr>");
        });
        html.append("</tbody></table>");
    }

    private void cell(String tag, String text) {
        html.append('<')
                .append(tag)
                .append(" style=\"white-space: pre-line\">")
                .append(escaped(text))
                .append("</")
                .append(tag)
                .append('>');
    }

    private List<String> executor(ExecutorFigures each) {
        return List.of(
                each.executorId(),
                each.host(),
                each.device().ordinal() + " " + each.device().name()
                        + (each.device().simulated() ? " (simulated)" : ""),
                each.device().allocator(),
                bytes(each.device().totalBytes()),
                bytes(each.device().requestedBytes()) + " in " + each.device().liveBlocks() + " blocks",
                bytes(each.device().requestedPeakBytes()),
                each.device().reservedBytes() < 0
                        ? "unknown"
                        : bytes(each.device().reservedBytes()),
                each.tasks().running() + " running, " + each.tasks().ended() + " ended",
                bytes(each.spill().hostBytes()) + " of " + bytes(each.spill().hostLimitBytes()),
                bytes(each.spill().fileBytes()),
                bytes(each.spill().spilledBytes()) + " in " + each.spill().spills() + " spills",
                time(each.tasks().blockedNanos()),
                Long.toString(each.tasks().retries()),
                Long.toString(each.tasks().splits()),
                bytes(each.tasks().leakedBytes()));
    }

    private List<List<String>> pools() {
        return figures.alive().stream()
                .flatMap(executor -> executor.pools().stream().map(pool -> pool(executor.executorId(), pool)))
                .toList();
    }

    private static List<String> pool(String executorId, PoolFigures pool) {
        return List.of(
                executorId,
                pool.task().toString(),
                bytes(pool.requestedBytes()),
                bytes(pool.peakBytes()),
                pool.limitBytes() < 0 ? "none" : bytes(pool.limitBytes()));
    }

    private List<String> leak(LeakReport leak) {
        return List.of(
                leak.task().toString(),
                leak.executorId(),
                Long.toString(leak.blocks()),
                bytes(leak.byteSize()),
                leak.site().isEmpty() ? "unknown" : leak.site());
    }

    static String bytes(long byteSize) {
        String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
        double value = byteSize;
        int unit = 0;
        while (value >= 1024 && unit < units.length - 1) {
            value /= 1024;
            unit++;
        }
        return String.format(Locale.ROOT, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    }

    private static String time(long nanos) {
        return String.format(Locale.ROOT, "%.1f s", nanos / 1e9);
    }

    private static String escaped(String text) {
        return text.replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
                .replace("\"", "&quot;");
    }
}
