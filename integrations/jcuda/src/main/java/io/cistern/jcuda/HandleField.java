package io.cistern.jcuda;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import jcuda.CudaException;
import jcuda.NativePointerObject;

/// The handle in an object of JCuda, by the one field that all of them have.
///
/// JCuda lets nobody but its native code write it: no stream, event or context can be made from a handle by its
/// public or protected members. So the field is bound as a [VarHandle] once, as JCuda's native code binds it through
/// JNI: no reflection on the way of a call, and a JCuda without the field is refused when this class is loaded.
final class HandleField {
    private static final VarHandle HANDLE = bind();

    private HandleField() {}

    static long of(NativePointerObject object) {
        return (long) HANDLE.get(object);
    }

    static <T extends NativePointerObject> T set(T object, long handle) {
        HANDLE.set((NativePointerObject) object, handle);
        return object;
    }

    private static VarHandle bind() {
        try {
            return MethodHandles.privateLookupIn(NativePointerObject.class, MethodHandles.lookup())
                    .findVarHandle(NativePointerObject.class, "nativePointer", long.class);
        } catch (ReflectiveOperationException other) {
            throw new CudaException(
                    "this JCuda keeps its handles elsewhere than JCuda 12.6.0, which cistern-jcuda knows", other);
        }
    }
}
