package io.cistern.buffers;

import io.cistern.DeviceMemory;
import java.util.LinkedHashMap;

/// Holds the objects that the buffers, arenas and copies of one device memory share.
///
/// **Threads.** Any.
final class BufferSupport implements AutoCloseable {
    /// The most arena names whose sizes are remembered. There is a limit, since a program may name each arena after
    /// its task.
    static final int MAX_ARENA_NAMES = 1024;

    final CopyOptions copyOptions = new CopyOptions();
    final PinnedMemory pinned;
    final PageableCopies pageableCopies;
    final ForeignMemory foreign;

    /// By the arenas' names, least recently used first. Guarded by itself.
    private final LinkedHashMap<String, ArenaSizes> arenaSizes = new LinkedHashMap<>(16, 0.75f, true);

    private BufferSupport(DeviceMemory memory) {
        pinned = memory.moduleSupport()
                .attachment(PinnedMemory.class, PinnedMemory::new); // the core finds it as its HostMemory
        pageableCopies = new PageableCopies(memory.driver(), copyOptions);
        foreign = new ForeignMemory(memory);
    }

    static BufferSupport of(DeviceMemory memory) {
        return memory.moduleSupport().attachment(BufferSupport.class, BufferSupport::new);
    }

    @Override
    public void close() {
        pinned.close();
    }

    /// Returns the sizes that arenas of a name needed so far, unless many other names were asked for since.
    ArenaSizes arenaSizes(String name) {
        synchronized (arenaSizes) {
            ArenaSizes sizes = arenaSizes.computeIfAbsent(name, _ -> new ArenaSizes());
            if (arenaSizes.size() > MAX_ARENA_NAMES) {
                arenaSizes.pollFirstEntry();
            }
            return sizes;
        }
    }
}
