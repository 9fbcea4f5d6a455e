package io.cistern.cli.top;

import static io.cistern.cli.common.ResultWriter.array;
import static io.cistern.cli.common.ResultWriter.object;

import io.cistern.observability.MemoryFigures;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The figures of one device memory, read from the watched program's bean.
record Reading(String memory, MemoryFigures figures) {
    Map<String, @Nullable Object> fields(String pid, List<Row> rows, List<WaitingThread> waiting) {
        List<Row> own = rows.stream().filter(row -> row.memory().equals(memory)).toList();
        return object(
                "pid", Long.parseLong(pid),
                "memory", memory,
                "nanoTime", figures.nanoTime(),
                "devices", array(figures.devices(), Reading::fields),
                "allocators", array(own, Row::fields),
                "waiting", array(waiting, WaitingThread::fields));
    }

    private static Map<String, @Nullable Object> fields(MemoryFigures.OfDevice device) {
        return object(
                "device", device.device(),
                "name", device.name(),
                "totalBytes", known(device.totalBytes()),
                "freeBytes", known(device.freeBytes()));
    }

    static @Nullable Long known(long number) {
        return number < 0 ? null : number;
    }
}
