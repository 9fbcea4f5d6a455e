package io.cistern.cli.common;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.Optional;
import java.util.OptionalLong;

/// The GPU that replays run on. Each replay gets fresh memory from it, as if it were the first.
public sealed interface ReplayDevice extends AutoCloseable {
    /// Returns the name on the command line: `simulated`, `cuda:0`.
    String label();

    /// Returns a note on the device for readers of the results; empty for a real one.
    default Optional<String> notice() {
        return Optional.empty();
    }

    /// Returns the device's ordinal.
    int ordinal();

    /// Returns a driver for one replay.
    CudaDriver driver();

    /// Returns a driver for one replay on several devices, beginning with [#ordinal].
    ///
    /// @param devices at most [#deviceCount]
    default CudaDriver driver(int devices) {
        return driver();
    }

    /// Returns how many devices there are from [#ordinal] on.
    int deviceCount();

    /// Releases a driver that [#driver] returned.
    void release(CudaDriver driver);

    /// Opens device memory on a driver.
    DeviceMemory open(CudaDriver driver, Catalog catalog);

    /// Returns this device with another capacity, or another limit if it is real.
    ///
    /// @return a device that nobody needs to close
    ReplayDevice withCapacity(long byteSize);

    @Override
    default void close() {}

    /// A simulated GPU; each replay gets a new one.
    ///
    /// @param capacityBytes its memory; empty for that of an H200
    /// @param asked whether somebody asked for a simulation
    /// @param why the origin of that request, or the reason why no real GPU is used; for people
    record Simulated(OptionalLong capacityBytes, boolean asked, String why) implements ReplayDevice {
        /// The largest hosts have so many.
        private static final int MAX_DEVICES = 64;

        /// Creates a device for `--device simulated`.
        public Simulated(OptionalLong capacityBytes) {
            this(capacityBytes, true, "--device simulated");
        }

        @Override
        public Optional<String> notice() {
            return Optional.of("on a simulated GPU (" + (asked ? why : "no real one can be used: " + why) + ")");
        }

        @Override
        public String label() {
            return "simulated";
        }

        @Override
        public int ordinal() {
            return 0;
        }

        @Override
        public CudaDriver driver() {
            return builder().build();
        }

        @Override
        public CudaDriver driver(int devices) {
            return devices == 1 ? driver() : builder().devices(devices).build();
        }

        private SimulatedGpu.Builder builder() {
            SimulatedGpu.Builder builder = SimulatedGpu.builder();
            capacityBytes.ifPresent(builder::capacityBytes);
            return builder;
        }

        @Override
        public int deviceCount() {
            return MAX_DEVICES;
        }

        @Override
        public ReplayDevice withCapacity(long byteSize) {
            return new Simulated(OptionalLong.of(byteSize), asked, why);
        }

        @Override
        public void release(CudaDriver driver) {
            driver.close();
        }

        @Override
        public DeviceMemory open(CudaDriver driver, Catalog catalog) {
            return DeviceMemory.builder(driver).catalog(catalog).open();
        }
    }

    /// A device of a real driver, which stays open over all replays.
    ///
    /// @param limitBytes the most that may be allocated at once; empty for no limit but the device's own
    record Real(CudaDriver driver, int ordinal, OptionalLong limitBytes) implements ReplayDevice {
        @Override
        public String label() {
            return "cuda:" + ordinal;
        }

        @Override
        public ReplayDevice withCapacity(long byteSize) {
            return new Real(driver, ordinal, OptionalLong.of(byteSize));
        }

        @Override
        public int deviceCount() {
            return driver.devices().count() - ordinal;
        }

        @Override
        public void release(CudaDriver driver) {}

        @Override
        public DeviceMemory open(CudaDriver driver, Catalog catalog) {
            DeviceMemory.Builder builder = DeviceMemory.builder(driver).catalog(catalog);
            limitBytes.ifPresent(builder::limitBytes);
            return builder.open();
        }

        @Override
        public void close() {
            driver.close();
        }
    }
}
