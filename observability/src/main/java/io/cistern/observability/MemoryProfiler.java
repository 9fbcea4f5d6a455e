package io.cistern.observability;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.MemoryEvent;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Shows how much device memory the program's functions take, by name: how often each was called, how much its
/// calls allocated, and the most that one call had live at once.
///
/// ```java
/// try (MemoryProfiler profiler = MemoryProfiler.open(memory)) {
///     try (MemoryProfiler.Call call = profiler.begin("load")) {
///         …
///     }
///     System.out.println(profiler.text());
/// }
/// ```
///
/// A call counts the allocations and frees of its own thread, on all devices, including those of nested
/// calls. If another thread frees a block, the call still counts the block as live. If the Java heap was
/// full and [events were lost][io.cistern.Listeners#lostEvents], figures may be wrong. The profiler slows
/// down allocations as any [observer][io.cistern.Listeners#onEvent] does.
///
/// **Threads.** Any thread may call any method at any time. The thread that began a call must end it, the
/// innermost call first.
public final class MemoryProfiler implements AutoCloseable {
    private final Map<String, Figures> byName = new ConcurrentHashMap<>();

    @SuppressWarnings("ThreadLocalUsage") // a thread may be in calls of several profilers
    private final ThreadLocal<@Nullable Call> innermost = new ThreadLocal<>();

    private final Registration registration;

    private MemoryProfiler(DeviceMemory memory) {
        registration = memory.listeners().onEvent(this::hear);
    }

    /// Opens a profiler and starts to count.
    public static MemoryProfiler open(DeviceMemory memory) {
        return new MemoryProfiler(memory);
    }

    /// Holds the figures of one function, over all its calls.
    ///
    /// @param name the function's name
    /// @param calls how often the function was called
    /// @param allocations blocks allocated, over all calls
    /// @param totalBytes bytes of those blocks
    /// @param peakBytes the most bytes that one call had live at once, of the blocks that it allocated
    public record Figures(String name, long calls, long allocations, long totalBytes, long peakBytes) {
        private Figures plus(Figures more) {
            return new Figures(
                    name,
                    calls + more.calls,
                    allocations + more.allocations,
                    totalBytes + more.totalBytes,
                    Math.max(peakBytes, more.peakBytes));
        }
    }

    /// One call of a function, from [MemoryProfiler#begin] to its close.
    public final class Call implements AutoCloseable {
        private final String name;
        private final @Nullable Call outer;
        private long liveBytes;
        private long peakBytes;
        private long allocations;
        private long totalBytes;

        /// Addresses of the blocks that it allocated and that its thread has not freed.
        private final Set<Long> blocks = new HashSet<>();

        private Call(String name, @Nullable Call outer) {
            this.name = name;
            this.outer = outer;
        }

        private void allocated(long address, long byteSize) {
            blocks.add(address);
            allocations++;
            totalBytes += byteSize;
            liveBytes += byteSize;
            peakBytes = Math.max(peakBytes, liveBytes);
        }

        /// Ignores blocks that were allocated before the call.
        private void freed(long address, long byteSize) {
            if (blocks.remove(address)) {
                liveBytes -= byteSize;
            }
        }

        /// Ends the call.
        ///
        /// @throws IllegalStateException if this is not the innermost call of the calling thread
        @Override
        public void close() {
            if (innermost.get() != this) {
                throw new IllegalStateException(
                        "the call of " + name + " is not the innermost one of this thread: end those inside it first");
            }
            if (outer == null) {
                innermost.remove();
            } else {
                innermost.set(outer);
            }
            byName.merge(name, new Figures(name, 1, allocations, totalBytes, peakBytes), Figures::plus);
        }
    }

    /// Begins a call of a function.
    ///
    /// @param name the function's name, for the figures
    public Call begin(String name) {
        Call call = new Call(name, innermost.get());
        innermost.set(call);
        return call;
    }

    private void hear(MemoryEvent event) {
        switch (event) {
            case MemoryEvent.Allocated block -> {
                for (Call call = innermost.get(); call != null; call = call.outer) {
                    call.allocated(block.address(), block.byteSize());
                }
            }
            case MemoryEvent.Freed block -> {
                for (Call call = innermost.get(); call != null; call = call.outer) {
                    call.freed(block.address(), block.byteSize());
                }
            }
            default -> {} // no change to the program's memory
        }
    }

    /// Returns the figures of all functions whose calls have ended, the highest peak first.
    public List<Figures> figures() {
        return byName.values().stream()
                .sorted(Comparator.comparingLong(Figures::peakBytes).reversed().thenComparing(Figures::name))
                .toList();
    }

    /// Returns the figures as a human-readable table.
    public String text() {
        StringBuilder text = new StringBuilder(line("function", "calls", "blocks", "bytes", "peak"));
        for (Figures each : figures()) {
            text.append(line(each.name, each.calls, each.allocations, each.totalBytes, each.peakBytes));
        }
        return text.toString();
    }

    private static String line(Object... cells) {
        return String.format(Locale.ROOT, "%-32s %10s %12s %16s %16s%n", cells);
    }

    /// Stops counting. The figures stay readable.
    @Override
    public void close() {
        registration.close();
    }
}
