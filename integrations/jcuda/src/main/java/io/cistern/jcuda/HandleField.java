package io.cistern.jcuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Objects;
import jcuda.CudaException;
import jcuda.NativePointerObject;

/// Reads and writes the handle in an object of JCuda, through the one field that all such objects have.
///
/// Only JCuda's native code may write it: no public or protected member makes a stream, event or context from a
/// handle. So this class binds the field as a [VarHandle] once, as JCuda's native code binds it through JNI.
/// Calls need no reflection, and a JCuda without the field is refused when this class is loaded.
final class HandleField {
    private static final VarHandle HANDLE = bind(NativePointerObject.class, "nativePointer");

    private HandleField() {}

    /// @param name the object's name, for the message
    /// @throws NullPointerException if there is no object
    static long of(NativePointerObject object, String name) {
        require(object, name);
        return (long) HANDLE.get(object);
    }

    /// The field itself would throw without a message.
    static void require(NativePointerObject object, String name) {
        Objects.requireNonNull(object, () -> name + " is null");
    }

    static <T extends NativePointerObject> T set(T object, long handle) {
        HANDLE.set((NativePointerObject) object, handle);
        return object;
    }

    /// Binds a field of type `long` of a class of JCuda.
    static VarHandle bind(Class<?> owner, String field) {
        try {
            return MethodHandles.privateLookupIn(owner, MethodHandles.lookup()).findVarHandle(owner, field, long.class);
        } catch (ReflectiveOperationException other) {
            throw new CudaException(
                    "cistern-jcuda supports JCuda 12.6.0, and this version stores its handles differently", other);
        }
    }
}
