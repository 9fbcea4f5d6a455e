package io.cistern.handles;

import io.cistern.DeviceMemory;
import io.cistern.cuda.DeviceAttribute;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.ObjLongConsumer;

/// Creates and destroys the handles of one library, and sets a handle's stream. A [HandlePool] is opened over
/// it.
///
/// **Threads.** The pool may call any method on any thread at any time, but never passes one handle to two
/// calls at once.
///
/// **Context.** All methods that take or create a handle run with the device's primary context current. A
/// capture under way neither forbids the work of [#create] and [#destroy] nor records it.
///
/// @param <H> the type of the handles; the pool does not call their `equals`
public interface HandleLibrary<H> {
    /// Returns the library's name for messages and events, for example `cuBLAS`.
    String name();

    /// Creates a handle.
    ///
    /// @param device the ordinal of the device whose context is current
    /// @throws RuntimeException for any refusal of the library; the pool tries once more after it has freed
    ///     memory
    H create(int device);

    /// Destroys a handle that no thread uses.
    ///
    /// @param device the device's ordinal, as given to [#create]
    void destroy(H handle, int device);

    /// Sets the stream on which a handle's next calls run.
    ///
    /// @param stream a `CUstream` of the handle's device
    void setStream(H handle, long stream);

    /// Returns the bytes of workspace that a handle needs; 0, the default, if it needs none from the pool.
    ///
    /// @param device the ordinal of a device
    default long workspaceBytes(int device) {
        return 0;
    }

    /// Gives a handle memory for its calls on the stream that was set last. The pool calls it after
    /// [#setStream], if [#workspaceBytes] is not 0.
    ///
    /// @param address device memory, which stays valid until the handle has another workspace or is destroyed
    /// @param byteSize its size in bytes
    default void setWorkspace(H handle, long address, long byteSize) {}

    /// Returns a library that consists of three functions, without workspaces.
    ///
    /// @param <H> the type of the handles
    static <H> HandleLibrary<H> of(
            String name,
            IntFunction<? extends H> create,
            Consumer<? super H> destroy,
            ObjLongConsumer<? super H> setStream) {
        return new HandleLibrary<>() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public H create(int device) {
                return create.apply(device);
            }

            @Override
            public void destroy(H handle, int device) {
                destroy.accept(handle);
            }

            @Override
            public void setStream(H handle, long stream) {
                setStream.accept(handle, stream);
            }
        };
    }

    /// Returns the bytes of workspace that NVIDIA recommends for a handle of cuBLAS or cuBLASLt (see
    /// `cublasSetWorkspace` in the cuBLAS documentation): 32 MiB since Hopper, 4 MiB before.
    ///
    /// @param device the ordinal of a device
    static long cublasWorkspaceBytes(DeviceMemory memory, int device) {
        int major = memory.driver().devices().attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR);
        return (major >= 9 ? 32L : 4L) << 20;
    }
}
