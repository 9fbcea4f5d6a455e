package io.cistern.simulated;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.Devices;
import io.cistern.cuda.DriverCall;
import java.util.HexFormat;
import java.util.function.LongConsumer;

/// [Devices] over the model, with the attributes of an H200 (driver 580).
final class SimulatedDevices implements Devices {
    private static final long FIRST_CONTEXT = 0x5600_0000_0000L;

    private final Machine machine;

    /// The context that [#enterContext] left current; the simulated calls themselves need none.
    private final ThreadLocal<Long> current = ThreadLocal.withInitial(() -> 0L);

    SimulatedDevices(Machine machine) {
        this.machine = machine;
    }

    static long contextOf(int device) {
        return FIRST_CONTEXT + 0x1000L * device;
    }

    static String uuidOf(int device) {
        return "00000000-0000-4000-8000-" + HexFormat.of().toHexDigits(device, 12);
    }

    @Override
    public int count() {
        machine.counts.count(DriverCall.DEVICE_GET_COUNT);
        return machine.deviceCount();
    }

    @Override
    public String name(int device) {
        return machine.call(DriverCall.DEVICE_GET_NAME, device, () -> "Simulated NVIDIA H200");
    }

    @Override
    public String uuid(int device) {
        return machine.call(DriverCall.DEVICE_GET_UUID, device, () -> uuidOf(device));
    }

    @Override
    public long totalBytes(int device) {
        return machine.call(
                DriverCall.DEVICE_TOTAL_MEM,
                device,
                () -> machine.device(device).budget.totalBytes());
    }

    @Override
    public int attribute(int device, DeviceAttribute attribute) {
        return machine.call(
                DriverCall.DEVICE_GET_ATTRIBUTE,
                device,
                () -> "device=" + device + ", " + attribute,
                () -> valueOf(device, attribute));
    }

    private static int valueOf(int device, DeviceAttribute attribute) {
        return switch (attribute) {
            case MAX_THREADS_PER_BLOCK -> 1024;
            case TEXTURE_ALIGNMENT -> 512;
            case MULTIPROCESSOR_COUNT -> 132;
            case COMPUTE_CAPABILITY_MAJOR -> 9;
            case PCI_BUS_ID -> 1 + device;
            // POSIX file descriptors and fabric handles, as the driver reports even without an IMEX channel.
            case MEMPOOL_SUPPORTED_HANDLE_TYPES -> 9;
            case NUMA_ID -> -1;
            case UNIFIED_ADDRESSING,
                    MANAGED_MEMORY,
                    CONCURRENT_MANAGED_ACCESS,
                    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
                    MEMORY_POOLS_SUPPORTED,
                    GPU_DIRECT_RDMA_SUPPORTED,
                    DMA_BUF_SUPPORTED,
                    IPC_EVENT_SUPPORTED,
                    HANDLE_TYPE_FABRIC_SUPPORTED,
                    HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                    HOST_NUMA_MEMORY_POOLS_SUPPORTED,
                    HOST_MEMORY_POOLS_SUPPORTED,
                    HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED -> 1;
            default -> 0;
        };
    }

    @Override
    public boolean isUsed(int device) {
        return machine.call(DriverCall.DEVICE_GET_ATTRIBUTE, device, () -> machine.device(device).isUsed);
    }

    @Override
    public long primaryContext(int device) {
        return machine.call(DriverCall.PRIMARY_CONTEXT_RETAIN, device, () -> contextOf(device));
    }

    @Override
    public long enterContext(int device) {
        machine.run(DriverCall.CONTEXT_GET_CURRENT, device, () -> {});
        long before = current.get();
        current.set(contextOf(device));
        return before;
    }

    @Override
    public void leaveContext(int device, long before) {
        current.set(before == 0 ? contextOf(device) : before);
    }

    @Override
    public int currentDevice() {
        machine.counts.count(DriverCall.CONTEXT_GET_CURRENT);
        long context = current.get();
        for (int device = 0; device < machine.deviceCount(); device++) {
            if (context == contextOf(device)) {
                return device;
            }
        }
        if (context == 0) {
            return -1;
        }
        throw new CudaException(
                DriverCall.CONTEXT_GET_CURRENT,
                CudaResult.INVALID_CONTEXT.code(),
                "context=0x" + Long.toHexString(context) + ", which is not a device's primary context");
    }

    @Override
    public long onOverBudget(int device, LongConsumer whenOver) {
        return machine.call(
                DriverCall.DEVICE_REGISTER_ASYNC_NOTIFICATION,
                device,
                () -> machine.device(device).budget.listen(whenOver));
    }

    @Override
    public void endOverBudget(int device, long registration) {
        machine.run(
                DriverCall.DEVICE_UNREGISTER_ASYNC_NOTIFICATION,
                device,
                () -> "device=" + device + ", registration=" + registration,
                () -> machine.device(device).budget.unlisten(registration));
    }

    @Override
    public void synchronize(int device) {
        machine.run(DriverCall.CONTEXT_SYNCHRONIZE, device, () -> {
            machine.drain(device);
            machine.hostSynchronisedAll(device);
            machine.poolsSynchronised(device);
        });
    }
}
