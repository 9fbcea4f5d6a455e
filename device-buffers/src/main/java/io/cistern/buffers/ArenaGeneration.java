package io.cistern.buffers;

/// The lifetime of an arena's buffers: from one reset to the next.
final class ArenaGeneration implements Lifetime {
    private final DeviceArena arena;
    private final long number;
    private volatile boolean over;

    ArenaGeneration(DeviceArena arena, long number) {
        this.arena = arena;
        this.number = number;
    }

    long number() {
        return number;
    }

    void end() {
        over = true;
    }

    @Override
    public boolean isOver() {
        return over;
    }

    @Override
    public String whatEnded() {
        return "it belongs to generation " + number + " of " + arena;
    }

    @Override
    public long block(long address) {
        return arena.chunkOf(address);
    }

    @Override
    public void usedOnAnotherStream() {
        arena.usedOnAnotherStream();
    }

    /// A buffer's memory is freed with the arena's.
    @Override
    public void close(DeviceBuffer buffer, long address) {}

    /// The arena's memory waits for the event.
    @Override
    public void closeAfter(DeviceBuffer buffer, long address, long event) {
        arena.useUntil(address, event);
    }
}
