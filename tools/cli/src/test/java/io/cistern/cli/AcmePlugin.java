package io.cistern.cli;

import io.cistern.spi.AllocatorProvider;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/// A third party's allocator: source text that is compiled against `allocator-api` and nothing else, and packed into
/// a JAR.
final class AcmePlugin {
    private static final String SOURCE = """
            package acme;

            import io.cistern.spi.*;
            import java.util.Map;
            import java.util.concurrent.ConcurrentHashMap;

            public final class AcmeProvider implements AllocatorProvider {
                public int spiVersion() { return SPI_VERSION; }
                public String name() { return "acme"; }
                public DeviceAllocator open(AllocatorContext context) {
                    System.out.println("acme opens");
                    return new Acme(context.ranges("linear"));
                }

                private static final class Acme implements DeviceAllocator {
                    private final Map<Long, Segment> live = new ConcurrentHashMap<>();
                    private final RangeSource source;
                    private int acquired;
                    private int released;

                    Acme(RangeSource source) { this.source = source; }

                    public long allocate(long byteSize, int device, long stream) {
                        Segment segment = source.acquire(byteSize, 256, device);
                        live.put(segment.address(), segment);
                        acquired++;
                        return segment.address();
                    }

                    public void free(long address, long byteSize, int device, long stream) {
                        source.release(live.remove(address));
                        released++;
                    }

                    public void close() {
                        System.err.println("acme closed: " + acquired + " segments acquired, " + released + " released");
                    }
                }
            }
            """;

    private AcmePlugin() {}

    /// Builds `acme.jar`.
    static Path build(Path folder) throws IOException {
        Path source = Files.writeString(folder.resolve("AcmeProvider.java"), SOURCE);
        Path classes = Files.createDirectories(folder.resolve("classes"));
        JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
        List<String> options = List.of("-proc:none", "-cp", apiAlone(), "-d", classes.toString(), source.toString());
        if (javac.run(null, null, null, options.toArray(String[]::new)) != 0) {
            throw new IllegalStateException("the plug-in does not compile against allocator-api alone");
        }
        Path jar = folder.resolve("acme.jar");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            add(
                    out,
                    "META-INF/services/" + AllocatorProvider.class.getName(),
                    "acme.AcmeProvider\n".getBytes(StandardCharsets.UTF_8));
            try (var files = Files.list(classes.resolve("acme"))) {
                for (Path file : files.sorted().toList()) {
                    add(out, "acme/" + file.getFileName(), Files.readAllBytes(file));
                }
            }
        }
        return jar;
    }

    private static void add(JarOutputStream out, String name, byte[] content) throws IOException {
        out.putNextEntry(new JarEntry(name));
        out.write(content);
        out.closeEntry();
    }

    private static String apiAlone() {
        try {
            return Path.of(AllocatorProvider.class
                            .getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                            .toURI())
                    .toString();
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }
}
