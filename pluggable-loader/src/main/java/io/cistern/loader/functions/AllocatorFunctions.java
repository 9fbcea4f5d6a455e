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

/// Offers allocation as a pair of C function pointers, for native libraries in this process that accept
/// such a pair, as a framework's pluggable allocator does. The library then allocates from Cistern,
/// which meters and limits the memory as usual.
///
/// ```c
/// void* malloc(ssize_t size, int device, cudaStream_t stream);             // null: out of memory, or a failure
/// void  free(void* ptr, ssize_t size, int device, cudaStream_t stream);    // size and device are ignored
/// ```
///
/// ```java
/// AllocatorFunctions functions = AllocatorFunctions.of(memory);
/// library.setAllocator(functions.malloc().address(), functions.free().address());
/// ```
///
/// **Errors.** No exception reaches C, where it would end the process. If an allocation fails, `malloc`
/// returns null; `free` of an address that is not a live block does nothing. Failures other than a lack
/// of memory are logged, once for each class of exception. [#lastFailure] returns the last failure of
/// any class, including a lack of memory.
///
/// **Lifetime.** The pointers stay callable for as long as the process lives, because C may call them at
/// any time. So each pair takes some memory until the process ends: create one pair and keep it. After
/// [#close], `malloc` returns null and `free` still frees, even after the device memory has closed.
///
/// **Threads.** C may call on any thread at any time, even one that Java does not know: such a thread
/// is attached at its first call and detached when it ends. The scopes of the calling thread apply; a
/// thread that Java did not create is in no scope. If a virtual thread calls through native code, the
/// call counts as the virtual thread's.
///
/// **Context.** If no context was current, a call may leave the device's primary context current.
public final class AllocatorFunctions implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(AllocatorFunctions.class.getName());

    private static final FunctionDescriptor MALLOC = FunctionDescriptor.of(
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);
    private static final FunctionDescriptor FREE = FunctionDescriptor.ofVoid(
            ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);

    private final DeviceMemory memory;
    private final Allocation allocation;
    private final MemorySegment malloc;
    private final MemorySegment free;
    private final AtomicReference<Throwable> lastFailure = new AtomicReference<>();

    /// The names of the kinds that were logged. Their classes would keep a plug-in loaded after its reload.
    private final Set<String> logged = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    private AllocatorFunctions(DeviceMemory memory, Allocation allocation) {
        this.memory = memory;
        this.allocation = allocation;
        this.malloc = stub("allocate", MALLOC);
        this.free = stub("release", FREE);
    }

    private interface Allocation {
        long allocate(long byteSize, int device, long stream);
    }

    /// Returns functions that allocate as [DeviceMemory#allocate] does: from the scope of the calling thread,
    /// else from the current allocator.
    ///
    /// @param memory the device memory; it also frees the blocks
    public static AllocatorFunctions of(DeviceMemory memory) {
        return new AllocatorFunctions(memory, memory::allocate);
    }

    /// Returns functions that allocate from one allocator.
    ///
    /// @param memory the allocator's device memory; it also frees the blocks
    /// @param allocator the allocator
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

    /// Returns the C function `malloc`.
    public MemorySegment malloc() {
        return malloc;
    }

    /// Returns the C function `free`.
    public MemorySegment free() {
        return free;
    }

    /// Returns the last failure of a call from C, including a lack of memory; empty if there was none.
    public Optional<Throwable> lastFailure() {
        return Optional.ofNullable(lastFailure.get());
    }

    /// Refuses allocations from now on. Live blocks stay live until C, or other code, frees them.
    /// Closing twice does nothing.
    @Override
    public void close() {
        closed = true;
    }

    /// Serves `malloc`; called from C.
    long allocate(long byteSize, int device, long stream) {
        try {
            if (closed) {
                throw new IllegalStateException("the functions are closed");
            }
            return allocation.allocate(byteSize, device, stream);
        } catch (DeviceOutOfMemoryException none) {
            lastFailure.set(none);
            return 0;
        } catch (Throwable failure) {
            tell(failure);
            return 0;
        }
    }

    /// Serves `free`; called from C.
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
            if (logged.add(failure.getClass().getName())) {
                LOG.log(
                        Level.WARNING,
                        "a call from C failed; later failures of this kind are not logged: {0}",
                        failure.toString());
            }
        } catch (Throwable _) {
            // The logger throws, or there is no stack left for it, so the failure can't be reported.
        }
    }
}
