package io.cistern.loader.functions;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.errors.DeviceOutOfMemoryException;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;

/// Allocation as a pair of C function pointers, for a native library in this process that takes such a pair, as a
/// framework's pluggable allocator does: it then allocates from Cistern, metered, limited, and owned like all else.
///
/// ```c
/// void* malloc(ssize_t size, int device, cudaStream_t stream);             // null: there is no memory, or it failed
/// void  free(void* ptr, ssize_t size, int device, cudaStream_t stream);    // size and device are not needed
/// ```
///
/// ```java
/// AllocatorFunctions functions = AllocatorFunctions.of(memory);
/// library.setAllocator(functions.malloc().address(), functions.free().address());
/// ```
///
/// **Errors.** Nothing that is thrown reaches C, where it would end the process: [#malloc] answers null, and [#free]
/// of what is no live block does nothing. Whatever it was but a lack of memory is logged, once of each kind, and the
/// last of all is in [#lastFailure].
///
/// **Lifetime.** The pointers stay callable for as long as the process lives, since nobody knows when C has called
/// them for the last time. After [#close] `malloc` answers null, and `free` still frees; after the device memory has
/// closed too. So each pair takes about a kilobyte for good: make one and keep it.
///
/// **Threads.** C may call on any thread at any time, whether Java knows the thread or not: one that it meets for the
/// first time is attached, and detached when it ends. Scopes are those of the calling thread, so a foreign thread is
/// in none. A call from a virtual thread, through native code, is served as one.
///
/// **Context.** A call may leave the device's primary context current where none was.
public final class AllocatorFunctions implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(AllocatorFunctions.class.getName());

    private static final FunctionDescriptor MALLOC = FunctionDescriptor.of(
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);
    private static final FunctionDescriptor FREE = FunctionDescriptor.ofVoid(
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);

    private final DeviceMemory memory;
    private final Entrance entrance;
    private final MemorySegment malloc;
    private final MemorySegment free;
    private final AtomicReference<Throwable> lastFailure = new AtomicReference<>();
    private final Set<Class<?>> told = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    private AllocatorFunctions(DeviceMemory memory, Entrance entrance) {
        this.memory = memory;
        this.entrance = entrance;
        this.malloc = stub("allocate", MALLOC);
        this.free = stub("release", FREE);
    }

    private interface Entrance {
        long allocate(long byteSize, int device, long stream);
    }

    /// Functions that allocate as [DeviceMemory#allocate] does: from the scope of the calling thread, else from
    /// what is current.
    public static AllocatorFunctions of(DeviceMemory memory) {
        return new AllocatorFunctions(memory, memory::allocate);
    }

    /// Functions that allocate from one allocator.
    ///
    /// @param memory the allocator's device memory
    public static AllocatorFunctions of(DeviceMemory memory, Allocator allocator) {
        return new AllocatorFunctions(memory, allocator::allocate);
    }

    @SuppressWarnings("restricted")
    private MemorySegment stub(String method, FunctionDescriptor shape) {
        try {
            MethodType type = shape.toMethodType();
            MethodHandle target = MethodHandles.lookup()
                    .findVirtual(AllocatorFunctions.class, method, type)
                    .bindTo(this);
            return Linker.nativeLinker().upcallStub(target, shape, Arena.global());
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(method, e);
        }
    }

    /// The C function `malloc`.
    public MemorySegment malloc() {
        return malloc;
    }

    /// The C function `free`.
    public MemorySegment free() {
        return free;
    }

    /// What failed last in a call from C; a lack of memory too.
    public Optional<Throwable> lastFailure() {
        return Optional.ofNullable(lastFailure.get());
    }

    /// Refuses allocations from now on. Blocks that are alive stay so until C, or anybody else, frees them.
    /// Closing twice does nothing.
    @Override
    public void close() {
        closed = true;
    }

    /// Called from C.
    long allocate(long byteSize, int device, long stream) {
        try {
            if (closed) {
                throw new IllegalStateException("the functions are closed");
            }
            return entrance.allocate(byteSize, device, stream);
        } catch (DeviceOutOfMemoryException none) {
            lastFailure.set(none);
            return 0;
        } catch (Throwable failure) {
            tell(failure);
            return 0;
        }
    }

    /// Called from C.
    void release(long address, long byteSize, int device, long stream) {
        try {
            memory.free(address, stream);
        } catch (Throwable failure) {
            tell(failure);
        }
    }

    private void tell(Throwable failure) {
        try {
            lastFailure.set(failure);
            if (told.add(failure.getClass())) {
                LOG.log(Level.WARNING, "a call from C failed, told once of its kind: {0}", failure.toString());
            }
        } catch (Throwable _) {
            // A logger that throws, or no stack left for it: there is no one left to tell.
        }
    }
}
