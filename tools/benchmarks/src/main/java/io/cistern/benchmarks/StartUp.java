package io.cistern.benchmarks;

import io.cistern.spi.AllocatorProvider;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarOutputStream;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.example.idle.EmptyMain;
import org.example.idle.FirstAllocation;
import org.example.idle.IdlePlugin;

/// Measures the time from the start of a JVM to its program's first allocation on the simulated GPU, beside a program
/// whose `main` is empty: whole processes, in turns.
///
/// Arguments: rounds (15). Runs on a class path with Cistern's JARs and gives the programs those of the library. Prints
/// a line for each way to start: the median, the fastest, and how far each is above an empty `main`.
public final class StartUp {
    private static final String LIBRARY = ".*cistern-(allocator-api|cuda-driver|simulated-gpu|caching-allocator"
            + "|async-allocator|adaptors|pluggable-loader)[^/]*";
    private static final int PLUGINS = 10;

    private final Path folder = Files.createTempDirectory("start-up");
    private final String classPath;

    private StartUp() throws IOException {
        Path programs = folder.resolve("programs.jar");
        pack(programs, EmptyMain.class, FirstAllocation.class);
        Files.createDirectory(folder.resolve("plugins"));
        for (int i = 0; i < PLUGINS; i++) {
            pack(folder.resolve("plugins/idle" + i + ".jar"), IdlePlugin.class);
        }
        classPath = Stream.concat(
                        Stream.of(programs.toString()),
                        Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                                .filter(entry -> entry.matches(LIBRARY)))
                .collect(Collectors.joining(File.pathSeparator));
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws IOException {
        new StartUp().measure(arguments.length > 0 ? Integer.parseInt(arguments[0]) : 15);
    }

    private void measure(int rounds) {
        String plugins = "-Dcistern.plugins=" + folder.resolve("plugins");
        Path cache = folder.resolve("ten.aot");
        millis(FirstAllocation.class, plugins, "-XX:AOTCacheOutput=" + cache);
        Turns turns = new Turns()
                .add("empty main", () -> millis(EmptyMain.class))
                .add("no plug-in", () -> millis(FirstAllocation.class))
                .add("ten plug-ins", () -> millis(FirstAllocation.class, plugins))
                .add("ten plug-ins, AOT cache", () -> millis(FirstAllocation.class, plugins, "-XX:AOTCache=" + cache))
                .run(1, rounds); // The first round fills the file cache.
        Map<String, Samples> all = new LinkedHashMap<>();
        turns.each(all::put);
        Samples empty = all.values().iterator().next();
        all.forEach((way, millis) -> Json.print(
                "started", way,
                "millis", Math.round(millis.median()),
                "fastest", Math.round(millis.least()),
                "overEmpty", Math.round(millis.median() - empty.median()),
                "fastestOverEmpty", Math.round(millis.least() - empty.least())));
    }

    /// Returns the milliseconds of a whole process.
    private double millis(Class<?> program, String... options) {
        List<String> line = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Dcistern.driver=simulated",
                "-cp",
                classPath));
        line.addAll(List.of(options));
        line.add(program.getName());
        Path printed = folder.resolve("printed.txt");
        ProcessBuilder process =
                new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(printed.toFile());
        process.environment().keySet().removeIf(name -> name.startsWith("CISTERN_"));
        try {
            long begin = System.nanoTime();
            int code = process.start().waitFor();
            double millis = (System.nanoTime() - begin) / 1e6;
            if (code != 0) {
                throw new IllegalStateException(line + " ended with " + code + ": " + Files.readString(printed));
            }
            return millis;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /// Packs classes; a plug-in gets its line for `ServiceLoader`.
    private static void pack(Path jar, Class<?>... types) throws IOException {
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            for (Class<?> type : types) {
                String file = type.getName().replace('.', '/') + ".class";
                out.putNextEntry(new ZipEntry(file));
                try (InputStream in = type.getResourceAsStream("/" + file)) {
                    in.transferTo(out);
                }
                if (AllocatorProvider.class.isAssignableFrom(type)) {
                    out.putNextEntry(new ZipEntry("META-INF/services/" + AllocatorProvider.class.getName()));
                    out.write(type.getName().getBytes(StandardCharsets.UTF_8));
                }
            }
        }
    }
}
