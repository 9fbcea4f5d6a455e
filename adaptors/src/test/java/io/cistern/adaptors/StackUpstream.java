package io.cistern.adaptors;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/// An upstream that hands the address freed last out again at once, fails on demand, and runs something of the
/// test's after it gave an address up and before its `free` returns: the moment in which another thread may get
/// that address.
final class StackUpstream implements DeviceAllocator {
    static final long BLOCK = 1 << 20;

    private final Deque<Long> idle = new ArrayDeque<>();
    private final Map<Long, Long> live = new HashMap<>();
    private long next = 3 * BLOCK / 2;
    private int failures;
    final List<String> calls = new ArrayList<>();
    Runnable beforeFreeReturns = () -> {};

    /// The next allocations fail.
    StackUpstream failing(int times) {
        failures = times;
        return this;
    }

    @Override
    public synchronized long allocate(long byteSize, int device, long stream) {
        if (failures > 0) {
            failures--;
            throw new DeviceOutOfMemoryException(byteSize, device, "upstream is full");
        }
        long address = idle.isEmpty() ? next : idle.pop();
        next = Math.max(next, address + 2 * BLOCK);
        live.put(address, byteSize);
        return address;
    }

    @Override
    public void free(long address, long byteSize, int device, long stream) {
        Runnable during;
        synchronized (this) {
            if (!live.remove(address, byteSize)) {
                throw new AssertionError("freed %d of %d bytes, live are %s".formatted(address, byteSize, live));
            }
            idle.push(address);
            during = beforeFreeReturns;
            beforeFreeReturns = () -> {};
        }
        during.run();
    }

    synchronized int liveBlocks() {
        return live.size();
    }

    @Override
    public OptionalLong reservedBytes(int device) {
        return OptionalLong.of(77 + device);
    }

    @Override
    public long trim(int device, long keepBytes) {
        calls.add("trim " + device + " " + keepBytes);
        return 5;
    }

    @Override
    public void streamClosing(int device, long stream) {
        calls.add("streamClosing " + device + " " + stream);
    }

    @Override
    public void close() {
        calls.add("close");
    }
}
