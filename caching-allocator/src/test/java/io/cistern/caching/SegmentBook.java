package io.cistern.caching;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// Keeps account, from events alone, of the addresses at which an allocator has memory: what is acquired was not there,
/// and what is released was. For one thread and pages of whole slots.
final class SegmentBook {
    private static final long SLOT = 2 << 20;

    private final Set<Long> slots = new HashSet<>();
    private final List<String> wrong = new ArrayList<>();
    private final Registration registration;

    SegmentBook(DeviceMemory memory) {
        registration = memory.listeners().onRareEvent(this::heard);
    }

    private void heard(MemoryEvent event) {
        switch (event) {
            case MemoryEvent.SegmentAcquired acquired -> acquired(acquired.address(), acquired.byteSize());
            case MemoryEvent.SegmentReleased released -> released(released.address(), released.byteSize());
            case MemoryEvent.PageMoved moved -> {
                released(moved.formerAddress(), moved.byteSize());
                acquired(moved.address(), moved.byteSize());
            }
            default -> {}
        }
    }

    private void acquired(long address, long byteSize) {
        for (long at = address; at < address + byteSize; at += SLOT) {
            if (!slots.add(at)) {
                wrong.add("acquired twice: 0x%x".formatted(at));
            }
        }
    }

    private void released(long address, long byteSize) {
        for (long at = address; at < address + byteSize; at += SLOT) {
            if (!slots.remove(at)) {
                wrong.add("released and not acquired: 0x%x".formatted(at));
            }
        }
    }

    /// Whether everything that was told fits together, and nothing is left. Called after the close of the memory.
    void assertEmpty() {
        registration.close();
        assertThat(wrong).as("events that contradict each other").isEmpty();
        assertThat(slots).as("addresses whose release nobody told").isEmpty();
    }
}
