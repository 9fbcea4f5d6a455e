package io.cistern.buffers;

import io.cistern.DeviceMemory;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Holds the objects that the buffers, arenas and copies of one device memory share.
///
/// **Threads.** Any.
final class BufferSupport implements AutoCloseable {
    final CopyOptions copyOptions = new CopyOptions();
    final PinnedMemory pinned;
    final PageableCopies pageableCopies;
    final ForeignMemory foreign;
    private final Map<String, ArenaSizes> arenaSizes = new ConcurrentHashMap<>();

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

    /// Returns the sizes that arenas of a name needed so far.
    ArenaSizes arenaSizes(String name) {
        return arenaSizes.computeIfAbsent(name, _ -> new ArenaSizes());
    }
}
