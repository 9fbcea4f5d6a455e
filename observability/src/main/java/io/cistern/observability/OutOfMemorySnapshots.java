package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.cuda.settings.ByteSizes;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.diagnostics.OutOfMemoryReport;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/// Writes a [snapshot][MemorySnapshot] to a folder when a request fails, for lack of memory or because of a
/// limit, up to a given number of files: `cistern-oom-PID-1.json`, `-2.json`, …
///
/// The thread whose request fails writes the file before it receives the exception. Failures to write are
/// logged.
///
/// **Threads.** Any.
public final class OutOfMemorySnapshots {
    private static final System.Logger LOG = System.getLogger(OutOfMemorySnapshots.class.getName());

    private final DeviceMemory memory;
    private final Path folder;
    private final int most;
    private final AtomicInteger written = new AtomicInteger();

    private OutOfMemorySnapshots(DeviceMemory memory, Path folder, int most) {
        this.memory = memory;
        this.folder = folder;
        this.most = most;
    }

    /// Starts to write snapshots.
    ///
    /// @param folder where to write; created if it does not exist
    /// @param most the maximum number of files; after that, refusals write none
    /// @return a registration; closing it stops the writing
    public static Registration writeTo(DeviceMemory memory, Path folder, int most) {
        var snapshots = new OutOfMemorySnapshots(memory, folder, most);
        return memory.listeners().onRareEvent(snapshots::hear);
    }

    private void hear(MemoryEvent event) {
        if (event instanceof MemoryEvent.OutOfMemory refusal && written.get() < most) {
            int number = written.incrementAndGet();
            if (number <= most) {
                write(refusal.report(), number);
            }
        }
    }

    private void write(OutOfMemoryReport report, int number) {
        Path file = folder.resolve("cistern-oom-" + ProcessHandle.current().pid() + "-" + number + ".json");
        try {
            Files.createDirectories(folder);
            MemorySnapshot.take(memory, report).write(file);
            LOG.log(Level.WARNING, refusal(report) + ": see " + file);
        } catch (IOException failure) {
            LOG.log(Level.WARNING, "the snapshot " + file + " could not be written", failure);
        }
    }

    /// The report does not say whether the device or a limit refused, so the text does not either.
    private static String refusal(OutOfMemoryReport report) {
        String by = report.allocators().isEmpty()
                ? ""
                : " by '" + report.allocators().getFirst().name() + "'";
        return "a request of " + ByteSizes.count(report.byteSize()) + " on device " + report.device() + " was refused"
                + by;
    }
}
