package io.cistern.spring;

import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/// Reports device memory as up while the driver answers. A failed driver call, such as after a kernel that
/// broke its context, makes it down.
final class DeviceMemoryHealth extends AbstractHealthIndicator {
    private final DeviceMemory memory;

    DeviceMemoryHealth(DeviceMemory memory) {
        super("the driver does not answer");
        this.memory = memory;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.up().withDetail("driver", memory.driver().description());
        for (int device = 0; device < memory.environment().deviceCount(); device++) {
            builder.withDetail("device" + device, details(device));
        }
    }

    private Map<String, Object> details(int device) {
        CudaDriver driver = memory.driver();
        AllocatorStatistics statistics = memory.statistics(device);
        Map<String, Object> details = new LinkedHashMap<>();
        details.put("name", driver.devices().name(device));
        details.put("totalBytes", driver.devices().totalBytes(device));
        if (driver.devices().isUsed(device)) { // asking would cost memory there
            details.put("freeBytes", driver.memory().info(device).freeBytes());
        }
        details.put("requestedBytes", statistics.requestedBytes());
        statistics.reservedBytes().ifPresent(bytes -> details.put("reservedBytes", bytes));
        return details;
    }
}
