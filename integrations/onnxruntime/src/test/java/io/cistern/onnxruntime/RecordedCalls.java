package io.cistern.onnxruntime;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.cuda.library.NativeCode;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.util.ArrayList;
import java.util.List;

/// An `OrtAllocator` that notes each call before it passes it on to an [AllocatorTable].
final class RecordedCalls {
    private final AllocatorTable table;
    private final MemorySegment structure = Arena.global().allocate(64, ADDRESS.byteAlignment());
    private final List<String> calls = new ArrayList<>();

    RecordedCalls(AllocatorTable table, int version) throws ReflectiveOperationException {
        this.table = table;
        FunctionDescriptor ofSelf = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG);
        FunctionDescriptor ofTwo = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG);
        structure.set(JAVA_INT, 0, version);
        set(8, "alloc", ofTwo);
        set(16, "free", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG));
        set(24, "info", ofSelf);
        set(32, "reserve", ofTwo);
        set(40, "statistics", ofTwo);
        set(48, "allocOnStream", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
        if (version >= OnnxApi.SHRINK_VERSION) {
            set(56, "shrink", ofSelf);
        }
    }

    private void set(long offset, String method, FunctionDescriptor shape) throws ReflectiveOperationException {
        var target = MethodHandles.lookup().bind(this, method, shape.toMethodType());
        structure.set(ADDRESS, offset, NativeCode.function(target, shape));
    }

    MemorySegment structure() {
        return structure;
    }

    /// Returns the calls since the last time, without those that only ask what memory this is.
    synchronized List<String> take() {
        List<String> taken = List.copyOf(calls);
        calls.clear();
        return taken;
    }

    private synchronized void note(String call) {
        calls.add(call);
    }

    long alloc(long self, long byteSize) {
        note("Alloc " + byteSize);
        return table.allocate(self, byteSize);
    }

    void free(long self, long address) {
        note(address == 0 ? "Free 0" : "Free");
        table.free(self, address);
    }

    long info(long self) {
        return table.info(self);
    }

    long reserve(long self, long byteSize) {
        note("Reserve " + byteSize);
        return table.allocate(self, byteSize);
    }

    long statistics(long self, long out) {
        note("GetStats");
        return table.statistics(self, out);
    }

    long allocOnStream(long self, long byteSize, long stream) {
        note("AllocOnStream " + byteSize);
        return table.allocateOnStream(self, byteSize, stream);
    }

    long shrink(long self) {
        note("Shrink");
        return table.shrink(self);
    }
}
