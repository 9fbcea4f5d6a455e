package io.cistern.simulated;

import io.cistern.cuda.CallCounts;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.DriverCapabilities;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.Support;
import io.cistern.cuda.settings.Setting;
import io.cistern.cuda.settings.Settings;
import io.cistern.simulated.internal.memory.DriverFailure;
import io.cistern.simulated.internal.stream.StreamQueue;
import io.cistern.simulated.internal.stream.Work;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// A machine with NVIDIA H200 GPUs, simulated in plain Java: a [CudaDriver] whose calls behave like the real
/// driver's, on virtual time.
///
/// Memory holds real data, but uses little heap while it is only filled. On Linux, exportable pools and
/// events can be [shared][io.cistern.cuda.Sharing] with simulated GPUs of other processes on the same host;
/// everything else belongs to one process. Streams, events and pools follow the driver's rules. Return
/// codes, the placement of allocations, the growth of pools, and costs are those of driver 580 on an H200.
/// [#misuses] reports mistakes that hardware would not detect. Virtual time passes only in driver calls and
/// [#passTime], and while host functions are outstanding.
///
/// Thread-safe. A virtual thread that waits in a blocking call releases its carrier.
public final class SimulatedGpu implements CudaDriver {
    /// The largest memory that a device may have, in bytes. It is many times that of any GPU, but small enough
    /// that several address ranges of that size fit into the 128 TiB of addresses that a process has.
    public static final long MAX_CAPACITY_BYTES = Setting.MAX_SIMULATED_BYTES;

    private static final int VERSION = 13_000;

    private final Machine machine;
    private final SimulatedLinearMemory memory;
    private final SimulatedUnifiedMemory unifiedMemory;
    private final SimulatedSharing sharing;
    private final Facets facets;
    private final DriverCapabilities capabilities;

    private SimulatedGpu(Builder builder) {
        machine = new Machine(builder.devices, builder.totalBytes, builder.contextBytes, builder.costs);
        unifiedMemory = new SimulatedUnifiedMemory(machine);
        memory = new SimulatedLinearMemory(machine, unifiedMemory);
        sharing = new SimulatedSharing(machine);
        facets = new Facets(
                new SimulatedDevices(machine),
                memory,
                unifiedMemory,
                new SimulatedMemoryPools(machine),
                new SimulatedVirtualMemory(machine),
                new SimulatedCopies(machine),
                new SimulatedStreams(machine),
                new SimulatedEvents(machine),
                new SimulatedGraphs(machine),
                new SimulatedModules(machine),
                new SimulatedPeers(machine),
                sharing);
        capabilities = probe(builder);
    }

    /// Returns the number of devices if [Builder#devices] sets none: the value of the setting
    /// `cistern.simulated.devices`, or 1.
    ///
    /// @throws io.cistern.cuda.settings.IllegalSettingException if the setting is not a number from 1 to 999
    public static int defaultDeviceCount() {
        return Settings.ofProcess()
                .get(Setting.SIMULATED_DEVICES)
                .map(set -> set.number(Setting.MAX_SIMULATED_DEVICES))
                .orElse(1);
    }

    /// Returns a builder. By default, the machine has one device with the memory and costs of an H200; settings
    /// can change the number of devices and their memory.
    public static Builder builder() {
        return new Builder();
    }

    private static DriverCapabilities probe(Builder builder) {
        Map<DriverFeature, Support> features = new EnumMap<>(DriverFeature.class);
        for (DriverFeature feature : DriverFeature.values()) {
            features.put(feature, Support.yes());
        }
        features.put(DriverFeature.FABRIC, Support.no("the simulated GPU has no IMEX channel"));
        features.put(DriverFeature.HARDWARE_DECOMPRESS, Support.no("the simulated GPU has no decompression engine"));
        features.put(DriverFeature.MULTICAST, Support.no("the simulated GPU has no NVLink multicast"));
        List<DeviceCapabilities> devices = new ArrayList<>();
        for (int device = 0; device < builder.devices; device++) {
            devices.add(new DeviceCapabilities(
                    device,
                    "Simulated NVIDIA H200",
                    SimulatedDevices.uuidOf(device),
                    builder.totalBytes,
                    90,
                    SimulatedVirtualMemory.GRANULARITY,
                    features));
        }
        return new DriverCapabilities(VERSION, List.of("simulated in Java; times are virtual"), devices);
    }

    /// Returns the mistakes found so far, in the order in which they were found; at most 10,000 are kept.
    public List<Misuse> misuses() {
        return machine.locked(() -> machine.hazards.misuses());
    }

    /// Returns how many objects of each kind exist on this machine now: streams, events, pools, graphs,
    /// modules, pieces of physical memory, reserved address ranges, and ranges of pinned host memory. A
    /// test can use this to find objects that a program failed to close. The default pools count, too.
    ///
    /// @return counts by the name of the kind, in alphabetical order; only those above zero
    public Map<String, Long> heldObjects() {
        return machine.locked(machine::heldObjects);
    }

    /// Returns the object that makes calls fail on demand.
    public Faults faults() {
        return machine.faults;
    }

    /// Returns the kernels that this machine can run.
    public Kernels kernels() {
        return machine.kernels;
    }

    /// Returns the nanoseconds of virtual time since the machine was built.
    public long virtualNanos() {
        return machine.locked(() -> machine.engine.nanos());
    }

    /// Enqueues work that takes some time and touches no memory. The host does not wait.
    ///
    /// @param device the stream's device
    /// @param stream a stream that is not captured
    /// @param nanos duration of the work in virtual nanoseconds, at least 0
    /// @throws IllegalArgumentException if `nanos` is negative, or there is no such device or stream
    public void keepBusy(int device, long stream, long nanos) {
        if (nanos < 0) {
            throw new IllegalArgumentException("work can't take negative time: " + nanos + " ns");
        }
        if (device < 0 || device >= machine.deviceCount()) {
            throw new IllegalArgumentException("there is no device " + device + " among " + machine.deviceCount());
        }
        machine.locked(() -> {
            try {
                StreamQueue queue = machine.streams.find(DriverCall.STREAM_QUERY, device, stream);
                machine.streams.enqueue(queue, Work.of(nanos, () -> {}));
            } catch (DriverFailure unknown) {
                throw new IllegalArgumentException(
                        "device " + device + " has no stream 0x" + Long.toHexString(stream), unknown);
            }
        });
    }

    /// Advances virtual time, as if the host did something else. Device work that is due by then runs.
    ///
    /// @param nanos virtual nanoseconds, at least 0
    /// @throws IllegalArgumentException if `nanos` is negative
    public void passTime(long nanos) {
        if (nanos < 0) {
            throw new IllegalArgumentException("time can't run backwards: " + nanos + " ns");
        }
        machine.locked(() -> {
            machine.engine.advance(nanos);
            machine.engine.runUntilNow();
        });
    }

    /// Sets how much of a device's free memory can't be allocated, although the driver counts it as free; 0 by
    /// default. An H200 behaves like that: when it is nearly full, its driver refuses a page of 2 MiB although
    /// it reports more than 3 MiB as free.
    ///
    /// @param device the device's ordinal
    /// @param byteSize bytes, at least 0
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public void holdBack(int device, long byteSize) {
        requireNotNegative(byteSize);
        machine.locked(() -> machine.device(device).budget.holdBack(byteSize));
    }

    /// Sets how much of a device's memory the system grants this process. Each time that the memory in use
    /// rises above this budget, listeners of [io.cistern.cuda.Devices#onOverBudget] are notified on a thread of
    /// the driver. Without this call there is no budget.
    ///
    /// @param device the device's ordinal
    /// @param byteSize bytes, at least 0
    /// @throws IllegalArgumentException if `byteSize` is negative
    /// @throws IndexOutOfBoundsException if there is no such device
    public void setMemoryBudget(int device, long byteSize) {
        requireNotNegative(byteSize);
        machine.locked(() -> machine.device(device).budget.set(byteSize));
    }

    private static void requireNotNegative(long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize is negative: " + byteSize);
        }
    }

    /// Returns the virtual time, as [#virtualNanos] does.
    @Override
    public long nanoTime() {
        return virtualNanos();
    }

    @Override
    public boolean simulated() {
        return true;
    }

    @Override
    public String description() {
        return "simulated GPU, driver API 13.0";
    }

    @Override
    public int version() {
        return VERSION;
    }

    @Override
    public DriverCapabilities capabilities() {
        return capabilities;
    }

    /// Returns all facets.
    @Override
    public Facets facets() {
        return facets;
    }

    @Override
    public CallCounts calls() {
        return machine.counts;
    }

    @Override
    public void close() {
        machine.close();
        machine.locked(() -> {
            memory.close();
            unifiedMemory.close();
            for (int device = 0; device < machine.deviceCount(); device++) {
                machine.device(device).close();
            }
            sharing.close();
        });
    }

    /// Returns a human-readable description.
    @Override
    public String toString() {
        List<DeviceCapabilities> all = capabilities.devices();
        String size = all.isEmpty() ? "" : " of " + all.getFirst().totalBytes() + " bytes";
        return "SimulatedGpu[" + all.size() + (all.size() == 1 ? " device" : " devices") + size + "]";
    }

    /// Describes a machine to build.
    public static final class Builder {
        /// The result of `cuDeviceTotalMem` on an H200. It includes the memory that ECC takes; nvidia-smi
        /// reports only the usable memory.
        private static final long H200_TOTAL_BYTES = 150_109_880_320L;

        /// The bytes that the primary context of an H200 takes.
        private static final long H200_CONTEXT_BYTES = 552_402_944L;

        private final Settings settings = Settings.ofProcess();
        private int devices = -1;
        private long totalBytes = -1;
        private long contextBytes;
        private CallCosts costs = CallCosts.h200();

        private Builder() {}

        /// Reads the settings only for values that the program has not set, so that an invalid setting stops only a
        /// program that needs it.
        private void completeFromSettings() {
            if (devices < 0) {
                devices = defaultDeviceCount();
            }
            if (totalBytes < 0) {
                settings.get(Setting.SIMULATED_CAPACITY)
                        .ifPresentOrElse(set -> capacityBytes(set.bytes(MAX_CAPACITY_BYTES)), this::takeH200);
            }
        }

        private void takeH200() {
            totalBytes = H200_TOTAL_BYTES;
            contextBytes = H200_CONTEXT_BYTES;
        }

        /// Sets the number of devices. The default is the setting `cistern.simulated.devices`, or 1.
        ///
        /// @param count at least 0
        /// @throws IllegalArgumentException if it is negative
        public Builder devices(int count) {
            if (count < 0) {
                throw new IllegalArgumentException("devices: " + count + ", must not be negative");
            }
            devices = count;
            return this;
        }

        /// Sets the memory of each device, all of which is free at first. The default is the setting
        /// `cistern.simulated.capacity` or, without it, the memory of an H200, less the part that its context
        /// takes.
        ///
        /// @param capacity bytes, from 1 to [#MAX_CAPACITY_BYTES]
        /// @throws IllegalArgumentException if it is out of range
        public Builder capacityBytes(long capacity) {
            if (capacity < 1 || capacity > MAX_CAPACITY_BYTES) {
                throw new IllegalArgumentException("capacity: " + capacity + " bytes, must be from 1 to 8 TiB");
            }
            totalBytes = capacity;
            contextBytes = 0;
            return this;
        }

        /// Sets the costs of calls and device work; the default is [CallCosts#h200()].
        public Builder costs(CallCosts chosen) {
            costs = chosen;
            return this;
        }

        /// Builds the machine.
        ///
        /// @throws IllegalArgumentException if a setting is invalid and the builder does not replace it
        public SimulatedGpu build() {
            completeFromSettings();
            return new SimulatedGpu(this);
        }
    }
}
