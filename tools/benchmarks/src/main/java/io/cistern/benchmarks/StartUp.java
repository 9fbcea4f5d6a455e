package io.cistern.benchmarks;

import io.cistern.spi.AllocatorProvider;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.example.idle.EmptyMain;
import org.example.idle.FirstAllocation;
import org.example.idle.IdlePlugin;

/// Measures the time from the start of a JVM to its program's first allocation on the simulated GPU, beside a
/// program whose `main` is empty. It is the wall time of whole processes in alternating rounds.
///
/// Arguments: rounds (15). Runs on a class path with Cistern's JARs and gives the programs those of the
/// library. Prints a line of JSON for each way to start: the median, the fastest, and how far each is above
/// an empty `main`.
public final class StartUp {
    private static final List<String> LIBRARY = List.of(
            "cistern-allocator-api",
            "cistern-cuda-driver",
            "cistern-simulated-gpu",
            "cistern-caching-allocator",
            "cistern-async-allocator",
            "cistern-adaptors",
            "cistern-pluggable-loader");

    private static final int PLUGINS = 10;

    private static final String DRIVER = "-Dcistern.driver=simulated";

    private final Path folder = Files.createTempDirectory("start-up");
    private final Path printed = folder.resolve("printed.txt");
    private final Path programs = folder.resolve("programs.jar");
    private final Path plugins = Files.createDirectory(folder.resolve("plugins"));
    private final String classPath;

    private StartUp() throws IOException {
        pack(
                programs,
                Map.of(
                        classFile(EmptyMain.class),
                        bytes(EmptyMain.class),
                        classFile(FirstAllocation.class),
                        bytes(FirstAllocation.class)));
        for (int i = 0; i < PLUGINS; i++) {
            pack(
                    plugins.resolve("idle" + i + ".jar"),
                    Map.of(
                            classFile(IdlePlugin.class),
                            bytes(IdlePlugin.class),
                            "META-INF/services/" + AllocatorProvider.class.getName(),
                            IdlePlugin.class.getName().getBytes(StandardCharsets.UTF_8)));
        }
        Stream<String> library = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> LIBRARY.stream()
                        .anyMatch(
                                name -> Path.of(entry).getFileName().toString().startsWith(name)));
        classPath = String.join(
                File.pathSeparator,
                Stream.concat(Stream.of(programs.toString()), library).toList());
    }

    /// Measures and prints.
    public static void main(String[] arguments) throws IOException, InterruptedException {
        new StartUp().measure(arguments.length > 0 ? Integer.parseInt(arguments[0]) : 15);
    }

    private void measure(int rounds) throws IOException, InterruptedException {
        String all = "-Dcistern.plugins=" + plugins;
        Path cache = folder.resolve("ten.aot");
        start(FirstAllocation.class, List.of(all, "-XX:AOTCacheOutput=" + cache));
        List<Way> ways = new ArrayList<>();
        ways.add(new Way("empty main", EmptyMain.class, List.of(), new ArrayList<>()));
        ways.add(new Way("no plug-in", FirstAllocation.class, List.of(), new ArrayList<>()));
        ways.add(new Way("ten plug-ins", FirstAllocation.class, List.of(all), new ArrayList<>()));
        if (Files.exists(cache)) {
            List<String> options = List.of(all, "-XX:AOTCache=" + cache);
            ways.add(new Way("ten plug-ins, AOT cache", FirstAllocation.class, options, new ArrayList<>()));
        }
        for (int round = -1; round < rounds; round++) { // The first round fills the file cache.
            for (Way way : ways) {
                double millis = run(way.program(), way.options());
                if (round >= 0) {
                    way.millis().add(millis);
                }
            }
        }
        for (Way way : ways) {
            print(way, ways.getFirst());
        }
    }

    /// One way to start.
    private record Way(String name, Class<?> program, List<String> options, List<Double> millis) {}

    /// Returns the milliseconds of the whole process.
    private double run(Class<?> program, List<String> options) throws IOException, InterruptedException {
        long begin = System.nanoTime();
        int code = start(program, options);
        long taken = System.nanoTime() - begin;
        if (code != 0) {
            throw new IllegalStateException(
                    program + " with " + options + " ended with " + code + ": " + Files.readString(printed));
        }
        return taken / 1e6;
    }

    /// Runs a program and returns its exit code.
    private int start(Class<?> program, List<String> options) throws IOException, InterruptedException {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        line.addAll(options);
        line.addAll(List.of("--enable-native-access=ALL-UNNAMED", DRIVER, "-cp", classPath, program.getName()));
        ProcessBuilder process =
                new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(printed.toFile());
        process.environment().keySet().removeIf(name -> name.startsWith("CISTERN_"));
        return process.start().waitFor();
    }

    private static void print(Way way, Way empty) {
        System.out.printf(
                Locale.ROOT,
                "{\"started\":\"%s\",\"millis\":%.0f,\"fastest\":%.0f,\"overEmpty\":%.0f,"
                        + "\"fastestOverEmpty\":%.0f}%n",
                way.name(),
                median(way.millis()),
                Collections.min(way.millis()),
                median(way.millis()) - median(empty.millis()),
                Collections.min(way.millis()) - Collections.min(empty.millis()));
    }

    private static double median(List<Double> values) {
        return values.stream().sorted().toList().get(values.size() / 2);
    }

    private static void pack(Path jar, Map<String, byte[]> entries) throws IOException {
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                out.putNextEntry(new ZipEntry(entry.getKey()));
                out.write(entry.getValue());
            }
        }
    }

    private static String classFile(Class<?> type) {
        return type.getName().replace('.', '/') + ".class";
    }

    private static byte[] bytes(Class<?> type) throws IOException {
        try (InputStream in = type.getResourceAsStream("/" + classFile(type))) {
            return in.readAllBytes();
        }
    }
}
