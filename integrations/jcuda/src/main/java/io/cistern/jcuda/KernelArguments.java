package io.cistern.jcuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.Buffer;
import java.nio.LongBuffer;
import java.util.function.Consumer;
import jcuda.CudaException;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import org.jspecify.annotations.Nullable;

/// Finds the addresses among a kernel's arguments: pointers, and numbers of 64 bits.
///
/// No public member of JCuda tells what a pointer points to, so this class binds the fields as [HandleField] does.
final class KernelArguments {
    private static final VarHandle POINTERS = bind("pointers", NativePointerObject[].class);
    private static final VarHandle BUFFER = bind("buffer", Buffer.class);

    private KernelArguments() {}

    /// @param parameters what `cuLaunchKernel` gets: a pointer to a pointer to each argument
    static void forEachPointer(@Nullable Pointer parameters, Consumer<Pointer> action) {
        for (NativePointerObject parameter : pointers(parameters)) {
            for (NativePointerObject value : pointers(parameter)) {
                if (value instanceof Pointer pointer && isAddress(pointer)) {
                    action.accept(pointer);
                }
            }
            if (parameter instanceof Pointer number
                    && BUFFER.get(number) instanceof LongBuffer longs
                    && PointerParts.offset(number) / Long.BYTES < longs.capacity()) {
                action.accept(JCudaPointers.of(longs.get((int) (PointerParts.offset(number) / Long.BYTES))));
            }
        }
    }

    private static NativePointerObject[] pointers(@Nullable NativePointerObject pointer) {
        NativePointerObject[] pointers =
                pointer instanceof Pointer known ? (NativePointerObject[]) POINTERS.get(known) : null;
        return pointers == null ? new NativePointerObject[0] : pointers;
    }

    private static boolean isAddress(Pointer pointer) {
        return POINTERS.get(pointer) == null && BUFFER.get(pointer) == null && JCudaPointers.address(pointer) != 0;
    }

    private static VarHandle bind(String name, Class<?> type) {
        try {
            return MethodHandles.privateLookupIn(Pointer.class, MethodHandles.lookup())
                    .findVarHandle(Pointer.class, name, type);
        } catch (ReflectiveOperationException other) {
            throw new CudaException(
                    "cistern-jcuda supports JCuda 12.6.0, and this version stores its pointers differently", other);
        }
    }
}
