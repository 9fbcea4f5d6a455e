package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import io.cistern.probe.PluginProbe;
import io.cistern.spi.AllocatorProvider;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Files in a plug-in directory that are no plug-ins, or not to be trusted, are refused and cost the others nothing.
class PluginFileTests {
    private static final long GIB = 1L << 30;
    private static final String TOO_LARGE =
            "larger than the rest of the eighth of the Java heap that plug-ins may use; raise -Xmx";

    @TempDir
    private Path folder;

    private PluginFolder plugins;

    @BeforeEach
    void dropOneThatIsSound() throws IOException {
        plugins = new PluginFolder(folder.toRealPath());
        plugins.drop("good.jar", "acme.Good", Sources.provider("acme.Good", "good"));
    }

    @Test
    void aFifoIsNotWaitedFor() throws Exception {
        fifo("x.so");
        fifo("x.jar");
        fifo("none");
        Files.createSymbolicLink(plugins.path.resolve("zero.jar"), Path.of("/dev/zero"));

        assertRefused(Map.of(
                "x.so", "is not a regular file",
                "x.jar", "is not a regular file",
                "zero.jar", "is not a regular file"));
    }

    @Test
    void aFifoAsTheAllowListAllowsNothing() throws Exception {
        Path list = fifo("allowed");
        plugins.properties.put("cistern.plugins.allowed", list.toString());

        assertThat(PluginFolder.problems(plugins.discover()))
                .containsEntry("good.jar", "property cistern.plugins.allowed (" + list + ") is not a regular file");
    }

    @Test
    void filesOfGigabytesAreNotRead() throws IOException {
        long more = Runtime.getRuntime().maxMemory() / 8 + 1;
        sparse("big.jar", more);
        sparse("libbig.so", 3 * GIB);
        sparse("allowed", 3 * GIB);

        assertRefused(Map.of(
                "big.jar",
                "is " + TOO_LARGE,
                "libbig.so",
                "is larger than 1GiB, too large for an allocator's library"));
    }

    @Test
    void aJarIsUnpackedInBoundedMemory() throws Exception {
        plugins.drop("next.jar", "acme.Next", Sources.provider("acme.Next", "next"));
        Path bomb = plugins.path.resolve("bomb.jar");
        try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(bomb))) {
            jar.putNextEntry(new JarEntry("zeros"));
            zeros(jar, 32 << 20);
        }
        PluginFolder.own(bomb);

        assertThat(new JavaProgram(
                                PluginProbe.class.getName(),
                                List.of(
                                        "-Xmx64m",
                                        "-Dcistern.plugins=" + plugins.path,
                                        "--class-path",
                                        System.getProperty("java.class.path")),
                                List.of(),
                                Map.of())
                        .run())
                .anyMatch(line -> line.endsWith("PROBLEM is, unpacked, " + TOO_LARGE))
                .anyMatch(line -> line.startsWith("ALLOCATOR good of "))
                .anyMatch(line -> line.startsWith("ALLOCATOR next of "))
                .contains("lost: 0 bytes");
    }

    @Test
    void aServicesFileOfManyLinesIsRefused() {
        plugins.drop("long.jar", new PluginJar().service(AllocatorProvider.class, "acme.None\n".repeat(10_000)));

        assertRefused(Map.of("long.jar", "has a services file of 100001 bytes"));
    }

    @Test
    void directoriesAboveThatOthersMayWriteAreToldOnce() throws IOException {
        Files.setPosixFilePermissions(plugins.path.getParent(), PosixFilePermissions.fromString("rwxrwxr-x"));

        assertThat(PluginFolder.problems(plugins.discover()))
                .containsExactly(Map.entry(
                        "plugins",
                        "(property cistern.plugins) lies in " + plugins.path.getParent()
                                + ", which is writable by its group; chmod g-w it"));
    }

    @Test
    void aLinkIntoADirectoryOfOthersIsRefused() throws IOException {
        Path open = PluginFolder.directory(folder.toRealPath().resolve("open"));
        Files.move(plugins.path.resolve("good.jar"), open.resolve("far.jar"));
        Files.createSymbolicLink(plugins.path.resolve("far.jar"), open.resolve("far.jar"));
        assertThat(plugins.discover().allocator("good").name()).isEqualTo("good");

        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertThat(PluginFolder.problems(plugins.discover()))
                .containsExactly(
                        Map.entry("far.jar", "lies in " + open + ", which is writable by everyone; chmod go-w it"));
    }

    private void assertRefused(Map<String, String> problems) {
        var catalog = plugins.discover();
        assertThat(PluginFolder.problems(catalog)).containsExactlyInAnyOrderEntriesOf(problems);
        assertThat(catalog.allocator("good").name()).isEqualTo("good");
    }

    private Path fifo(String name) throws IOException, InterruptedException {
        Path fifo = plugins.path.resolve(name);
        assertThat(new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor())
                .isZero();
        return fifo;
    }

    private void sparse(String name, long byteSize) throws IOException {
        Path path = plugins.path.resolve(name);
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            file.setLength(byteSize);
        }
        PluginFolder.own(path);
    }

    private static void zeros(OutputStream out, int byteSize) throws IOException {
        byte[] piece = new byte[1 << 16];
        for (int left = byteSize; left > 0; left -= piece.length) {
            out.write(piece);
        }
    }
}
