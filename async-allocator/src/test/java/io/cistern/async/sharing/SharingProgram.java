package io.cistern.async.sharing;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.SystemCallException;
import io.cistern.errors.SharingException;
import io.cistern.simulated.SimulatedGpu;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// An exporter or an importer in a process of its own: does what it reads, line by line, and answers each.
final class SharingProgram {
    private static final PrintStream OUT = new PrintStream(System.out, true, UTF_8);
    private static final String NAME = "weights";

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(1).build();
    private final long stream = gpu.streams().create(0);
    private final Path path;
    private @Nullable ExportedPool exported;
    private @Nullable ExportedBuffer out;
    private @Nullable ImportedPool imported;
    private @Nullable ImportedBuffer in;
    private long address;

    private SharingProgram(Path path) {
        this.path = path;
    }

    /// @param arguments the path of the socket
    public static void main(String[] arguments) throws IOException {
        SharingProgram program = new SharingProgram(Path.of(arguments[0]));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            try {
                OUT.println(words[0] + " " + program.answer(words[0], words.length > 1 ? words[1] : ""));
            } catch (SharingException failure) {
                OUT.println(words[0] + " " + failure.reason());
            }
        }
    }

    private Object answer(String what, String argument) {
        switch (what) {
            case "serve" ->
                exported = ExportedPool.builder(gpu, 0)
                        .patience(Duration.ofSeconds(argument.isEmpty() ? 20 : Long.parseLong(argument)))
                        .serve(path);
            case "publish" -> {
                address = gpu.pools().allocateFrom(0, exported().handle(), TwoGpus.BYTES, stream);
                fill(Integer.parseInt(argument));
                out = exported().publish(NAME, address, TwoGpus.BYTES, stream);
            }
            case "connect" ->
                imported = ImportedPool.builder(gpu)
                        .transfer(Transfer.valueOf(argument))
                        .connect(path);
            case "map" -> {
                in = Objects.requireNonNull(imported).map(NAME, TwoGpus.BYTES, stream);
                address = in.address();
            }
            case "fill" -> fill(Integer.parseInt(argument));
            case "content" -> {
                return TwoGpus.content(gpu, address, stream);
            }
            case "importers" -> {
                return exported().importers().size();
            }
            case "leave-descriptors" -> leaveDescriptors(Integer.parseInt(argument));
            case "await" -> Objects.requireNonNull(in).await();
            case "close-buffer" -> closeBuffer();
            case "close" -> close();
            default -> throw new IllegalArgumentException(what);
        }
        return "done";
    }

    /// Takes all but so many of a few hundred descriptors.
    private void leaveDescriptors(int left) {
        limitDescriptors();
        Deque<Descriptor> taken = new ArrayDeque<>();
        try {
            while (true) { // ends at the limit
                taken.push(Descriptor.ofMemory("taken"));
            }
        } catch (SystemCallException limit) {
            for (int i = 0; i < left; i++) {
                taken.pop().close();
            }
        }
    }

    /// Calls `setrlimit(RLIMIT_NOFILE, {300, 300})`.
    @SuppressWarnings("restricted")
    private static void limitDescriptors() {
        Linker linker = Linker.nativeLinker();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment limits = arena.allocateFrom(ValueLayout.JAVA_LONG, 300, 300);
            int _ = (int) linker.downcallHandle(
                            linker.defaultLookup().findOrThrow("setrlimit"),
                            FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.ADDRESS))
                    .invokeExact(7, limits);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private ExportedPool exported() {
        return Objects.requireNonNull(exported);
    }

    private void fill(int value) {
        gpu.copies().fillBytes(0, address, (byte) value, TwoGpus.BYTES, stream);
    }

    private void closeBuffer() {
        if (out != null) {
            out.close();
        }
        if (in != null) {
            in.close();
        }
    }

    private void close() {
        if (exported != null) {
            exported.close();
        }
        if (imported != null) {
            imported.close();
        }
    }
}
