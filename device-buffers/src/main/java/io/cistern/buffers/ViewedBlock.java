package io.cistern.buffers;

import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// The lifetime of a buffer that the host sees: the host's view ends before the memory does.
final class ViewedBlock implements Lifetime {
    private final Arena arena = Arena.ofShared();
    private final MemorySegment view;

    /// The lifetime without the view; null if the buffer owns its block alone. Written while the buffer is
    /// busy.
    private volatile @Nullable Lifetime within;

    ViewedBlock(long address, long byteSize, @Nullable Lifetime within) {
        this.view = NativeCode.memory(address, byteSize, arena);
        this.within = within;
    }

    MemorySegment view() {
        return view;
    }

    @Nullable
    Lifetime within() {
        return within;
    }

    void within(Lifetime other) {
        within = other;
    }

    boolean hasEnded() {
        return !arena.scope().isAlive();
    }

    @Override
    public boolean isOver() {
        Lifetime depends = within;
        return depends != null && depends.isOver();
    }

    @Override
    public String whatEnded() {
        Lifetime depends = within;
        return depends == null ? "" : depends.whatEnded();
    }

    @Override
    public long block(long address) {
        Lifetime depends = within;
        return depends == null ? address : depends.block(address);
    }

    @Override
    public boolean isBorrowed() {
        Lifetime depends = within;
        return depends != null && depends.isBorrowed();
    }

    @Override
    public void usedOnAnotherStream() {
        Lifetime depends = within;
        if (depends != null) {
            depends.usedOnAnotherStream();
        }
    }

    @Override
    public void close(DeviceBuffer buffer, long address) {
        endView();
        Lifetime depends = within;
        if (depends == null) {
            buffer.memory().free(address, buffer.stream());
        } else {
            depends.close(buffer, address);
        }
    }

    @Override
    public void closeAfter(DeviceBuffer buffer, long address, long event) {
        endView();
        Lifetime depends = within;
        if (depends == null) {
            buffer.memory().freeAfter(address, event);
        } else {
            depends.closeAfter(buffer, address, event);
        }
    }

    /// @throws IllegalStateException if native code uses the view now
    private void endView() {
        if (!hasEnded()) {
            arena.close();
        }
    }
}
