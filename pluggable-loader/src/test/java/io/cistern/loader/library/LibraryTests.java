package io.cistern.loader.library;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.errors.ConfigurationException;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.jvm.CCompiler;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.MemorySharing;
import io.cistern.spi.Segment;
import io.cistern.spi.StreamUses;
import io.cistern.spi.TrimMode;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Shared libraries as allocators, on a simulated GPU, where they are counted and nothing more.
class LibraryTests {
    private static final long MIB = 1 << 20;

    @TempDir(cleanup = CleanupMode.ALWAYS)
    private Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(64 * MIB).build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu).open();

    @AfterEach
    void nothingIsLeft() {
        memory.close();
        assertThat(memory.allocators()).isEmpty();
        gpu.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLibraryIsMeteredLimitedAndOwnedLikeAnyOther(boolean critical) {
        Allocator library = memory.setCurrent("library:path=" + plain() + ",critical=" + critical);
        long one = memory.allocate(3 * MIB, 0, 0);
        long two = memory.allocate(MIB, 1, 0);
        assertThat(library.statistics(0).requestedBytes()).isEqualTo(3 * MIB);
        assertThat(library.statistics(1).liveBlocks()).isEqualTo(1);
        memory.setCurrent("direct");
        memory.free(one, 0);
        assertThat(library.statistics(0).liveBlocks()).isZero();
        assertThat(library.reservedBytes(0)).as("what it keeps, nobody knows").isEmpty();
        memory.free(two, 0);
        assertThat(library.isDrained()).isTrue();
    }

    @Test
    void nullIsOutOfMemory() {
        Path file = plain();
        Allocator library = memory.open("library:path=" + file);

        assertThatThrownBy(() -> library.allocate(1L << 41, 0, 0))
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("library " + file + " returned null");
        assertThat(library.statistics(0).requestedPeakBytes()).isZero();
    }

    @Test
    void aPoolKeepsAndCutsItsSegments() {
        try (MemoryPool pool = memory.pools().open("caching:source=\"library:path=" + plain() + "\"")) {
            long one = pool.allocate(1000, 0, 0);
            long two = pool.allocate(1000, 0, 0);
            assertThat(pool.reservedBytes(0)).hasValue(2 * MIB);
            memory.free(one, 0);
            memory.free(two, 0);
        }
    }

    @Test
    void aMissingSymbolIsNamedWithItsFile() {
        Path file = plain();

        assertRefused(
                () -> memory.open("library:path=" + file + ",malloc=alloc"),
                "library " + file + " has no symbol 'alloc'; name the right one with option malloc");
        assertRefused(
                () -> memory.open("library:path=" + file + ",reset=empty"),
                "library " + file + " has no symbol 'empty'; name the right one with option reset");
    }

    @Test
    void whatIsNoLibraryOfThisMachineIsRefused() throws IOException {
        Path text = Files.writeString(folder.resolve("text.so"), "no library");
        byte[] whole = Files.readAllBytes(plain());
        byte[] foreign = whole.clone();
        foreign[18] = (byte) (foreign[18] == 62 ? 183 : 62);
        Path other = Files.write(folder.resolve("other.so"), foreign);
        Path half = Files.write(folder.resolve("half.so"), java.util.Arrays.copyOf(whole, 300));

        assertRefused(open(text), "library " + text + " is not a shared library: it does not start like an ELF file");
        assertThatThrownBy(open(other)).hasMessageMatching("library .*other.so is for (aarch64|amd64), and .*");
        assertThatThrownBy(open(half)).hasMessageStartingWith("library " + half + " can't be loaded: ");
        assertThatThrownBy(open(folder.resolve("none.so"))).hasMessageContaining("none.so can't be read: ");
        assertRefused(
                () -> memory.open("library"),
                "'library' needs the path of a shared library:"
                        + " library:path=/x/alloc.so,malloc=my_malloc,free=my_free");
    }

    @Test
    void oneThatCrashesOrEndsTheProcessWhenItIsLoadedIsNotLoaded() {
        Path crash = CSources.library(folder.resolve("crash.so"), """
                #include <signal.h>
                __attribute__((constructor)) static void start(void) { raise(SIGSEGV); }
                """);
        Path exit = CSources.library(folder.resolve("exit.so"), """
                #include <stdlib.h>
                __attribute__((constructor)) static void start(void) { exit(0); }
                """);

        assertRefused(
                open(crash),
                "library " + crash
                        + " crashes when it is loaded: signal 11 in its constructors, in the process that tried it");
        assertRefused(open(exit), "library " + exit + " ends the process that loads it, with status 0");
        assertRefused(
                () -> memory.open("library:path=" + exit + ",sha256=" + digest(exit)),
                "library " + exit + " ends the process that loads it, with status 0");
    }

    @Test
    void oneThatLacksWhatItCallsIsNotLoaded() {
        Path file = CSources.library(folder.resolve("lacks.so"), """
                void nowhere(void);
                void my_malloc(void) { nowhere(); }
                """);

        assertThatThrownBy(open(file))
                .hasMessageStartingWith("library " + file + " can't be loaded: ")
                .hasMessageContaining("nowhere");
    }

    @Test
    void oneThatNeedsAnotherGetsItFirst() {
        Path needed = CSources.library(folder.resolve("needed.so"), "int answer(void) { return 256; }");
        Path file = CSources.library(folder.resolve("needy.so"), """
                #include <sys/types.h>
                int answer(void);
                void* my_malloc(ssize_t size, int device, void* stream) { return (void*) (long) answer(); }
                void my_free(void* p, ssize_t size, int device, void* stream) {}
                """);
        Allocator library = memory.open("library:path=" + file + ",preload=[" + needed + "]");

        assertThat(library.allocate(100, 0, 0)).isEqualTo(256);
        memory.free(256, 0);
    }

    /// RMM's allocator for PyTorch in its shape: two C++ libraries, of which the one with the two functions,
    /// under names and with types of their own, calls the other one's resource of the device.
    @Test
    void oneOfTheShapeOfRmmsServesUnchanged() throws Exception {
        var compiler = CCompiler.findForCpp();
        assumeTrue(compiler.isPresent(), "no C++ compiler on the path");
        Path resources = compiler.get().library(folder.resolve("resources.so"), """
                #include <cstdlib>
                #include <map>
                #include <mutex>
                #include <new>
                struct resource {
                    virtual ~resource() = default;
                    virtual void* allocate(std::size_t bytes, void* stream) {
                        void* p = nullptr;
                        if (posix_memalign(&p, 256, bytes) != 0) throw std::bad_alloc();
                        return p;
                    }
                    virtual void deallocate(void* p, std::size_t bytes, void* stream) { std::free(p); }
                };
                resource* per_device_resource(int device) {
                    static std::mutex lock;
                    static std::map<int, resource> resources;
                    std::lock_guard<std::mutex> guard(lock);
                    return &resources[device];
                }
                """);
        Path file = compiler.get().library(folder.resolve("torch_allocator.so"), """
                #include <cstddef>
                struct resource {
                    virtual ~resource();
                    virtual void* allocate(std::size_t bytes, void* stream);
                    virtual void deallocate(void* p, std::size_t bytes, void* stream);
                };
                resource* per_device_resource(int device);
                extern "C" void* allocate(std::size_t size, int device, void* stream) {
                    return per_device_resource(device)->allocate(size, stream);
                }
                extern "C" void deallocate(void* ptr, std::size_t size, int device, void* stream) {
                    per_device_resource(device)->deallocate(ptr, size, stream);
                }
                """);
        Allocator library = memory.setCurrent(
                "library:path=" + file + ",malloc=allocate,free=deallocate,preload=[" + resources + "]");

        long one = memory.allocate(3 * MIB, 0, 0);
        long two = memory.allocate(1000, 1, 0);
        assertThat(library.statistics(0).requestedBytes()).isEqualTo(3 * MIB);
        memory.free(one, 0);
        memory.free(two, 0);
        assertThat(library.statistics(0).liveBlocks() + library.statistics(1).liveBlocks())
                .isZero();
    }

    @Test
    void contentsOfAnotherDigestAreNotLoaded() {
        Path file = plain();
        String other = "0".repeat(64);

        for (int again = 0; again < 2; again++) {
            assertRefused(
                    () -> memory.open("library:path=" + file + ",sha256=" + other),
                    "library " + file + " has the SHA-256 " + digest(file) + ", but the spec asks for " + other);
            memory.open("library:path=" + file).close();
        }
    }

    @Test
    void whatWasDigestedRunsWhateverBecomesOfTheFile() {
        Path later = returning(folder.resolve("later.so"), 512);
        Path file = folder.resolve("x.so");
        // The trial exchanges the file, as somebody might in just that moment.
        CSources.library(file, """
                #include <stdio.h>
                #include <sys/types.h>
                __attribute__((constructor)) static void exchange(void) { rename("%s", "%s"); }
                void* my_malloc(ssize_t size, int device, void* stream) { return (void*) 256; }
                void my_free(void* p, ssize_t size, int device, void* stream) {}
                """.formatted(later, file));
        String checked = digest(file);

        assertThat(firstAddress("library:path=" + file + ",sha256=" + checked)).isEqualTo(256);
        assertThat(digest(file)).isNotEqualTo(checked);
    }

    @Test
    void aChangedLibraryIsLoadedBesideTheOldOneByItsDigest() {
        Path file = returning(folder.resolve("x.so"), 256);
        assertThat(firstAddress("library:path=" + file + ",sha256=" + digest(file)))
                .isEqualTo(256);
        returning(file, 512);
        assertThat(firstAddress("library:path=" + file + ",sha256=" + digest(file)))
                .isEqualTo(512);
    }

    @Test
    void aPathWhoseFileChangedDoesNotGiveTheOldCode() {
        Path file = returning(folder.resolve("x.so"), 256);
        assertThat(firstAddress("library:path=" + file)).isEqualTo(256);
        assertThat(firstAddress("library:path=" + file)).isEqualTo(256);
        returning(file, 512);

        assertRefused(
                open(file),
                "library " + file + " has changed since it was loaded, and its old version stays loaded; if the"
                        + " spec gives the sha256 of the new one, that is loaded alongside it");
        assertThat(firstAddress("library:path=" + file + ",sha256=" + digest(file)))
                .isEqualTo(512);
    }

    @Test
    void functionsNamedAsThoseOfTheCLibraryServe() {
        Path file = CSources.library(folder.resolve("named.so"), """
                #include <sys/types.h>
                void* malloc(size_t size, int device, void* stream) { return (void*) 256; }
                void free(void* p, ssize_t size, int device, void* stream) {}
                """, "-fno-builtin");

        for (String spec : List.of("", ",sha256=" + digest(file))) {
            assertThat(firstAddress("library:path=" + file + ",malloc=malloc,free=free" + spec))
                    .isEqualTo(256);
        }
    }

    @Test
    void whatIsNoRegularFileIsNotWaitedFor() throws Exception {
        Path fifo = folder.resolve("fifo.so");
        new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor();

        assertRefused(open(fifo), "library " + fifo + " is not a regular file");
    }

    /// A library that always gives the same address.
    private static Path returning(Path file, long address) {
        return CSources.library(file, """
                #include <sys/types.h>
                void* my_malloc(ssize_t size, int device, void* stream) { return (void*) %dL; }
                void my_free(void* p, ssize_t size, int device, void* stream) {}
                """.formatted(address));
    }

    private static String digest(Path file) {
        try {
            return LibraryFile.sha256(file);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private long firstAddress(String spec) {
        try (Allocator library = memory.open(spec)) {
            long address = library.allocate(100, 0, 0);
            memory.free(address, 0);
            return address;
        }
    }

    @Test
    void hooksAreCalledForWhatTheyAreFor() throws IOException {
        Path file = hooked();
        Allocator library = memory.open("library:path=" + file + ",init=on_init,reset=on_reset,fraction=0.5,"
                + "memory_fraction=on_fraction,base_alloc=on_base,record_stream=on_record");
        long block = library.allocate(1000, 1, 0);
        memory.recordUse(block, gpu.streams().create(1));
        library.trim(0, 0, TrimMode.WITHOUT_WAITING);
        MemorySharing sharing = library.extension(MemorySharing.class).orElseThrow();

        assertThat(sharing.base(block, 1)).map(Segment::byteSize).contains(4096L);
        assertThat(calls(file)).containsExactly("init 2", "fraction 50 0", "fraction 50 1", "record", "reset", "base");
        memory.free(block, 0);
        memory.open("library:path=" + file + ",init=on_init").close();
        assertThat(calls(file)).as("once in a process").doesNotContain("init 2");
    }

    /// Two threads open it; the second one comes while `init` is running.
    @Test
    void noAllocationBeginsBeforeInitHasReturned() throws Exception {
        Path file = CSources.library(folder.resolve("slow.so"), """
                #include <stdlib.h>
                #include <unistd.h>
                #include <sys/types.h>
                static volatile int began, ready;
                int has_begun(void) { return began; }
                void on_init(int devices) { began = 1; usleep(300000); ready = 1; }
                void* my_malloc(ssize_t size, int device, void* stream) {
                    void* p;
                    return !ready || posix_memalign(&p, 256, size) ? 0 : p;
                }
                void my_free(void* p, ssize_t size, int device, void* stream) { free(p); }
                """);
        String spec = "library:trial=false,path=" + file;
        memory.open(spec).close(); // loads it
        FutureTask<Allocator> opening = new FutureTask<>(() -> memory.open(spec + ",init=on_init"));
        Thread.ofPlatform().start(opening);
        while (number(file, "has_begun") == 0) {
            Thread.onSpinWait();
        }
        Allocator library = memory.open(spec + ",init=on_init");
        memory.free(library.allocate(1000, 0, 0), 0);
        opening.get();
    }

    @SuppressWarnings("restricted")
    private static int number(Path library, String function) throws Exception {
        MemorySegment symbol =
                SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow(function);
        try {
            return (int) Linker.nativeLinker()
                    .downcallHandle(symbol, FunctionDescriptor.of(ValueLayout.JAVA_INT))
                    .invokeExact();
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aLibraryThatKnowsNoBaseSaysSo() {
        Allocator library = memory.open("library:path=" + hooked() + ",base_alloc=no_base");
        long block = library.allocate(1000, 0, 0);
        MemorySharing sharing = library.extension(MemorySharing.class).orElseThrow();
        assertThat(sharing.base(block, 0)).isEmpty();
        memory.free(block, 0);
    }

    @Test
    void aPoolOfTheLibrarysOwnIsBegunEndedAndReleased() throws IOException {
        Path file = hooked();
        Allocator library =
                memory.open("library:path=" + file + ",begin_pool=on_begin,end_pool=on_end,release_pool=on_release");
        memory.free(library.allocate(1000, 1, 0), 0);
        library.close();

        assertThat(calls(file)).containsExactly("begin 1", "end 1", "release 0", "release 1");
    }

    @Test
    void whatHooksLackIsEmulatedOrRefusedByName() {
        Path file = plain();
        Allocator library = memory.open("library:path=" + file);

        long block = library.allocate(1000, 1, 0);
        StreamUses uses = library.extension(StreamUses.class).orElseThrow();
        assertThat(uses.recordUse(block, 1, 0))
                .as("the framework waits for the streams")
                .isFalse();
        memory.free(block, 0);
        assertThat(library.trim(0, 0, TrimMode.WITHOUT_WAITING).returnedBytes()).isZero();
        assertRefused(
                () -> memory.open("library:path=" + file + ",fraction=0.5"),
                "library " + file
                        + ": option fraction needs its function memory_fraction, which the spec does not name;"
                        + " setting cistern.limit and the allocator limit need no such function");
        assertRefused(
                () -> memory.open("library:path=" + file + ",begin_pool=my_malloc"),
                "library " + file + ": pools need all of begin_pool, end_pool, release_pool; this spec names"
                        + " [begin_pool]");
    }

    private Path plain() {
        return CSources.library(folder.resolve("plain.so"), CSources.PLAIN);
    }

    /// Keeps a list of its calls, which `calls` takes.
    private Path hooked() {
        return CSources.library(folder.resolve("hooked-" + System.nanoTime() + ".so"), """
                #include <stdio.h>
                #include <string.h>
                #include <stdint.h>
                """ + CSources.PLAIN + """
                static char log[4096];
                static void say(const char* what, long a, long b) {
                    char line[64];
                    if (a < 0) snprintf(line, 64, "%s;", what);
                    else if (b < 0) snprintf(line, 64, "%s %ld;", what, a);
                    else snprintf(line, 64, "%s %ld %ld;", what, a, b);
                    strcat(log, line);
                }
                char* calls(void) { return log; }
                void on_init(int devices) { say("init", devices, -1); }
                void on_reset(void) { say("reset", -1, -1); }
                void on_fraction(double share, int device) { say("fraction", share * 100, device); }
                void* on_base(void* p, size_t* size) { say("base", -1, -1); *size = 4096; return p; }
                void* no_base(void* p, size_t* size) { return 0; }
                void on_record(void* p, void* stream) { say("record", -1, -1); }
                void on_begin(int device, uint64_t first, uint64_t second) { say("begin", device, -1); }
                void on_end(int device, uint64_t first, uint64_t second) { say("end", device, -1); }
                void on_release(int device, uint64_t first, uint64_t second) { say("release", device, -1); }
                """);
    }

    @SuppressWarnings("restricted")
    private static List<String> calls(Path library) {
        MemorySegment function =
                SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow("calls");
        try {
            MemorySegment log = (MemorySegment) Linker.nativeLinker()
                    .downcallHandle(function, FunctionDescriptor.of(ValueLayout.ADDRESS))
                    .invokeExact();
            MemorySegment text = log.reinterpret(4096);
            String said = text.getString(0);
            text.set(ValueLayout.JAVA_BYTE, 0, (byte) 0);
            return said.isEmpty() ? List.of() : List.of(said.split(";"));
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    private ThrowingCallable open(Path library) {
        return () -> memory.open("library:path=" + library);
    }

    private static void assertRefused(ThrowingCallable call, String message) {
        assertThatThrownBy(call).isInstanceOf(ConfigurationException.class).hasMessage(message);
    }
}
