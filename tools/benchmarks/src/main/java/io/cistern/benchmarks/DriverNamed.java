package io.cistern.benchmarks;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ServiceLoader;

/// A driver by its name, and what programs that copy need of it.
final class DriverNamed {
    private DriverNamed() {}

    /// Opens a driver.
    ///
    /// @param device `cuda:0` or `simulated`
    static CudaDriver open(String device) {
        String name = device.split(":", -1)[0];
        return ServiceLoader.load(CudaDriverProvider.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(provider -> provider.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no driver " + name))
                .open();
    }

    /// How fast something copies, taken by events on a stream.
    static double gigabytesPerSecond(
            CudaDriver driver, int device, long stream, int copies, long byteSize, Runnable copy) {
        long begin = driver.events().createTimed(device);
        long end = driver.events().createTimed(device);
        copy.run();
        driver.events().record(device, begin, stream);
        for (int i = 0; i < copies; i++) {
            copy.run();
        }
        driver.events().record(device, end, stream);
        driver.events().synchronize(device, end);
        float millis = driver.events().elapsedMillis(device, begin, end);
        driver.events().destroy(device, begin);
        driver.events().destroy(device, end);
        return copies * byteSize / (millis * 1e6);
    }

    /// Whether all bytes of a range have a value.
    static boolean holdsOnly(CudaDriver driver, int device, long stream, long address, long byteSize, byte value) {
        MemorySegment bytes = driver.memory().allocateHost(device, byteSize);
        try {
            driver.copies().toHost(device, bytes, address, byteSize, stream);
            driver.streams().synchronize(device, stream);
            return bytes.get(ValueLayout.JAVA_BYTE, 0) == value
                    && bytes.asSlice(1).mismatch(bytes.asSlice(0, byteSize - 1)) == -1;
        } finally {
            driver.memory().freeHost(device, bytes);
        }
    }
}
