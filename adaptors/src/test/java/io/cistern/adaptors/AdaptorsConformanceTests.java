package io.cistern.adaptors;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;

/// The adaptors that need nothing from outside, nested by spec over the caching allocator, do what every allocator
/// does.
class AdaptorsConformanceTests extends AllocatorConformance {
    /// Seven layers: what one of them gets wrong shows in the contents of blocks or in the counts.
    static final String NESTED = nest(
            "caching",
            "limit:bytes=1TiB",
            "aligned:alignment=4KiB",
            "statistics",
            "tracking:frames=2",
            "retry:attempts=1",
            "prefetch",
            "events:threshold=1TiB");

    /// Puts each layer around those before it.
    static String nest(String innermost, String... layers) {
        String spec = innermost;
        for (String layer : layers) {
            String quoted = spec.replace("\\", "\\\\").replace("\"", "\\\"");
            spec = layer + (layer.contains(":") ? "," : ":") + "upstream=\"" + quoted + "\"";
        }
        return spec;
    }

    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open(NESTED);
    }
}
