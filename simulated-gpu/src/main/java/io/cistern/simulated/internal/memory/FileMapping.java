package io.cistern.simulated.internal.memory;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;

/// Maps files. An interrupt closes the channel that maps, so the file is mapped once more; the interrupt stays
/// pending. The driver knows no interrupts.
public final class FileMapping {
    private FileMapping() {}

    /// Maps bytes of a file, which grows if it ends before them.
    public static MemorySegment map(Path file, MapMode mode, long offset, long byteSize, Arena arena)
            throws IOException {
        Set<OpenOption> options = mode.equals(MapMode.READ_ONLY)
                ? Set.of(StandardOpenOption.READ)
                : Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE);
        boolean interrupted = false;
        try {
            while (true) { // each round takes another interrupt
                interrupted |= Thread.interrupted();
                try (FileChannel channel = FileChannel.open(file, options)) {
                    return channel.map(mode, offset, byteSize, arena);
                } catch (ClosedByInterruptException again) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
