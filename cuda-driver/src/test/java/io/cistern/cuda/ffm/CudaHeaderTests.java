package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CaptureStatus;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeviceAttribute;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.GraphMemoryAttribute;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.PointerAttribute;
import io.cistern.cuda.PoolAttribute;
import io.cistern.cuda.Sharing;
import io.cistern.cuda.Streams;
import java.io.IOException;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.StructLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Layouts, constants and prototypes against what a C++ compiler makes of `cuda.h`: one generated program prints
/// the header's side of everything, and the tests compare.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
final class CudaHeaderTests {
    /// The first header that has every name used here.
    private static final long NEEDED_VERSION = 13000;

    private final SortedMap<String, Long> constants = constants();
    private final SortedMap<String, Long> layouts = layouts();
    private SortedMap<String, String> header = new TreeMap<>();

    @BeforeAll
    void askTheCompiler(@TempDir Path folder) throws IOException {
        String version = NativeCompiler.outputOfProgramWithCudaHeader(
                folder, "#include <cuda.h>\n#include <cstdio>\nint main() { std::printf(\"%d\", CUDA_VERSION); }\n");
        assumeTrue(
                Long.parseLong(version) >= NEEDED_VERSION, "cuda.h of version " + version + " is too old to compare");
        header = NativeCompiler.outputOfProgramWithCudaHeader(folder, program())
                .lines()
                .map(line -> line.split(" = ", 2))
                .collect(Collectors.toMap(part -> part[0], part -> part[1], (a, b) -> b, TreeMap::new));
    }

    @Test
    void constantsAreTheHeaders() {
        assertThat(fromHeader(constants)).isEqualTo(constants);
    }

    @Test
    void structsHaveTheSizesAndOffsetsOfTheCompiler() {
        assertThat(fromHeader(layouts)).isEqualTo(layouts);
    }

    @Test
    void everyFunctionHasTheShapeOfItsPrototype(@TempDir Path folder) {
        SortedMap<String, String> shapes = new TreeMap<>();
        try (NativeDriver driver = new FakeLibrary(folder).open()) {
            driver.bound().forEach((call, function) -> shapes.put(call.symbol(), function.shape()));
        }
        assertThat(shapes).hasSizeGreaterThan(70);
        SortedMap<String, String> prototypes = new TreeMap<>(header);
        prototypes.keySet().retainAll(shapes.keySet());
        assertThat(shapes).isEqualTo(prototypes);
    }

    private SortedMap<String, Long> fromHeader(SortedMap<String, Long> expected) {
        SortedMap<String, Long> found = new TreeMap<>();
        expected.keySet().forEach(key -> found.put(key, Long.valueOf(header.getOrDefault(key, "-1"))));
        return found;
    }

    private String program() {
        StringBuilder text = new StringBuilder("""
                #include <cuda.h>
                #include <cstddef>
                #include <cstdio>
                #include <string>
                template <class R, class... A> std::string shape(R (*)(A...)) {
                    return (std::string() + ... + (sizeof(A) == 8 ? "L" : sizeof(A) == 64 ? "H" : sizeof(A) == 16 ? "?" : "I"));
                }
                int main() {
                """);
        constants.keySet().forEach(name -> print(text, name, "\"%lld\", (long long) " + name));
        for (String name : layouts.keySet()) {
            String[] path = name.split("\\.", 2);
            print(
                    text,
                    name,
                    "\"%zu\", "
                            + (path.length == 1
                                    ? "sizeof(" + name + ")"
                                    : "offsetof(" + path[0] + ", " + path[1] + ")"));
        }
        for (DriverCall call : DriverCall.values()) {
            print(text, call.symbol(), "\"%s\", shape((decltype(&" + call.symbol() + ")) nullptr).c_str()");
        }
        return text.append("}\n").toString();
    }

    private static void print(StringBuilder text, String name, String value) {
        text.append("    std::printf(\"")
                .append(name)
                .append(" = \" ")
                .append(value)
                .append("); std::puts(\"\");\n");
    }

    private static SortedMap<String, Long> layouts() {
        SortedMap<String, Long> layouts = new TreeMap<>();
        for (StructLayout struct : List.of(
                Structs.LOCATION,
                Structs.POOL_PROPERTIES,
                Structs.ALLOCATION_PROPERTIES,
                Structs.ACCESS,
                Structs.ALLOCATION_NODE,
                Structs.FILL_NODE,
                Structs.HANDLE,
                Structs.COPY_OF_ROWS,
                Structs.COPY_ATTRIBUTES)) {
            String name = struct.name().orElseThrow();
            layouts.put(name, struct.byteSize());
            addMembers(layouts, name, struct, struct, List.of());
        }
        layouts.put("CUasyncNotificationInfo", BudgetNotices.INFO_BYTES);
        layouts.put("CUasyncNotificationInfo.info.overBudget.bytesOverBudget", BudgetNotices.OVER);
        return layouts;
    }

    private static void addMembers(
            Map<String, Long> layouts, String name, StructLayout struct, GroupLayout group, List<String> path) {
        for (MemoryLayout member : group.memberLayouts()) {
            if (member instanceof PaddingLayout) {
                continue;
            }
            List<String> names = new ArrayList<>(path);
            names.add(member.name().orElseThrow());
            layouts.put(
                    name + "." + String.join(".", names),
                    struct.byteOffset(
                            names.stream().map(PathElement::groupElement).toArray(PathElement[]::new)));
            if (member instanceof GroupLayout inner) {
                addMembers(layouts, name, struct, inner, names);
            }
        }
    }

    private static SortedMap<String, Long> constants() {
        SortedMap<String, Long> names = new TreeMap<>();
        for (CudaResult result : CudaResult.values()) {
            names.put(cName(result), (long) result.code());
        }
        for (DeviceAttribute attribute : DeviceAttribute.values()) {
            names.put(cName(attribute), (long) attribute.code());
        }
        for (PointerAttribute attribute : PointerAttribute.values()) {
            names.put(cName(attribute), (long) attribute.code());
        }
        for (PoolAttribute attribute : PoolAttribute.values()) {
            names.put(cName(attribute), (long) attribute.code());
        }
        for (MemoryLocation.Type type : MemoryLocation.Type.values()) {
            names.put("CU_MEM_LOCATION_TYPE_" + type.name(), (long) type.code());
        }
        Arrays.stream(HandleType.values())
                .forEach(type -> names.put("CU_MEM_HANDLE_TYPE_" + type.name(), (long) type.bit()));
        names.put("CU_MEM_ACCESS_FLAGS_PROT_NONE", (long) AccessRights.NONE.code());
        names.put("CU_MEM_ACCESS_FLAGS_PROT_READ", (long) AccessRights.READ.code());
        names.put("CU_MEM_ACCESS_FLAGS_PROT_READWRITE", (long) AccessRights.READ_WRITE.code());
        names.put("CU_MEMORYTYPE_UNIFIED", (long) Structs.UNIFIED);
        names.put("CU_MEM_ALLOCATION_TYPE_PINNED", (long) Structs.PINNED);
        names.put("CU_MEM_ALLOCATION_TYPE_MANAGED", (long) Structs.MANAGED);
        names.put("CU_MEM_ATTACH_GLOBAL", (long) NativeUnifiedMemory.ATTACH_GLOBAL);
        for (MemoryAdvice advice : MemoryAdvice.values()) {
            names.put("CU_MEM_ADVISE_" + advice.name(), (long) advice.code());
        }
        names.put("CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY", (long) NativeUnifiedMemory.READ_MOSTLY);
        names.put("CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY", (long) NativeUnifiedMemory.ACCESSED_BY);
        int preferred = NativeUnifiedMemory.PREFERRED_LOCATION_TYPE;
        names.put("CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE", (long) preferred);
        names.put("CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID", (long) preferred + 1);
        int prefetched = NativeUnifiedMemory.LAST_PREFETCH_LOCATION_TYPE;
        names.put("CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE", (long) prefetched);
        names.put("CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID", (long) prefetched + 1);
        names.put("CU_DEVICE_CPU", (long) NativeUnifiedMemory.HOST);
        names.put("CU_DEVICE_INVALID", (long) NativeUnifiedMemory.NOBODY);
        names.put("CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS", (long) Structs.HARDWARE_DECOMPRESS);
        names.put("CU_MEM_ALLOC_GRANULARITY_MINIMUM", (long) NativeVirtualMemory.MINIMUM);
        names.put("CU_MEM_ALLOC_GRANULARITY_RECOMMENDED", (long) NativeVirtualMemory.RECOMMENDED);
        names.put("(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)", (long)
                NativeLinearMemory.ALLOC_PORTABLE_MAPPED);
        names.put("(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)", (long)
                NativeLinearMemory.REGISTER_PORTABLE_MAPPED);
        names.put("CU_STREAM_NON_BLOCKING", (long) NativeStreams.NON_BLOCKING);
        names.put("CU_STREAM_LEGACY", Streams.LEGACY_DEFAULT);
        names.put("CU_STREAM_PER_THREAD", Streams.PER_THREAD_DEFAULT);
        names.put("(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)", (long) NativeSharing.INTERPROCESS);
        for (String handle :
                List.of("CUipcEventHandle", "CUipcMemHandle", "CUmemPoolPtrExportData", "CUmemFabricHandle")) {
            names.put("sizeof(" + handle + ")", (long) Sharing.HANDLE_BYTES);
        }
        for (CaptureMode mode : CaptureMode.values()) {
            names.put("CU_STREAM_CAPTURE_MODE_" + mode.name(), (long) mode.code());
        }
        for (CaptureStatus status : CaptureStatus.values()) {
            names.put("CU_STREAM_CAPTURE_STATUS_" + status.name(), (long) status.code());
        }
        for (GraphMemoryAttribute attribute : GraphMemoryAttribute.values()) {
            names.put("CU_GRAPH_MEM_ATTR_" + attribute.name().replace("_", "_MEM_"), (long) attribute.code());
        }
        names.put("CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH", NativeGraphs.AUTO_FREE_ON_LAUNCH);
        names.put("CU_USER_OBJECT_NO_DESTRUCTOR_SYNC", (long) NativeGraphs.NO_DESTRUCTOR_SYNC);
        names.put("CU_GRAPH_USER_OBJECT_MOVE", (long) NativeGraphs.MOVE);
        names.put("sizeof(CUgraphExecUpdateResultInfo)", NativeGraphs.UPDATE_RESULT_BYTES);
        names.put("CU_MEMCPY_SRC_ACCESS_ORDER_STREAM", (long) NativeCopies.STREAM_ORDER);
        names.put("CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET", (long) BudgetNotices.OVER_BUDGET);
        names.put("CU_EVENT_DISABLE_TIMING", (long) NativeEvents.DISABLE_TIMING);
        return names;
    }

    private static String cName(CudaResult result) {
        return result == CudaResult.SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_" + result.name();
    }

    private static String cName(DeviceAttribute attribute) {
        return "CU_DEVICE_ATTRIBUTE_" + attribute.name();
    }

    private static String cName(PointerAttribute attribute) {
        String name = "CU_POINTER_ATTRIBUTE_" + attribute.name();
        return attribute == PointerAttribute.RANGE_START ? name + "_ADDR" : name;
    }

    private static String cName(PoolAttribute attribute) {
        String name = attribute.name();
        return "CU_MEMPOOL_ATTR_"
                + (name.startsWith("RESERVED_") || name.startsWith("USED_") ? name.replace("_", "_MEM_") : name);
    }
}
