package io.cistern.internal.routing;

import io.cistern.errors.DeviceOutOfMemoryException;

/// Makes the out-of-memory errors: what the allocator said, with what the framework knows.
final class OutOfMemory {
    private OutOfMemory() {}

    /// Names each limit that the bytes would be charged to, with its use.
    static DeviceOutOfMemoryException limit(Route route, long byteSize, String levels) {
        return DeviceOutOfMemoryException.ofLimit(byteSize, route.device, levels);
    }

    /// Names the allocator, what is alive in it, and the caller's bytes where the allocator told rounded ones.
    static DeviceOutOfMemoryException explain(
            Route route, RouteStatistics statistics, long byteSize, DeviceOutOfMemoryException told) {
        String detail = "allocator " + route.name + " has " + statistics.requestedBytes() + " bytes requested in "
                + (statistics.allocations() - statistics.frees()) + " live blocks"
                + (told.detail().isEmpty() ? "" : "; " + told.detail());
        return new DeviceOutOfMemoryException(byteSize, route.device, detail, told, told.steps());
    }
}
