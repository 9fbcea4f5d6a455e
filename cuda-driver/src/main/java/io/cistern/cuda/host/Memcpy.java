package io.cistern.cuda.host;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Calls C's `memcpy` for arrays on the heap, without a thread-state transition ([Linker.Option#critical]). For
/// copies that fit a core's cache it is faster than [MemorySegment#copyFrom].
///
/// No safepoint begins while it runs, so copy large arrays in pieces. `memcpy` waits for nothing, so it delays
/// a safepoint for no longer than the copy takes.
///
/// It is linked at the first copy. If that fails, because this module has no native access or the C library has
/// no such function, [MemorySegment#copyFrom] is used.
///
/// **Threads.** Any.
public final class Memcpy {
    private Memcpy() {}

    /// A holder class, so that nothing is linked before the first copy.
    private static final class Linked {
        static final @Nullable MethodHandle MEMCPY = Memcpy.class.getModule().isNativeAccessEnabled()
                ? link(Linker.nativeLinker().defaultLookup())
                : null;
    }

    /// Copies all of the source to the beginning of the target.
    ///
    /// @param source a readable array or native memory that does not overlap the target
    /// @param target writable memory, at least as long
    /// @throws IndexOutOfBoundsException if the target is shorter than the source
    /// @throws IllegalArgumentException if the target is read-only
    /// @throws IllegalStateException if the arena of either was closed
    /// @throws WrongThreadException if either belongs to another thread's confined arena
    public static void copy(MemorySegment source, MemorySegment target) {
        copy(Linked.MEMCPY, source, target);
    }

    static void copy(@Nullable MethodHandle memcpy, MemorySegment source, MemorySegment target) {
        long byteSize = source.byteSize();
        Objects.checkFromIndexSize(0, byteSize, target.byteSize());
        if (memcpy == null || target.isReadOnly()) {
            target.copyFrom(source);
            return;
        }
        try {
            memcpy.invokeExact(target, source, byteSize);
        } catch (RuntimeException | Error failure) {
            throw failure;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    @SuppressWarnings("restricted")
    static @Nullable MethodHandle link(SymbolLookup library) {
        FunctionDescriptor shape =
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);
        return library.find("memcpy")
                .map(function -> Linker.nativeLinker().downcallHandle(function, shape, Linker.Option.critical(true)))
                .orElse(null);
    }
}
