package io.cistern.cli.common;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaDriverProvider;
import io.cistern.cuda.CudaDrivers;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.DriverChoice;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// The GPU that replays run on. Each replay gets fresh memory from it, as if it were the first.
public sealed interface ReplayDevice extends AutoCloseable {
    /// Opens the device of `--device`: `auto`, `simulated` or `cuda:N`. The setting `cistern.driver` decides what
    /// `auto` means.
    ///
    /// @param capacityBytes the memory of a simulated device; of a real one, each replay holds the rest
    /// @throws UsageException if there is no such device; the message says why
    static ReplayDevice open(String choice, OptionalLong capacityBytes) {
        return switch (choice) {
            case "simulated" -> new Simulated(capacityBytes);
            case "auto" -> chosen(capacityBytes);
            default -> real(choice, ordinal(choice), cuda(), capacityBytes);
        };
    }

    private static ReplayDevice chosen(OptionalLong capacityBytes) {
        DriverChoice choice = choose();
        if (!choice.provider().name().equals("simulated")) {
            return real("auto", 0, choice.provider(), capacityBytes);
        }
        return new Simulated(capacityBytes, choice.asked(), choice.reason());
    }

    /// Chooses the driver that a program gets here if it names none.
    ///
    /// @throws UsageException if the choice fails; the message says why
    private static DriverChoice choose() {
        try {
            return CudaDrivers.choose();
        } catch (IllegalStateException e) {
            throw new UsageException(String.valueOf(e.getMessage()));
        }
    }

    private static CudaDriverProvider cuda() {
        return CudaDrivers.providers().stream()
                .filter(provider -> provider.name().equals("cuda"))
                .findFirst()
                .orElseThrow(() -> new UsageException("no CUDA driver binding found"));
    }

    private static int ordinal(String choice) {
        if (!choice.matches("cuda:\\d{1,4}")) {
            throw new UsageException("--device must be auto, simulated or cuda:N, not " + choice);
        }
        return Integer.parseInt(choice.substring("cuda:".length()));
    }

    private static ReplayDevice real(
            String choice, int ordinal, CudaDriverProvider provider, OptionalLong capacityBytes) {
        CudaDriver driver = open(choice, provider);
        int count = driver.devices().count();
        if (ordinal >= count) {
            driver.close();
            throw new UsageException("--device " + choice + ": the driver has devices 0 to " + (count - 1));
        }
        return new Real(driver, ordinal, capacityBytes);
    }

    private static CudaDriver open(String choice, CudaDriverProvider provider) {
        provider.unavailableBecause().ifPresent(reason -> {
            throw new UsageException("--device " + choice + " can't be used: " + reason);
        });
        try {
            return provider.open();
        } catch (CudaException | IllegalStateException e) {
            throw new UsageException("--device " + choice + " can't be used: " + e.getMessage());
        }
    }

    /// Returns the name on the command line: `simulated`, `cuda:0`.
    String label();

    /// Returns a note on the device for readers of the results; empty for a real one.
    default Optional<String> notice() {
        return Optional.empty();
    }

    int ordinal();

    /// Returns a driver for one replay on several devices, beginning with [#ordinal].
    ///
    /// @param devices at most [#deviceCount]
    /// @param ownBytes bytes that the replay itself takes of each device, besides the capacity
    CudaDriver driver(int devices, long ownBytes);

    /// Returns a driver for one replay on this device only.
    default CudaDriver driver() {
        return driver(1, 0);
    }

    /// Returns how many devices there are from [#ordinal] on.
    int deviceCount();

    void release(CudaDriver driver);

    /// Takes what a replay must not have: of a real device with a capacity, all that is free but the capacity.
    ///
    /// @param devices as for [#driver(int, long)]
    default Rest holdRest(int devices) {
        return () -> {};
    }

    default DeviceMemory open(CudaDriver driver, Catalog catalog) {
        return DeviceMemory.builder(driver).catalog(catalog).open();
    }

    /// Returns this device with another capacity. Of a real one, each replay holds the rest.
    ///
    /// @return a device that nobody needs to close
    ReplayDevice withCapacity(long byteSize);

    @Override
    default void close() {}

    /// Memory that is held; closing gives it back.
    interface Rest extends AutoCloseable {
        @Override
        void close();
    }

    /// A simulated GPU; each replay gets a new one.
    ///
    /// @param capacityBytes its memory; empty for that of an H200
    /// @param asked whether the program asked for a simulation
    /// @param why the origin of that request, or the reason why no real GPU is used; for people
    record Simulated(OptionalLong capacityBytes, boolean asked, String why) implements ReplayDevice {
        /// The largest hosts have that many.
        private static final int MAX_DEVICES = 64;

        public Simulated(OptionalLong capacityBytes) {
            this(capacityBytes, true, "--device simulated");
        }

        @Override
        public Optional<String> notice() {
            return Optional.of(
                    asked ? "on a simulated GPU (" + why + ")" : "on a simulated GPU; cistern doctor says why");
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
        public CudaDriver driver(int devices, long ownBytes) {
            SimulatedGpu.Builder builder = SimulatedGpu.builder().devices(devices);
            capacityBytes.ifPresent(
                    bytes -> builder.capacityBytes(Math.min(bytes + ownBytes, SimulatedGpu.MAX_CAPACITY_BYTES)));
            return builder.build();
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
    }

    /// A device of a real driver, which stays open over all replays.
    ///
    /// @param capacityBytes what a replay finds free on each device; empty for all that is free
    record Real(CudaDriver driver, int ordinal, OptionalLong capacityBytes) implements ReplayDevice {
        /// The driver hands out device memory in pieces of that many bytes.
        private static final long PIECE = 2 << 20;

        @Override
        public String label() {
            return "cuda:" + ordinal;
        }

        /// [#holdRest] sees the bytes that the replay itself has taken by then.
        @Override
        public CudaDriver driver(int devices, long ownBytes) {
            return driver;
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
        public Rest holdRest(int devices) {
            List<Rest> held = new ArrayList<>();
            Rest all = () -> held.forEach(Rest::close);
            try {
                for (int i = 0; i < devices && capacityBytes.isPresent(); i++) {
                    held.add(holdAllBut(capacityBytes.getAsLong(), ordinal + i));
                }
            } catch (CudaException refusal) {
                all.close();
                throw refusal;
            }
            return all;
        }

        private Rest holdAllBut(long byteSize, int device) {
            long rest = (driver.memory().freeBytes(device) - byteSize) / PIECE * PIECE;
            long address = rest > 0 ? driver.memory().allocate(device, rest) : 0;
            return () -> driver.memory().free(device, address);
        }

        @Override
        public void release(CudaDriver driver) {}

        @Override
        public void close() {
            driver.close();
        }
    }
}
