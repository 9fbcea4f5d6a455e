package io.cistern.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.cistern.DeviceMemory;
import io.cistern.errors.UnknownAddressException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Implements the four functions that C calls, in the order of `struct cistern_functions`.
///
/// **Errors.** No exception reaches C, where it would end the process. The thread keeps it for the command
/// `failure`, which C gives next on the same thread.
///
/// **Threads.** Any. The JVM attaches a thread at its first call and detaches it when the thread ends.
final class TorchFunctions {
    static final int DONE = 0;
    static final int FAILED = 1;
    static final int OUT_OF_MEMORY = 2;

    private final DeviceMemory memory;
    private final TorchCommands commands;

    TorchFunctions(DeviceMemory memory) {
        this.memory = memory;
        this.commands = new TorchCommands(memory);
    }

    /// Writes the addresses of the functions. They stay callable until the process ends.
    @SuppressWarnings("restricted")
    void writeTo(long table) {
        MemorySegment[] functions = {
            stub("allocate", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG)),
            stub("release", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG)),
            stub("recordUse", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG)),
            stub("command", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG))
        };
        MemorySegment written = MemorySegment.ofAddress(table).reinterpret(functions.length * ADDRESS.byteSize());
        for (int i = 0; i < functions.length; i++) {
            written.setAtIndex(ADDRESS, i, functions[i]);
        }
    }

    @SuppressWarnings("restricted")
    private MemorySegment stub(String method, FunctionDescriptor shape) {
        try {
            MethodType type = shape.toMethodType();
            var target = MethodHandles.lookup()
                    .findVirtual(TorchFunctions.class, method, type)
                    .bindTo(this);
            return Linker.nativeLinker().upcallStub(target, shape, Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(method, e);
        }
    }

    /// Returns a block's address; 0 on a failure, or for 0 bytes.
    long allocate(long byteSize, int device, long stream) {
        try {
            return memory.allocate(byteSize, device, stream);
        } catch (Throwable failure) {
            Failure.keep(failure);
            return 0;
        }
    }

    /// Frees a block. PyTorch frees in destructors, which can't fail, so failures are only logged.
    void release(long address, long stream) {
        try {
            memory.free(address, stream);
        } catch (Throwable failure) {
            commands.log(failure);
        }
    }

    int recordUse(long address, long stream) {
        try {
            memory.recordUse(address, stream);
            return DONE;
        } catch (UnknownAddressException foreign) {
            return DONE; // foreign memory, which PyTorch's own allocators ignore, too
        } catch (Throwable failure) {
            return failed(failure);
        }
    }

    /// Runs a command in words: see [TorchCommands].
    ///
    /// @param text the address of the command, a C string
    /// @param answer where to write the answer, a C string; cut if it is longer than the capacity
    int command(long text, long answer, long capacity) {
        try {
            String said = segment(text, Long.MAX_VALUE).getString(0);
            if (said.equals("failure")) {
                Throwable failure = Failure.last();
                write(failure == null ? "" : Failure.text(failure), answer, capacity);
                return Failure.isOutOfMemory(failure) ? OUT_OF_MEMORY : FAILED;
            }
            write(commands.run(said), answer, capacity);
            return DONE;
        } catch (Throwable failure) {
            return failed(failure);
        }
    }

    private static int failed(Throwable failure) {
        Failure.keep(failure);
        return Failure.isOutOfMemory(failure) ? OUT_OF_MEMORY : FAILED;
    }

    private static void write(String text, long answer, long capacity) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int length = (int) Math.min(bytes.length, capacity - 1);
        byte[] terminated = Arrays.copyOf(Arrays.copyOf(bytes, length), length + 1);
        MemorySegment.copy(MemorySegment.ofArray(terminated), 0, segment(answer, capacity), 0, terminated.length);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment segment(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }
}
