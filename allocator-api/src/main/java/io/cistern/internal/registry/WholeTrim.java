package io.cistern.internal.registry;

import io.cistern.internal.names.Failures;
import io.cistern.internal.names.Sizes;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

/// Trims several allocators, even if some of them fail.
public final class WholeTrim {
    private final List<OpenAllocator> allocators;
    private final int device;
    private final TrimMode mode;
    private final Failures failures = new Failures();
    private final Map<OpenAllocator, OptionalLong> reserved = new HashMap<>();

    private WholeTrim(List<OpenAllocator> allocators, int device, TrimMode mode) {
        this.allocators = allocators;
        this.device = device;
        this.mode = mode;
        for (OpenAllocator each : allocators) {
            reserved.put(each, failures.gather(() -> each.reservedBytes(device), OptionalLong.empty()));
        }
    }

    /// Trims several allocators, in the order of opening, until together they have at most `keepBytes`
    /// reserved. Those built on others of them come first, in reverse order of opening: memory that they
    /// release becomes idle in the others.
    ///
    /// @throws RuntimeException the first failure of an allocator, with the others suppressed in it. All are
    ///     trimmed then
    public static TrimResult all(List<OpenAllocator> allocators, int device, long keepBytes, TrimMode mode) {
        Sizes.notNegative("keepBytes", keepBytes);
        WholeTrim trim = new WholeTrim(allocators, device, mode);
        TrimResult result = trim.all(trim.reservedBytes() - keepBytes);
        trim.failures.rethrow();
        return result;
    }

    private TrimResult all(long atFirst) {
        long excess = atFirst;
        for (OpenAllocator allocator : allocators.reversed()) {
            if (allocator.isWithin(allocators)) {
                trim(allocator, excess);
            }
        }
        List<TrimResult> results = new ArrayList<>();
        for (OpenAllocator allocator : allocators) {
            if (allocator.isWithin(allocators)) {
                continue;
            }
            TrimResult result = trim(allocator, excess);
            // Bytes that the allocator does not count as its own, such as those of graphs that are gone, don't
            // lower the excess.
            excess -= Math.min(
                    result.returnedBytes(),
                    Objects.requireNonNull(reserved.get(allocator)).orElse(Long.MAX_VALUE));
            results.add(result);
        }
        return TrimResult.sum(results);
    }

    private TrimResult trim(OpenAllocator allocator, long excess) {
        long keep = keep(Objects.requireNonNull(reserved.get(allocator)), excess);
        return failures.gather(
                () -> allocator.trim(device, keep, mode), new TrimResult(0, OptionalLong.empty(), List.of()));
    }

    /// Returns the bytes that several allocators report as reserved, in total.
    public static long reservedBytes(List<OpenAllocator> allocators, int device) {
        return new WholeTrim(allocators, device, TrimMode.WITHOUT_WAITING).reservedBytes();
    }

    private long reservedBytes() {
        return reserved.entrySet().stream()
                .filter(each -> !each.getKey().isWithin(allocators))
                .mapToLong(each -> each.getValue().orElse(0))
                .sum();
    }

    /// Returns the bytes that one allocator may keep to remove the excess: all or nothing if its reserved
    /// bytes are unknown.
    private static long keep(OptionalLong reserved, long excess) {
        if (reserved.isEmpty()) {
            return excess > 0 ? 0 : Long.MAX_VALUE;
        }
        return Math.max(0, reserved.getAsLong() - Math.max(0, excess));
    }
}
