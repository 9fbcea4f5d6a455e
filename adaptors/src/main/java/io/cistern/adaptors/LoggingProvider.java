package io.cistern.adaptors;

import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.SpecOption;
import java.io.UncheckedIOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;

/// Provides `logging`, a [LoggingAllocator] with its own log, which `allocator.extension(TraceLog.class)`
/// returns. Its options:
///
/// - `file`: the path of the log. The log is gzipped if the name ends in `.gz`, and overwrites an existing
///   file.
/// - `rows`: the number of rows after which the log ends, [TraceLog#DEFAULT_MAX_ROWS] by default.
/// - `upstream`: the spec of the allocator to log.
public final class LoggingProvider extends AdaptorProvider {
    /// Created on first use, since every program with this JAR creates the provider.
    private static final class Options {
        static final SpecOption<String> FILE = SpecOption.of(
                "logging",
                "file",
                "a path",
                REQUIRED,
                "the trace, gzipped if it ends in `.gz`; an existing file is overwritten",
                AllocatorOptions::text);
        static final SpecOption<Long> ROWS = SpecOption.of(
                "logging",
                "rows",
                "a whole number from 1",
                String.valueOf(TraceLog.DEFAULT_MAX_ROWS),
                "the maximum rows of the trace",
                (options, key) -> options.number(key, 1, Long.MAX_VALUE));
    }

    /// Creates the provider; [java.util.ServiceLoader] calls this.
    public LoggingProvider() {}

    @Override
    public String name() {
        return "logging";
    }

    @Override
    List<SpecOption<?>> ownOptions() {
        return List.of(Options.FILE, Options.ROWS);
    }

    @Override
    DeviceAllocator open(AllocatorContext context, String upstream) {
        String file = required(Options.FILE, context, "trace.csv.gz");
        long rows = Options.ROWS.read(context.options()).orElse(TraceLog.DEFAULT_MAX_ROWS);
        DeviceAllocator opened = context.upstream(upstream);
        try {
            return LoggingAllocator.owning(opened, TraceLog.open(Path.of(file), rows));
        } catch (UncheckedIOException | InvalidPathException e) {
            throw new ConfigurationException("'logging': " + e.getMessage(), e);
        }
    }
}
