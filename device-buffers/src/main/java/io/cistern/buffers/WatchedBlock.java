package io.cistern.buffers;

import io.cistern.errors.UnknownAddressException;
import io.cistern.errors.UnusableStreamException;
import io.cistern.internal.leaks.DropWatch;

/// A block whose buffer is watched, so that a buffer that nobody closes is reported.
record WatchedBlock(DropWatch watch) implements Lifetime {
    @Override
    public void close(DeviceBuffer buffer, long address) {
        free(buffer, () -> buffer.memory().free(address, buffer.stream()));
    }

    @Override
    public void closeAfter(DeviceBuffer buffer, long address, long event) {
        free(buffer, () -> buffer.memory().freeAfter(address, event));
    }

    /// If the block was freed by its address before, or is freed after a capture, the buffer has ended too.
    private void free(DeviceBuffer buffer, Runnable free) {
        try {
            free.run();
        } catch (UnknownAddressException freedBefore) {
            watch.end();
            throw freedBefore;
        } catch (UnusableStreamException refused) {
            if (!buffer.isFreeRefused()) {
                watch.end();
            }
            throw refused;
        }
        watch.end();
    }
}
