package io.cistern.loader.library;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.loader.functions.AllocatorFunctions;
import io.cistern.testkit.AllocatorConformance;
import io.cistern.testkit.SegmentSourceConformance;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.io.TempDir;

/// A library whose functions are those of another allocator of the same GPU: every block goes from Java to C and from
/// C to Java, and is memory that can be written and read.
class LibraryConformanceTests extends AllocatorConformance {
    @TempDir
    private static Path folder;

    private static Path library;
    private static MethodHandle relay;

    @BeforeAll
    @SuppressWarnings("restricted")
    static void compile() {
        library = CSources.library(folder.resolve("relay.so"), CSources.RELAY);
        relay = Linker.nativeLinker()
                .downcallHandle(
                        SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow("relay"),
                        FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS));
    }

    @Override
    protected Allocator open(DeviceMemory memory) {
        return memory.open(relayTo(memory.driver()));
    }

    /// Makes the library pass its calls on to an allocator of a driver; returns the library as a spec.
    private static String relayTo(CudaDriver driver) {
        DeviceMemory behind = DeviceMemory.builder(driver).open();
        AllocatorFunctions functions = AllocatorFunctions.of(behind, behind.open("direct"));
        try {
            relay.invokeExact(functions.malloc(), functions.free());
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
        return "library:path=" + library;
    }

    /// The same library as a segment source.
    @Nested
    final class SourceTests extends SegmentSourceConformance {
        @Override
        protected CudaDriver openDriver() {
            CudaDriver driver = super.openDriver();
            relayTo(driver);
            return driver;
        }

        @Override
        protected String spec() {
            return "library:path=" + library;
        }
    }
}
