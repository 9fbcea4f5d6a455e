package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import java.io.UncheckedIOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/// Provides `logging`: a [LoggingAllocator] with a log of its own, which `allocator.extension(TraceLog.class)` finds.
/// Options: `file`, gzipped if it ends in `.gz`, overwritten if it is there; `rows`, after how many the log ends,
/// [TraceLog#DEFAULT_MAX_ROWS] by default; `upstream`, a spec.
public final class LoggingProvider extends AdaptorProvider {
    /// For [java.util.ServiceLoader].
    public LoggingProvider() {}

    @Override
    public String name() {
        return "logging";
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        String file = context.options().text("file").orElseThrow(() -> missing("file", "trace.csv.gz"));
        long rows = context.options().number("rows", 1, Long.MAX_VALUE).orElse(TraceLog.DEFAULT_MAX_ROWS);
        DeviceAllocator opened = context.upstream(upstream);
        try {
            return LoggingAllocator.owning(opened, TraceLog.open(Path.of(file), rows));
        } catch (UncheckedIOException | InvalidPathException e) {
            throw new ConfigurationException("'logging': " + e.getMessage(), e);
        }
    }
}
