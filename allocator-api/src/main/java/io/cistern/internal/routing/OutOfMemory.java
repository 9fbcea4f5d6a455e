package io.cistern.internal.routing;

import io.cistern.DeviceOutOfMemoryException;

/// Makes the out-of-memory errors: what the allocator said, with what the framework knows.
final class OutOfMemory {
    private OutOfMemory() {}

    static DeviceOutOfMemoryException limit(Route route, long byteSize) {
        return new DeviceOutOfMemoryException(byteSize, route.device, String.valueOf(route.budget));
    }

    /// Names the allocator, what is alive in it, and the caller's bytes where the allocator told rounded ones.
    static DeviceOutOfMemoryException explain(
            Route route, RouteStatistics statistics, long byteSize, DeviceOutOfMemoryException told) {
        String detail = "allocator " + route.name + " has " + statistics.requestedBytes() + " bytes requested in "
                + (statistics.allocations() - statistics.frees()) + " live blocks"
                + (told.detail().isEmpty() ? "" : "; " + told.detail());
        return new DeviceOutOfMemoryException(byteSize, route.device, detail, told);
    }
}
