package io.cistern.examples.spark.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.examples.spark.engine.SimulatedEngineKernels.Kernel;
import io.cistern.jvm.CCompiler;
import io.cistern.simulated.SimulatedGpu;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Objects;

/// The kernels for real devices, compiled as C++ for the host, in place of those in Java on a simulated
/// device.
@SuppressWarnings("restricted") // calls the compiled kernels
public final class HostKernels {
    private static final int MOST_ARGUMENTS = 10;
    private static final int GUARD = 64;
    private static final byte GUARDED = 0x5a;

    private final SymbolLookup library;
    private final MethodHandle run;

    private HostKernels(SymbolLookup library) {
        this.library = library;
        run = Linker.nativeLinker()
                .downcallHandle(
                        library.findOrThrow("run"),
                        FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS));
    }

    /// Compiles the kernels and registers them.
    public static void register(SimulatedGpu gpu, CCompiler compiler, Path folder)
            throws IOException, InterruptedException {
        String source = resource("operators-on-host.cpp").replace("@KERNELS@", resource("operators.cu"));
        Path built = compiler.library(folder.resolve("operators.so"), source, "-pthread");
        HostKernels kernels = new HostKernels(SymbolLookup.libraryLookup(built, Arena.ofAuto()));
        for (Kernel each : SimulatedEngineKernels.KERNELS) {
            gpu.kernels().register(each.name(), each.simulated(arguments -> kernels.run(each, arguments)));
        }
    }

    /// Runs a kernel over copies of its arrays, around which nothing may change.
    private void run(Kernel kernel, KernelArguments arguments) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment words = arena.allocate(ValueLayout.JAVA_LONG, MOST_ARGUMENTS);
            MemorySegment[] copies = new MemorySegment[kernel.parameters().size()];
            for (int i = 0; i < copies.length; i++) {
                MemorySegment array = arguments.array(i);
                copies[i] = arena.allocate(array.byteSize() + 2 * GUARD, GUARD).fill(GUARDED);
                MemorySegment copy = copies[i].asSlice(GUARD, array.byteSize()).copyFrom(array);
                words.setAtIndex(
                        ValueLayout.JAVA_LONG, i, array.byteSize() == 0 ? arguments.number(i) : copy.address());
            }
            run.invokeExact(library.findOrThrow(kernel.name()), words);
            for (int i = 0; i < copies.length; i++) {
                MemorySegment array = arguments.array(i);
                array.copyFrom(copies[i].asSlice(GUARD, array.byteSize()));
                assertThat(guards(copies[i]))
                        .as("%s, argument %d", kernel.name(), i)
                        .containsOnly(GUARDED);
            }
        } catch (Throwable e) {
            throw new IllegalStateException(kernel.name(), e);
        }
    }

    private static byte[] guards(MemorySegment copy) {
        byte[] guards = new byte[2 * GUARD];
        MemorySegment.copy(copy, ValueLayout.JAVA_BYTE, 0, guards, 0, GUARD);
        MemorySegment.copy(copy, ValueLayout.JAVA_BYTE, copy.byteSize() - GUARD, guards, GUARD, GUARD);
        return guards;
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = Objects.requireNonNull(HostKernels.class.getResourceAsStream(name), name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
