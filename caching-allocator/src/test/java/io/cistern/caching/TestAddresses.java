package io.cistern.caching;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;

/// Addresses that are reserved: those that were freed first, as a driver does, which has only so many.
final class TestAddresses {
    private final Map<Long, Deque<Long>> freed = new HashMap<>();
    private long next = 1L << 40;

    long reserve(long byteSize) {
        Long again = freed.getOrDefault(byteSize, new ArrayDeque<>()).pollFirst();
        if (again != null) {
            return again;
        }
        long address = next;
        next += byteSize;
        return address;
    }

    void free(long address, long byteSize) {
        freed.computeIfAbsent(byteSize, _ -> new ArrayDeque<>()).addLast(address);
    }
}
