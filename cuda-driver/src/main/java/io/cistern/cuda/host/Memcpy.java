package io.cistern.cuda.host;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// C's `memcpy` for arrays on the heap, called without a transition ([Linker.Option#critical]). It is
/// faster than [MemorySegment#copyFrom] while what is copied fits a core's cache.
///
/// No safepoint begins while it runs, so copy large arrays in pieces. It waits for nobody, so
/// that is all it can hold up.
///
/// It is linked at the first copy. Where that fails, since the program gives this module no native access or the C
/// library has no such function, [MemorySegment#copyFrom] does the same.
///
/// **Threads.** Any.
public final class Memcpy {
    private Memcpy() {}

    /// So that nothing is linked before the first copy.
    private static final class Linked {
        static final @Nullable MethodHandle MEMCPY = Memcpy.class.getModule().isNativeAccessEnabled()
                ? link(Linker.nativeLinker().defaultLookup())
                : null;
    }

    /// Copies all of the source to the beginning of the target.
    ///
    /// @param source what may be read, an array or native memory, which does not overlap the target
    /// @param target what may be written and is at least as long
    /// @throws IndexOutOfBoundsException if the target is shorter than the source
    /// @throws IllegalArgumentException if the target is read-only
    /// @throws IllegalStateException if the arena of one was closed
    /// @throws WrongThreadException if one belongs to another thread's confined arena
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

    /// The function, or null if there is none.
    @SuppressWarnings("restricted")
    static @Nullable MethodHandle link(SymbolLookup library) {
        FunctionDescriptor shape =
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);
        return library.find("memcpy")
                .map(function -> Linker.nativeLinker().downcallHandle(function, shape, Linker.Option.critical(true)))
                .orElse(null);
    }
}
