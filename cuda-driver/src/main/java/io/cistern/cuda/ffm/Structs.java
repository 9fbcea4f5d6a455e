package io.cistern.cuda.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PhysicalMemory;
import io.cistern.cuda.Sharing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.util.List;

/// The structs of `cuda.h` that calls take, each with its C name and its C members. Trailing members that stay
/// 0 are padding here. Methods with a frame write a struct there and return its address.
final class Structs {
    static final StructLayout LOCATION = MemoryLayout.structLayout(JAVA_INT.withName("type"), JAVA_INT.withName("id"))
            .withName("CUmemLocation");

    /// Older toolkits have reserved bytes instead of `maxSize` and `usage`; 0 is right in both readings.
    static final StructLayout POOL_PROPERTIES = MemoryLayout.structLayout(
                    JAVA_INT.withName("allocType"),
                    JAVA_INT.withName("handleTypes"),
                    LOCATION.withName("location"),
                    ADDRESS.withName("win32SecurityAttributes"),
                    JAVA_LONG.withName("maxSize"),
                    JAVA_SHORT.withName("usage"),
                    MemoryLayout.paddingLayout(54))
            .withName("CUmemPoolProps");

    static final StructLayout ALLOCATION_PROPERTIES = MemoryLayout.structLayout(
                    JAVA_INT.withName("type"),
                    JAVA_INT.withName("requestedHandleTypes"),
                    LOCATION.withName("location"),
                    ADDRESS.withName("win32HandleMetaData"),
                    MemoryLayout.structLayout(
                                    JAVA_BYTE.withName("compressionType"),
                                    JAVA_BYTE.withName("gpuDirectRDMACapable"),
                                    JAVA_SHORT.withName("usage"),
                                    MemoryLayout.paddingLayout(4))
                            .withName("allocFlags"))
            .withName("CUmemAllocationProp");

    static final StructLayout ACCESS = MemoryLayout.structLayout(
                    LOCATION.withName("location"), JAVA_INT.withName("flags"))
            .withName("CUmemAccessDesc");

    /// `CUipcEventHandle`, and the other handles of the same length.
    static final StructLayout HANDLE = MemoryLayout.structLayout(
                    MemoryLayout.sequenceLayout(Sharing.HANDLE_BYTES, JAVA_BYTE).withName("reserved"))
            .withName("CUipcEventHandle");

    static final StructLayout COPY_OF_ROWS = MemoryLayout.structLayout(
                    JAVA_LONG.withName("srcXInBytes"),
                    JAVA_LONG.withName("srcY"),
                    JAVA_INT.withName("srcMemoryType"),
                    MemoryLayout.paddingLayout(4),
                    ADDRESS.withName("srcHost"),
                    JAVA_LONG.withName("srcDevice"),
                    ADDRESS.withName("srcArray"),
                    JAVA_LONG.withName("srcPitch"),
                    JAVA_LONG.withName("dstXInBytes"),
                    JAVA_LONG.withName("dstY"),
                    JAVA_INT.withName("dstMemoryType"),
                    MemoryLayout.paddingLayout(4),
                    ADDRESS.withName("dstHost"),
                    JAVA_LONG.withName("dstDevice"),
                    ADDRESS.withName("dstArray"),
                    JAVA_LONG.withName("dstPitch"),
                    JAVA_LONG.withName("WidthInBytes"),
                    JAVA_LONG.withName("Height"))
            .withName("CUDA_MEMCPY2D");

    static final StructLayout COPY_ATTRIBUTES = MemoryLayout.structLayout(
                    JAVA_INT.withName("srcAccessOrder"),
                    LOCATION.withName("srcLocHint"),
                    LOCATION.withName("dstLocHint"),
                    JAVA_INT.withName("flags"))
            .withName("CUmemcpyAttributes");

    /// `CU_MEMORYTYPE_UNIFIED`: the address determines the kind of memory.
    static final int UNIFIED = 4;

    static final StructLayout ALLOCATION_NODE = MemoryLayout.structLayout(
                    POOL_PROPERTIES.withName("poolProps"),
                    ADDRESS.withName("accessDescs"),
                    JAVA_LONG.withName("accessDescCount"),
                    JAVA_LONG.withName("bytesize"),
                    JAVA_LONG.withName("dptr"))
            .withName("CUDA_MEM_ALLOC_NODE_PARAMS");

    static final StructLayout FILL_NODE = MemoryLayout.structLayout(
                    JAVA_LONG.withName("dst"),
                    JAVA_LONG.withName("pitch"),
                    JAVA_INT.withName("value"),
                    JAVA_INT.withName("elementSize"),
                    JAVA_LONG.withName("width"),
                    JAVA_LONG.withName("height"))
            .withName("CUDA_MEMSET_NODE_PARAMS");

    /// As many as a frame has room for; a host has eight devices.
    static final int MAX_ACCESSORS = 10;

    /// `CU_MEM_ALLOCATION_TYPE_PINNED`
    static final int PINNED = 1;

    /// `CU_MEM_ALLOCATION_TYPE_MANAGED`
    static final int MANAGED = 2;

    /// `CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS`
    static final short HARDWARE_DECOMPRESS = 2;

    private static final long LOCATION_ID = offset(LOCATION, "id");
    private static final long POOL_HANDLE_TYPES = offset(POOL_PROPERTIES, "handleTypes");
    private static final long POOL_LOCATION = offset(POOL_PROPERTIES, "location");
    private static final long POOL_MAX_SIZE = offset(POOL_PROPERTIES, "maxSize");
    private static final long POOL_USAGE = offset(POOL_PROPERTIES, "usage");
    private static final long ALLOCATION_HANDLE_TYPES = offset(ALLOCATION_PROPERTIES, "requestedHandleTypes");
    private static final long ALLOCATION_LOCATION = offset(ALLOCATION_PROPERTIES, "location");
    private static final long ALLOCATION_RDMA = offset(ALLOCATION_PROPERTIES, "allocFlags", "gpuDirectRDMACapable");
    private static final long ACCESS_FLAGS = offset(ACCESS, "flags");

    private static final long SOURCE_TYPE = offset(COPY_OF_ROWS, "srcMemoryType");
    private static final long SOURCE = offset(COPY_OF_ROWS, "srcDevice");
    private static final long SOURCE_PITCH = offset(COPY_OF_ROWS, "srcPitch");
    private static final long TARGET_TYPE = offset(COPY_OF_ROWS, "dstMemoryType");
    private static final long TARGET = offset(COPY_OF_ROWS, "dstDevice");
    private static final long TARGET_PITCH = offset(COPY_OF_ROWS, "dstPitch");
    private static final long ROW_BYTES = offset(COPY_OF_ROWS, "WidthInBytes");
    private static final long ROWS = offset(COPY_OF_ROWS, "Height");
    private static final long ALLOCATION_NODE_BYTES = offset(ALLOCATION_NODE, "bytesize");
    private static final long ALLOCATION_NODE_ADDRESS = offset(ALLOCATION_NODE, "dptr");
    private static final long FILL_VALUE = offset(FILL_NODE, "value");
    private static final long FILL_ELEMENT_BYTES = offset(FILL_NODE, "elementSize");
    private static final long FILL_WIDTH = offset(FILL_NODE, "width");
    private static final long FILL_HEIGHT = offset(FILL_NODE, "height");

    private Structs() {}

    private static long offset(StructLayout struct, String... path) {
        PathElement[] elements = new PathElement[path.length];
        for (int i = 0; i < path.length; i++) {
            elements[i] = PathElement.groupElement(path[i]);
        }
        return struct.byteOffset(elements);
    }

    static long location(Frame frame, MemoryLocation location) {
        MemorySegment memory = frame.location();
        write(memory, 0, location);
        return memory.address();
    }

    static long poolProperties(Frame frame, MemoryPoolProperties properties) {
        MemorySegment memory = frame.struct();
        memory.set(JAVA_INT, 0, properties.managed() ? MANAGED : PINNED);
        memory.set(JAVA_INT, POOL_HANDLE_TYPES, properties.handleTypes());
        write(memory, POOL_LOCATION, properties.location());
        memory.set(JAVA_LONG, POOL_MAX_SIZE, properties.maxByteSize());
        memory.set(JAVA_SHORT, POOL_USAGE, properties.hardwareDecompress() ? HARDWARE_DECOMPRESS : 0);
        return memory.address();
    }

    /// Makes a `CUDA_MEM_ALLOC_NODE_PARAMS` for memory of a device.
    static MemorySegment allocationNode(Arena arena, int device, long byteSize) {
        MemorySegment memory = arena.allocate(ALLOCATION_NODE);
        memory.set(JAVA_INT, 0, PINNED);
        write(memory, POOL_LOCATION, MemoryLocation.device(device));
        memory.set(JAVA_LONG, ALLOCATION_NODE_BYTES, byteSize);
        return memory;
    }

    /// Returns the address that the driver wrote into a `CUDA_MEM_ALLOC_NODE_PARAMS`.
    static long allocatedAddress(MemorySegment allocationNode) {
        return allocationNode.get(JAVA_LONG, ALLOCATION_NODE_ADDRESS);
    }

    /// Makes a `CUDA_MEMSET_NODE_PARAMS` for one row of 32-bit words.
    static MemorySegment fillNode(Arena arena, long target, int value, long count) {
        MemorySegment memory = arena.allocate(FILL_NODE);
        memory.set(JAVA_LONG, 0, target);
        memory.set(JAVA_INT, FILL_VALUE, value);
        memory.set(JAVA_INT, FILL_ELEMENT_BYTES, Integer.BYTES);
        memory.set(JAVA_LONG, FILL_WIDTH, count);
        memory.set(JAVA_LONG, FILL_HEIGHT, 1);
        return memory;
    }

    static long allocationProperties(Frame frame, PhysicalMemory physical) {
        MemorySegment memory = frame.struct();
        memory.set(JAVA_INT, 0, PINNED);
        memory.set(JAVA_INT, ALLOCATION_HANDLE_TYPES, physical.handleTypes());
        write(memory, ALLOCATION_LOCATION, physical.location());
        memory.set(JAVA_BYTE, ALLOCATION_RDMA, (byte) (physical.rdma() ? 1 : 0));
        return memory.address();
    }

    static long access(Frame frame, MemoryLocation accessor, AccessRights rights) {
        MemorySegment memory = frame.struct();
        write(memory, 0, accessor);
        memory.set(JAVA_INT, ACCESS_FLAGS, rights.code());
        return memory.address();
    }

    /// Writes an array of `CUmemAccessDesc` and returns its address.
    ///
    /// @param accessors at most [#MAX_ACCESSORS]
    static long access(Frame frame, List<MemoryLocation> accessors, AccessRights rights) {
        MemorySegment memory = frame.struct();
        for (int i = 0; i < accessors.size(); i++) {
            write(memory, i * ACCESS.byteSize(), accessors.get(i));
            memory.set(JAVA_INT, i * ACCESS.byteSize() + ACCESS_FLAGS, rights.code());
        }
        return memory.address();
    }

    static long copyOfRows(
            Frame frame, long target, long targetPitch, long source, long sourcePitch, long rowBytes, long rows) {
        MemorySegment memory = frame.struct();
        memory.set(JAVA_INT, SOURCE_TYPE, UNIFIED);
        memory.set(JAVA_LONG, SOURCE, source);
        memory.set(JAVA_LONG, SOURCE_PITCH, sourcePitch);
        memory.set(JAVA_INT, TARGET_TYPE, UNIFIED);
        memory.set(JAVA_LONG, TARGET, target);
        memory.set(JAVA_LONG, TARGET_PITCH, targetPitch);
        memory.set(JAVA_LONG, ROW_BYTES, rowBytes);
        memory.set(JAVA_LONG, ROWS, rows);
        return memory.address();
    }

    private static void write(MemorySegment memory, long offset, MemoryLocation location) {
        memory.set(JAVA_INT, offset, location.type().code());
        memory.set(JAVA_INT, offset + LOCATION_ID, location.id());
    }
}
