package io.cistern.loader.functions;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.OpenOptions;
import io.cistern.Scope;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.loader.library.CSources;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.DeviceAllocator;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// C code that allocates from Cistern through two function pointers.
class AllocatorFunctionsTests {
    private static final long MIB = 1 << 20;

    @TempDir
    private static Path folder;

    private static SymbolLookup c;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(64 * MIB).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();
    private final AllocatorFunctions functions = AllocatorFunctions.of(memory);

    @BeforeAll
    @SuppressWarnings("restricted")
    static void compile() {
        Path library = CSources.library(folder.resolve("user.so"), """
                #include <pthread.h>
                #include <stdlib.h>
                #include <sys/types.h>
                typedef void* (*malloc_t)(ssize_t, int, void*);
                typedef void (*free_t)(void*, ssize_t, int, void*);
                struct work { malloc_t m; free_t f; long rounds; long failed; };
                void* one(malloc_t m, ssize_t size, int device) { return m(size, device, 0); }
                void give(free_t f, void* p) { f(p, 0, 0, 0); }
                static void* run(void* argument) {
                    struct work* w = argument;
                    void* kept[32] = {0};
                    for (long i = 0; i < w->rounds; i++) {
                        void** slot = &kept[i % 32];
                        if (*slot) w->f(*slot, 4096, 0, 0);
                        *slot = w->m(4096, 0, 0);
                        if (!*slot) w->failed++;
                    }
                    for (int i = 0; i < 32; i++) if (kept[i]) w->f(kept[i], 4096, 0, 0);
                    return 0;
                }
                long threads(malloc_t m, free_t f, int count, long rounds) {
                    pthread_t all[16];
                    struct work work[16];
                    long failed = 0;
                    for (int i = 0; i < count; i++) {
                        work[i] = (struct work) {m, f, rounds, 0};
                        pthread_create(&all[i], 0, run, &work[i]);
                    }
                    for (int i = 0; i < count; i++) { pthread_join(all[i], 0); failed += work[i].failed; }
                    return failed;
                }
                """, "-pthread");
        c = SymbolLookup.libraryLookup(library, Arena.global());
    }

    @AfterEach
    void nothingIsLost() {
        memory.close();
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(64 * MIB);
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void whatCAllocatesIsMeteredAndOwned() {
        Allocator current = memory.setCurrent("caching");
        long block = malloc(3 * MIB, 0);

        assertThat(current.statistics(0).requestedBytes()).isEqualTo(3 * MIB);
        assertThat(memory.liveBlocks())
                .singleElement()
                .satisfies(leak -> assertThat(leak.address()).isEqualTo(block));
        memory.setCurrent("direct");
        free(block);
        assertThat(current.statistics(0).liveBlocks()).isZero();
    }

    @Test
    void theScopeOfTheCallingThreadServes() {
        memory.setCurrent("caching");
        Allocator scoped = memory.open("direct");
        try (Scope _ = scoped.enter()) {
            free(malloc(1000, 0));
        }
        assertThat(scoped.statistics(0).allocations()).isEqualTo(1);
    }

    @Test
    void threadsThatJavaNeverSawAllocateSideBySide() {
        Allocator current = memory.setCurrent("caching");
        long failed = call(
                "threads",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_LONG,
                        ValueLayout.ADDRESS,
                        ValueLayout.ADDRESS,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_LONG),
                functions.malloc(),
                functions.free(),
                8,
                2000L);

        assertThat(failed).isZero();
        assertThat(current.statistics(0).allocations()).isEqualTo(8 * 2000);
        assertThat(current.statistics(0).liveBlocks()).isZero();
    }

    @Test
    void noMemoryIsNull() {
        memory.setCurrent("direct");

        assertThat(malloc(65 * MIB, 0)).isZero();
        assertThat(functions.lastFailure()).containsInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(malloc(0, 0)).isZero();
    }

    @Test
    void nothingThatIsThrownReachesC() {
        memory.setCurrent("direct");

        assertThat(malloc(-1, 0)).isZero();
        assertThat(functions.lastFailure()).containsInstanceOf(IllegalArgumentException.class);
        assertThat(malloc(1000, 7)).isZero();
        assertThat(functions.lastFailure()).containsInstanceOf(IndexOutOfBoundsException.class);
        free(4096);
        assertThat(functions.lastFailure()).containsInstanceOf(UnknownAddressException.class);
        try (Scope _ =
                memory.open(OpenOptions.made("overflowing", new Overflowing())).enter()) {
            assertThat(malloc(1000, 0)).isZero();
        }
        assertThat(functions.lastFailure()).containsInstanceOf(StackOverflowError.class);
        free(malloc(1000, 0));
    }

    @Test
    void thePointersOutliveTheFunctions() {
        memory.setCurrent("direct");
        long block = malloc(1000, 0);
        functions.close();
        functions.close();

        assertThat(malloc(1000, 0)).isZero();
        free(block);
        free(block);
        assertThat(functions.lastFailure()).containsInstanceOf(UnknownAddressException.class);
        memory.close();
        free(block);
        assertThat(malloc(1000, 0)).isZero();
    }

    @Test
    void oneAllocatorCanBeChosenForC() {
        memory.setCurrent("direct");
        Allocator own = memory.open("caching");
        try (AllocatorFunctions ofOne = AllocatorFunctions.of(memory, own)) {
            long block = mallocThrough(ofOne, 1000, 0);
            assertThat(own.statistics(0).liveBlocks()).isEqualTo(1);
            free(block);
        }
    }

    @Test
    void aVirtualThreadIsServedThroughNativeCode() throws Exception {
        Allocator current = memory.setCurrent("caching");
        Thread.ofVirtual().start(() -> free(malloc(1000, 0))).join();
        assertThat(current.statistics(0).frees()).isEqualTo(1);
    }

    private long malloc(long byteSize, int device) {
        return mallocThrough(functions, byteSize, device);
    }

    private static long mallocThrough(AllocatorFunctions which, long byteSize, int device) {
        return call(
                "one",
                FunctionDescriptor.of(
                        ValueLayout.JAVA_LONG, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT),
                which.malloc(),
                byteSize,
                device);
    }

    private void free(long address) {
        call("give", FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.JAVA_LONG), functions.free(), address);
    }

    @SuppressWarnings("restricted")
    private static long call(String function, FunctionDescriptor shape, Object... arguments) {
        MethodHandle handle = Linker.nativeLinker().downcallHandle(c.findOrThrow(function), shape);
        try {
            Object result = handle.invokeWithArguments(arguments);
            return result instanceof Long number ? number : 0;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Overflowing implements DeviceAllocator {
        @Override
        @SuppressWarnings("InfiniteRecursion")
        public long allocate(long byteSize, int device, long stream) {
            return allocate(byteSize, device, stream) + 1;
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {}
    }
}
