package io.cistern.buffers.dlpack;

import io.cistern.cuda.library.NativeCode;
import java.lang.System.Logger.Level;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/// Tensors that other libraries hold, by the address of their struct, and the C function that ends them.
///
/// Finding a tensor allocates nothing on the Java heap. Neither does keeping one whose memory can't be freed now.
/// So no tensor is lost when the heap is full. Kept tensors are tried again when the next tensor begins or ends,
/// and when their device memory is closed.
///
/// **Invariant**: a tensor is in `table` from the moment that another library may have it to the first call of
/// its deleter; then in the `owed` list, or nowhere.
///
/// **Threads.** Any.
final class SharedTensors {
    private static final @Nullable SharedTensor[] TABLE = new SharedTensor[1024];
    private static @Nullable SharedTensor owed;

    /// Made when first needed.
    private static final class Stub {
        static final MemorySegment DELETER = make();

        private static MemorySegment make() {
            try {
                MethodType type = MethodType.methodType(void.class, long.class);
                return NativeCode.function(
                        MethodHandles.lookup().findStatic(SharedTensors.class, "delete", type),
                        FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG));
            } catch (ReflectiveOperationException e) {
                throw new LinkageError("SharedTensors.delete", e);
            }
        }
    }

    /// Closed with the device memory of the tensors, since there may be no later tensor that would try again to
    /// free them.
    static final class Owed implements AutoCloseable {
        @Override
        public void close() {
            endOwed();
        }
    }

    private SharedTensors() {}

    /// Returns the address of the C function `void deleter(self)` of all tensors.
    static long deleter() {
        return Stub.DELETER.address();
    }

    static synchronized void add(SharedTensor tensor) {
        int slot = slot(tensor.address());
        tensor.next = TABLE[slot];
        TABLE[slot] = tensor;
    }

    private static synchronized @Nullable SharedTensor take(long address) {
        int slot = slot(address);
        SharedTensor before = null;
        for (SharedTensor each = TABLE[slot]; each != null; each = each.next) {
            if (each.address() == address) {
                if (before == null) {
                    TABLE[slot] = each.next;
                } else {
                    before.next = each.next;
                }
                return each;
            }
            before = each;
        }
        return null;
    }

    /// Structs are at least 16 bytes apart.
    private static int slot(long address) {
        return (int) (address >>> 4) & (TABLE.length - 1);
    }

    /// Called from C, so an exception that left this method would end the JVM.
    static void delete(long address) {
        try {
            endOwed();
            SharedTensor tensor = take(address);
            if (tensor == null) {
                log("no tensor of Cistern is at 0x" + Long.toHexString(address) + ", or it was already deleted", null);
            } else {
                end(tensor);
            }
        } catch (Throwable failure) {
            log("a tensor could not be deleted", failure);
        }
    }

    private static void end(SharedTensor tensor) {
        try {
            tensor.end();
        } catch (Throwable failure) {
            if (tensor.isAlive()) {
                owe(tensor);
            } else {
                log("the memory of a tensor could not be released", failure);
            }
        }
    }

    private static synchronized void owe(SharedTensor tensor) {
        tensor.next = owed;
        owed = tensor;
    }

    private static synchronized @Nullable SharedTensor takeOwed() {
        SharedTensor all = owed;
        owed = null;
        return all;
    }

    /// Tries again to free the memory of tensors that could not be freed before.
    static void endOwed() {
        SharedTensor next = owed == null ? null : takeOwed();
        while (next != null) {
            SharedTensor tensor = next;
            next = tensor.next;
            end(tensor);
        }
    }

    private static void log(String what, @Nullable Throwable thrown) {
        try {
            System.getLogger(SharedTensors.class.getName()).log(Level.WARNING, what, thrown);
        } catch (Throwable _) {
            // The heap is full or the logger throws: there is no way to report it.
        }
    }
}
