package io.cistern.internal.registry;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.internal.names.Sizes;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.TrimMode;
import io.cistern.spi.TrimResult;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/// Trims an allocator that can only say how much it gave back. The results have no reasons.
public record PlainTrim(DeviceAllocator allocator, CudaDriver driver) {
    TrimResult trim(int device, long keepBytes, TrimMode mode) {
        if (mode == TrimMode.SYNCHRONIZE) {
            waitForDevice(device);
        }
        long returned = allocator.trim(device, keepBytes);
        return new TrimResult(returned, allocator.reservedBytes(device), List.of());
    }

    private void waitForDevice(int device) {
        try {
            driver.devices().synchronize(device);
        } catch (CudaException refusal) {
            if (refusal.result() != CudaResult.STREAM_CAPTURE_UNSUPPORTED) {
                throw refusal;
            }
        }
    }

    /// Trims several allocators, in the order of opening, until together they have at most `keepBytes`
    /// reserved. First come those that are built on others of them, the last opened before all: what they give
    /// back is idle in the others then.
    public static TrimResult all(List<OpenAllocator> allocators, int device, long keepBytes, TrimMode mode) {
        long excess = reservedBytes(allocators, device) - Sizes.notNegative("keepBytes", keepBytes);
        for (OpenAllocator allocator : allocators.reversed()) {
            if (allocator.isWithin(allocators)) {
                allocator.trim(device, keep(allocator.reservedBytes(device), excess), mode);
            }
        }
        List<TrimResult> results = new ArrayList<>();
        for (OpenAllocator allocator : allocators) {
            if (allocator.isWithin(allocators)) {
                continue;
            }
            OptionalLong reserved = allocator.reservedBytes(device);
            TrimResult result = allocator.trim(device, keep(reserved, excess), mode);
            // Bytes that the allocator does not count as its own, such as those of graphs that are gone, don't
            // lower the excess.
            excess -= Math.min(result.returnedBytes(), reserved.orElse(Long.MAX_VALUE));
            results.add(result);
        }
        return TrimResult.sum(results);
    }

    /// Returns what several allocators have reserved together, as far as they know.
    public static long reservedBytes(List<OpenAllocator> allocators, int device) {
        return allocators.stream()
                .filter(each -> !each.isWithin(allocators))
                .mapToLong(each -> each.reservedBytes(device).orElse(0))
                .sum();
    }

    /// Returns the bytes that one allocator may keep so that the excess goes. If its reserved bytes are
    /// unknown, that is all or nothing.
    private static long keep(OptionalLong reserved, long excess) {
        if (reserved.isEmpty()) {
            return excess > 0 ? 0 : Long.MAX_VALUE;
        }
        return Math.max(0, reserved.getAsLong() - Math.max(0, excess));
    }
}
