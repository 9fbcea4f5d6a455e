package io.cistern.adaptors;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.testkit.AllocatorConformance;
import java.nio.file.Path;
import org.junit.jupiter.api.io.TempDir;

/// With a log, an allocator does what every allocator does.
class LoggingConformanceTests extends AllocatorConformance {
    @TempDir
    private Path folder;

    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open("logging:file=\"" + folder.resolve("log.csv.gz") + "\",upstream=caching");
    }
}
