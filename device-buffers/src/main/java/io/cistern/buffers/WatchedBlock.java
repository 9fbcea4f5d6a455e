package io.cistern.buffers;

import io.cistern.internal.leaks.DropWatch;

/// A block whose buffer is watched, so that a buffer that nobody closes is reported.
record WatchedBlock(DropWatch watch) implements Lifetime {
    @Override
    public void close(DeviceBuffer buffer, long address) {
        buffer.memory().free(address, buffer.stream());
        watch.end();
    }

    @Override
    public void closeAfter(DeviceBuffer buffer, long address, long event) {
        buffer.memory().freeAfter(address, event);
        watch.end();
    }
}
