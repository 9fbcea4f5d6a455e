package io.cistern.cli.common;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.Optional;
import java.util.OptionalLong;

/// The GPU that replays run on. Each replay gets memory of its own from it, as if it were the first.
public sealed interface ReplayDevice extends AutoCloseable {
    /// How the command line names it: `simulated`, `cuda:0`.
    String label();

    /// What the reader of results must know of the device; empty for a real one.
    default Optional<String> notice() {
        return Optional.empty();
    }

    /// The device's ordinal.
    int ordinal();

    /// A driver for one replay.
    CudaDriver driver();

    /// A driver for one replay on so many devices, of which [#ordinal] is the first.
    ///
    /// @param devices at most [#deviceCount]
    default CudaDriver driver(int devices) {
        return driver();
    }

    /// How many devices there are from [#ordinal] on.
    int deviceCount();

    /// Ends what [#driver] gave.
    void release(CudaDriver driver);

    /// Opens the framework on a driver.
    DeviceMemory open(CudaDriver driver, Catalog catalog);

    /// The same with as much memory.
    ///
    /// @return closed by nobody
    ReplayDevice withCapacity(long byteSize);

    @Override
    default void close() {}

    /// A simulated GPU, made anew for each replay.
    ///
    /// @param capacityBytes its memory; empty for an H200's
    /// @param asked whether somebody asked for a simulation
    /// @param why who asked for it, or why there is no real one, for people
    record Simulated(OptionalLong capacityBytes, boolean asked, String why) implements ReplayDevice {
        /// As many as the largest hosts have.
        private static final int MAX_DEVICES = 64;

        /// One that the line asks for.
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

    /// A device of a driver that stays open over all replays.
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
