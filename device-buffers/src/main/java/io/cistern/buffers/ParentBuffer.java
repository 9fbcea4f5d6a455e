package io.cistern.buffers;

/// The lifetime of a slice that is a view: it ends with its parent, and keeps the parent reachable.
record ParentBuffer(DeviceBuffer parent) implements Lifetime {
    @Override
    public boolean isOver() {
        return parent.isClosed();
    }

    @Override
    public String whatEnded() {
        return "the buffer that it is a slice of is closed";
    }

    @Override
    public long block(long address) {
        return parent.block();
    }

    @Override
    public boolean isBorrowed() {
        return parent.isBorrowed();
    }

    @Override
    public void usedOnAnotherStream() {
        parent.usedOnAnotherStream();
    }

    @Override
    public void close(DeviceBuffer slice, long address) {}

    /// The parent's memory waits for the event.
    @Override
    public void closeAfter(DeviceBuffer slice, long address, long event) {
        if (!isOver()) {
            slice.recordUseUntil(parent.block(), event);
        }
    }
}
