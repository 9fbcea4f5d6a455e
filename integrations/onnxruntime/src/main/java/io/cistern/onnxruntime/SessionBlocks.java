package io.cistern.onnxruntime;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.Scope;
import io.cistern.ScopeOptions;
import io.cistern.errors.UnknownAddressException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Allocates and frees the blocks of sessions. ONNX Runtime frees a block while work on it is still queued, so
/// each block has a [BlockOrder].
///
/// **A free that fails** leaves the block live and *owed*. The next allocation, free or close frees owed blocks
/// after all work of the device. One thread at a time does this.
///
/// **Threads.** Any.
final class SessionBlocks {
    private final DeviceMemory memory;
    private final int device;
    private final Counters all = new Counters();
    private final Map<Long, Block> blocks = new ConcurrentHashMap<>();
    private final Consumer<SessionMemory> afterFree;
    private final UnheardFrees unheard = new UnheardFrees();
    private final AtomicBoolean processing = new AtomicBoolean();
    private volatile boolean anyOwed;

    /// @param afterFree called after each free of a session's block
    SessionBlocks(DeviceMemory memory, int device, Consumer<SessionMemory> afterFree) {
        this.memory = memory;
        this.device = device;
        this.afterFree = afterFree;
    }

    /// A live block.
    private static final class Block {
        final long byteSize;
        final BlockOrder order;
        final @Nullable SessionMemory session;
        final long allocatingThread = Thread.currentThread().threadId();
        /// True if ONNX Runtime freed the block and Cistern's free failed.
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
    /// @param session the session to which the block belongs, if known
    /// @throws io.cistern.errors.DeviceOutOfMemoryException if there is no memory, or a limit is reached
    long allocate(long byteSize, BlockOrder order, @Nullable SessionMemory session) {
        processPendingFrees();
        Block block = new Block(byteSize, order, session);
        long address = limited(byteSize, order.stream().handle(), session);
        count(block);
        try {
            blocks.put(address, block);
            order.beforeUse();
            return address;
        } catch (Throwable failure) {
            undo(address, block);
            throw failure;
        }
    }

    private void count(Block block) {
        boolean onStream = !(block.order instanceof BlockOrder.AnyStream);
        all.allocated(block.byteSize, onStream);
        if (block.session != null) {
            block.session.counters().allocated(block.byteSize, onStream);
        }
    }

    private void undo(long address, Block block) {
        try {
            memory.free(address, block.order.stream().handle());
        } catch (Throwable failure) {
            owe(address);
            return;
        }
        forget(address, block);
    }

    /// Records a free that failed. Needs no Java heap.
    private void owe(long address) {
        unheard.add(address);
        anyOwed = true;
    }

    private long limited(long byteSize, long stream, @Nullable SessionMemory session) {
        var limit = session == null ? null : session.settings().limit().orElse(null);
        if (limit == null) {
            return memory.allocate(byteSize, device, stream);
        }
        while (true) { // each turn needs one more swap of the current allocator
            Allocator serving = memory.moduleSupport().serving(device, stream);
            try (Scope _ = serving.enter(ScopeOptions.all().limit(limit))) {
                return memory.allocate(byteSize, device, stream);
            } catch (IllegalStateException closed) {
                if (serving.equals(memory.moduleSupport().serving(device, stream))) {
                    throw closed;
                }
            }
        }
    }

    /// Frees a block.
    ///
    /// @throws UnknownAddressException if no live block begins there
    /// @throws io.cistern.cuda.CudaException if the driver refuses; the free is owed then
    void free(long address) {
        processPendingFrees();
        Block block;
        try {
            block = blocks.get(address);
        } catch (OutOfMemoryError ofTheHeap) {
            owe(address);
            throw ofTheHeap;
        }
        if (block == null) {
            throw new UnknownAddressException(address);
        }
        boolean mayBeGone = block.session != null && block.session.isClosed();
        free(address, block, mayBeGone ? BlockOrder.NO_THREAD : block.allocatingThread);
    }

    private void free(long address, Block block, long allocatingThread) {
        try {
            block.order.afterUse(allocatingThread);
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
        all.freed(block.byteSize);
        if (block.session != null) {
            block.session.counters().freed(block.byteSize);
            afterFree.accept(block.session);
        }
        blocks.remove(address, block); // only this block: another thread may have its address by now
    }

    boolean has(long address) {
        return blocks.containsKey(address);
    }

    boolean hasAny() {
        return anyOwed || !blocks.isEmpty();
    }

    /// Frees the owed blocks that can be freed now.
    void processPendingFrees() {
        if (anyOwed && processing.compareAndSet(false, true)) {
            try {
                anyOwed = false;
                unheard.takeAll(this::mark);
                blocks.forEach(this::freeOwed);
            } catch (Throwable again) {
                anyOwed = true; // for example a full Java heap; the present call must not fail for it
            } finally {
                processing.set(false);
            }
        }
    }

    private void mark(long address) {
        Block block = blocks.get(address);
        if (block != null) {
            block.owed = true;
        } else {
            memory.moduleSupport().freeBehindAll(address); // the Java heap had no room for its record
        }
    }

    private void freeOwed(long address, Block block) {
        if (block.owed) {
            block.owed = false;
            try {
                free(address, block, BlockOrder.NO_THREAD);
            } catch (Throwable again) {
                // It is owed again.
            }
        }
    }
}
