package io.cistern.onnxruntime;

import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.errors.UnknownAddressException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Blocks of sessions. ONNX Runtime frees a block while work on it is still queued, so each is allocated and
/// freed in its [BlockOrder]. A free that fails leaves the block alive; it is freed with the next allocation.
///
/// **Threads.** Any.
final class SessionBlocks {
    private final DeviceMemory memory;
    private final int device;
    private final Counters all = new Counters();
    private final Map<Long, Block> blocks = new ConcurrentHashMap<>();
    private volatile boolean anyOwed;

    SessionBlocks(DeviceMemory memory, int device) {
        this.memory = memory;
        this.device = device;
    }

    /// A live block.
    private static final class Block {
        final long byteSize;
        final BlockOrder order;
        final @Nullable SessionMemory session;
        final long allocatingThread = Thread.currentThread().threadId();
        /// Whether ONNX Runtime has freed it, and the free failed.
        volatile boolean owed;

        Block(long byteSize, BlockOrder order, @Nullable SessionMemory session) {
            this.byteSize = byteSize;
            this.order = order;
            this.session = session;
        }
    }

    Counters all() {
        return all;
    }

    /// Allocates a block.
    ///
    /// @param session whom it belongs to, if that is known
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory, or a limit is reached
    long allocate(long byteSize, BlockOrder order, @Nullable SessionMemory session) {
        if (anyOwed) {
            freeOwed();
        }
        Block block = new Block(byteSize, order, session);
        long address = limited(byteSize, order.stream().handle(), session);
        try {
            order.beforeUse();
            blocks.put(address, block);
        } catch (Throwable failure) {
            memory.free(address, order.stream().handle());
            throw failure;
        }
        boolean onStream = !(order instanceof BlockOrder.AnyStream);
        all.allocated(byteSize, onStream);
        if (session != null) {
            session.counters().allocated(byteSize, onStream);
        }
        return address;
    }

    private long limited(long byteSize, long stream, @Nullable SessionMemory session) {
        var limit = session == null ? null : session.settings().limit().orElse(null);
        if (limit == null) {
            return memory.allocate(byteSize, device, stream);
        }
        try (Scope _ = memory.current(device).enter(ScopeOptions.all().limit(limit))) {
            return memory.allocate(byteSize, device, stream);
        }
    }

    /// Frees a block.
    ///
    /// @return whom it belonged to, if that is known
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the free is owed then
    @Nullable
    SessionMemory free(long address) {
        Block block = blocks.get(address);
        if (block == null) {
            throw new UnknownAddressException(address);
        }
        free(address, block);
        return block.session;
    }

    private void free(long address, Block block) {
        try {
            block.order.afterUse(block.allocatingThread);
            memory.free(address, block.order.stream().handle());
        } catch (Throwable failure) {
            if (memory.moduleSupport().isLive(address)) {
                block.owed = true;
                anyOwed = true;
            } else {
                forget(address, block);
            }
            throw failure;
        }
        forget(address, block);
    }

    private void forget(long address, Block block) {
        blocks.remove(address, block); // this very block: another thread may have the address again
        all.freed(block.byteSize);
        if (block.session != null) {
            block.session.counters().freed(block.byteSize);
        }
    }

    private void freeOwed() {
        anyOwed = false;
        blocks.forEach((address, block) -> {
            if (block.owed) {
                free(address, block);
            }
        });
    }
}
