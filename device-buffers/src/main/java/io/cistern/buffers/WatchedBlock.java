package io.cistern.buffers;

import io.cistern.errors.UnknownAddressException;
import io.cistern.internal.leaks.DropWatch;

/// A block whose buffer is watched, so that a buffer that nobody closes is reported.
record WatchedBlock(DropWatch watch) implements Lifetime {
    @Override
    public void close(DeviceBuffer buffer, long address) {
        free(() -> buffer.memory().free(address, buffer.stream()));
    }

    @Override
    public void closeAfter(DeviceBuffer buffer, long address, long event) {
        free(() -> buffer.memory().freeAfter(address, event));
    }

    /// If the block was freed by its address before, the buffer has ended too, so the watch ends.
    private void free(Runnable free) {
        try {
            free.run();
        } catch (UnknownAddressException freedBefore) {
            watch.end();
            throw freedBefore;
        }
        watch.end();
    }
}
