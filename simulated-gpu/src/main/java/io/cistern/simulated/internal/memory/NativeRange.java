package io.cistern.simulated.internal.memory;

import io.cistern.cuda.CudaResult;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;

/// Native memory that the host reads and writes at its address: a mapped file that is deleted at once. Only
/// written pages take up space.
///
/// @param memory begins at the requested alignment
public record NativeRange(Arena arena, MemorySegment memory) {
    /// Maps memory; fails with OUT_OF_MEMORY.
    public static NativeRange map(long byteSize, long byteAlignment) {
        Arena arena = Arena.ofShared();
        try {
            MemorySegment whole = map(arena, byteSize + byteAlignment);
            return new NativeRange(arena, whole.asSlice(-whole.address() & (byteAlignment - 1), byteSize));
        } catch (IOException | OutOfMemoryError full) {
            arena.close();
            throw new DriverFailure(CudaResult.OUT_OF_MEMORY);
        }
    }

    private static MemorySegment map(Arena arena, long byteSize) throws IOException {
        Path file = Files.createTempFile("cistern-managed", "");
        try {
            return map(file, MapMode.READ_WRITE, 0, byteSize, arena);
        } finally {
            Files.delete(file);
        }
    }

    /// Maps bytes of a file, which grows if it ends before them. An interrupt closes the channel that maps, so the file
    /// is mapped once more; the interrupt stays pending. The driver ignores interrupts.
    static MemorySegment map(Path file, MapMode mode, long offset, long byteSize, Arena arena) throws IOException {
        Set<OpenOption> options = mode.equals(MapMode.READ_ONLY)
                ? Set.of(StandardOpenOption.READ)
                : Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE);
        boolean interrupted = false;
        try {
            while (true) { // each iteration absorbs another interrupt
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

    public void close() {
        arena.close();
    }
}
