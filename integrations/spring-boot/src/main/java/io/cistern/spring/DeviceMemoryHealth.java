package io.cistern.spring;

import io.cistern.AllocatorStatistics;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.diagnostics.LiveBlock;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/// Reports device memory as up while the driver answers. A failed driver call, such as after a kernel that
/// broke its context, makes it down. If leaks are recorded, the details name the places that hold the most memory.
final class DeviceMemoryHealth extends AbstractHealthIndicator {
    private static final int MAX_SITES = 3;

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
        LeakLevel level = memory.moduleSupport().leakLevel();
        if (level != LeakLevel.OFF) {
            List<LiveBlock> live = memory.liveBlocks();
            builder.withDetail("liveBytesBySite", bySite(live));
            if (level != LeakLevel.SAMPLED) { // which tracks no buffers
                builder.withDetail(
                        "droppedBytes",
                        live.stream()
                                .filter(LiveBlock::unreachable)
                                .mapToLong(LiveBlock::byteSize)
                                .sum());
            }
        }
    }

    private static Map<String, Long> bySite(List<LiveBlock> live) {
        Map<String, Long> all = new HashMap<>();
        live.stream()
                .filter(block -> !block.site().isEmpty())
                .forEach(block -> all.merge(block.site().getFirst().toString(), block.byteSize(), Long::sum));
        Map<String, Long> most = new LinkedHashMap<>();
        all.entrySet().stream()
                .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                .limit(MAX_SITES)
                .forEach(site -> most.put(site.getKey(), site.getValue()));
        return most;
    }

    private Map<String, Object> details(int device) {
        CudaDriver driver = memory.driver();
        AllocatorStatistics statistics = memory.statistics(device);
        Map<String, Object> details = new LinkedHashMap<>();
        details.put("name", driver.devices().name(device));
        details.put("totalBytes", driver.devices().totalBytes(device));
        if (driver.devices().isUsed(device)) { // a query would take memory there
            details.put("freeBytes", driver.memory().info(device).freeBytes());
        }
        details.put("requestedBytes", statistics.requestedBytes());
        statistics.reservedBytes().ifPresent(bytes -> details.put("reservedBytes", bytes));
        return details;
    }
}
