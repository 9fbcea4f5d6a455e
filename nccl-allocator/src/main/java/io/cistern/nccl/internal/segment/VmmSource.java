package io.cistern.nccl.internal.segment;

import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.cuda.DriverFeature;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.VirtualMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.PageSource;
import io.cistern.spi.PageTraits;
import io.cistern.spi.Segment;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Provides physical memory by handles. The properties of a device's memory are decided once, when the device
/// is first used. If an option says `auto`, the widest handle type that the device claims is tried with one
/// granule, since a claim is not enough (fabric handles also need an IMEX channel).
///
/// **Registration.** Each mapping is a segment of the [SegmentRegistry]. A virtual page keeps its physical
/// page until it is unmapped, so a registration stays valid that long, even while the page is aliased at
/// another address.
public final class VmmSource implements PageSource, SegmentRegistry.Owner {
    private static final System.Logger LOG = System.getLogger(VmmSource.class.getName());

    private static final List<HandleType> WIDEST_FIRST =
            List.of(HandleType.FABRIC, HandleType.POSIX_FILE_DESCRIPTOR, HandleType.NONE);

    /// The memory to create on a device, and the traits to report.
    private record Kind(PhysicalMemory memory, PageTraits traits) {}

    private final CudaDriver driver;
    private final VirtualMemory virtualMemory;
    private final VmmOptions options;
    private final AtomicReferenceArray<@Nullable Kind> kinds;
    private final SegmentRegistry registry = new SegmentRegistry();
    /// The physical memory's handle under each segment.
    private final Map<Segment, Long> mapped = new ConcurrentHashMap<>();

    /// Addresses of closed allocators in which mappings remain; they are freed with the last
    /// mapping.
    private final Set<Segment> reservations = ConcurrentHashMap.newKeySet();

    // Made in advance: closing needs no Java heap for them.
    private final Set<Segment> segments = mapped.keySet();
    private final Consumer<Segment> late = this::unmapLate;

    public VmmSource(CudaDriver driver, VmmOptions options, int deviceCount) {
        this.driver = driver;
        this.virtualMemory = driver.virtualMemory();
        this.options = options;
        this.kinds = new AtomicReferenceArray<>(deviceCount);
    }

    @Override
    public PageTraits traits(int device) {
        return kind(device).traits;
    }

    @Override
    public long create(long byteSize, int device) {
        try {
            return virtualMemory.create(byteSize, kind(device).memory);
        } catch (CudaException failure) {
            if (failure.result() == CudaResult.OUT_OF_MEMORY) {
                long deviceBytes = driver.devices().totalBytes(device);
                if (!options.onHost() && byteSize > deviceBytes) {
                    throw DeviceOutOfMemoryException.aboveDevice(byteSize, device, deviceBytes);
                }
                throw new DeviceOutOfMemoryException(
                        byteSize,
                        device,
                        "source vmm: no memory at location="
                                + kind(device).traits.location(),
                        failure);
            }
            throw failure;
        }
    }

    @Override
    public void release(long handle, long byteSize, int device) {
        virtualMemory.release(device, handle);
    }

    /// Returns the device and all others that can reach it.
    @Override
    public List<MemoryLocation> accessors(int device) {
        return MappedMemory.accessors(driver, device);
    }

    @Override
    public void mapped(int device, long address, long byteSize, long handle) {
        Segment segment = new Segment(address, byteSize, device);
        mapped.put(segment, handle);
        registry.appeared(segment);
    }

    @Override
    public boolean unmapping(int device, long address, long byteSize) {
        Segment segment = new Segment(address, byteSize, device);
        if (!registry.letGo(segment)) {
            return false;
        }
        mapped.remove(segment);
        return true;
    }

    @Override
    public List<SegmentRegistry> registries() {
        return List.of(registry);
    }

    /// Abandons memory that is still mapped because a communicator was in a call: it is freed when that
    /// communicator deregisters it.
    @Override
    public void close() {
        registry.abandonAll(segments, late);
    }

    private void unmapLate(Segment segment) {
        Long handle = mapped.get(segment);
        if (handle == null) {
            return; // a first try unmapped it
        }
        Runnable unmap = () -> virtualMemory.unmap(segment.device(), segment.address(), segment.byteSize());
        Runnable release = () -> virtualMemory.release(segment.device(), handle);
        DeadContext.insist(unmap);
        mapped.remove(segment);
        if (!mapped.containsValue(handle)) {
            DeadContext.insist(release);
        }
        freeEmptyReservations();
    }

    @Override
    public void abandoned(int device, long address, long byteSize) {
        reservations.add(new Segment(address, byteSize, device));
        freeEmptyReservations();
    }

    private void freeEmptyReservations() {
        List.copyOf(reservations).forEach(this::freeIfEmpty);
    }

    /// Of several threads that unmap the last mappings, one frees the addresses.
    private void freeIfEmpty(Segment reservation) {
        if (segments.stream().noneMatch(segment -> isIn(segment, reservation)) && reservations.remove(reservation)) {
            boolean _ = DeadContext.isDoneAtLast(() ->
                    virtualMemory.freeReservation(reservation.device(), reservation.address(), reservation.byteSize()));
        }
    }

    private static boolean isIn(Segment segment, Segment reservation) {
        return segment.address() >= reservation.address()
                && segment.address() < reservation.address() + reservation.byteSize();
    }

    private Kind kind(int device) {
        Kind kind = kinds.get(device);
        return kind != null ? kind : chooseKind(device);
    }

    private synchronized Kind chooseKind(int device) {
        Kind kind = kinds.get(device);
        if (kind == null) {
            HandleType handle = options.handle().orElseGet(() -> widestHandle(device));
            PhysicalMemory memory = memory(device, handle);
            kind = new Kind(memory, traits(memory, handle));
            kinds.set(device, kind);
        }
        return kind;
    }

    private HandleType widestHandle(int device) {
        for (HandleType handle : WIDEST_FIRST) {
            if (handle == HandleType.NONE
                    || (claims(device, VmmOptions.feature(handle)) && works(memory(device, handle)))) {
                return handle;
            }
        }
        return HandleType.NONE;
    }

    private boolean works(PhysicalMemory memory) {
        long granule = virtualMemory.granularity(memory, false);
        long[] handle = new long[1];
        Runnable release = () -> virtualMemory.release(memory.device(), handle[0]); // before, for a full Java heap
        try {
            handle[0] = virtualMemory.create(granule, memory);
            dropTrial(release);
            return true;
        } catch (CudaException refused) {
            if (refused.result() == CudaResult.OUT_OF_MEMORY) {
                throw new DeviceOutOfMemoryException(
                        granule, memory.device(), "source vmm has no memory to try handle types with", refused);
            }
            return false;
        }
    }

    /// Releases the granule of a trial. Its handle type works even if the driver does not take this one back.
    private static void dropTrial(Runnable release) {
        try {
            DeadContext.insist(release);
        } catch (CudaException refusal) {
            LOG.log(Level.WARNING, "the granule created to try a handle type stays reserved: " + refusal.getMessage());
        }
    }

    private PhysicalMemory memory(int device, HandleType handle) {
        boolean rdma = options.rdma().orElseGet(() -> !options.onHost() && claims(device, DriverFeature.RDMA));
        return new PhysicalMemory(location(device), handle.bit(), rdma, device);
    }

    private MemoryLocation location(int device) {
        if (!options.onHost()) {
            return MemoryLocation.device(device);
        }
        int nearest = Math.max(0, driver.devices().attribute(device, DeviceAttribute.HOST_NUMA_ID));
        return MemoryLocation.hostNuma(options.node().orElse(nearest));
    }

    private boolean claims(int device, DriverFeature feature) {
        DeviceCapabilities capabilities = driver.capabilities().devices().get(device);
        return capabilities.supports(feature).supported();
    }

    private PageTraits traits(PhysicalMemory memory, HandleType handle) {
        String location = options.onHost() ? "host_numa:" + memory.location().id() : "device";
        long granularity = Math.max(virtualMemory.granularity(memory, true), options.byteAlignment());
        return new PageTraits(granularity, location, handle.word(), memory.rdma());
    }
}
