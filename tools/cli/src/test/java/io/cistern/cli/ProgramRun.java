package io.cistern.cli;

import io.cistern.cli.common.TextTable;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import picocli.CommandLine;

/// One run of the program: its exit code and what it wrote.
public record ProgramRun(int exitCode, String out, String err) {
    /// All that a replay on the simulated GPU that went well says beside its results.
    public static final String SIMULATED_NOTICE = "cistern: on a simulated GPU (--device simulated)";

    /// The second compiler and the collector's threads cost a short program more than they give.
    private static final String SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

    /// JARs and class folders of the program itself, among all that the tests have.
    private static final String PROGRAM_PARTS =
            ".*/((cuda-driver|simulated-gpu|allocator-api|device-buffers|adaptors|memory-pressure|observability|caching-allocator|async-allocator|nccl-allocator|pluggable-loader"
                    + "|tools/peer-models|tools/cli)/target/.*classes|(cistern-(cli|peer-models|cuda-driver|simulated-gpu|allocator-api|device-buffers|adaptors|memory-pressure|observability|caching-allocator|async-allocator"
                    + "|nccl-allocator|pluggable-loader)|picocli|progressbar|jline-terminal|jline-native|jackson-core|jackson-jr-objects|uplot|fastcsv|pickle)-[0-9][^/]*\\.jar)";

    /// What it wrote, with the lines whole that were broken at the width of a terminal: their other parts are indented
    /// differently, or not at all.
    public String wholeLines() {
        StringBuilder whole = new StringBuilder();
        String before = "";
        boolean isPart = false;
        for (String line : out.lines().toList()) {
            int indent = line.length() - line.stripLeading().length();
            int indentBefore = before.length() - before.stripLeading().length();
            int widthWithNextWord =
                    before.length() + 1 + line.strip().split(" ", 2)[0].length();
            isPart = widthWithNextWord > TextTable.WIDTH
                    && !line.isEmpty()
                    && (indent == 0 || isPart == (indent == indentBefore));
            whole.append(before.isEmpty() && whole.isEmpty() ? "" : isPart ? " " : "\n")
                    .append(isPart ? line.strip() : line);
            before = line;
        }
        return whole.append('\n').toString();
    }

    /// In this JVM.
    public static ProgramRun inProcess(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine program =
                CisternCommand.commandLine().setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true));
        return new ProgramRun(program.execute(arguments), out.toString(), err.toString());
    }

    /// Through a script, in a JVM of its own, on the simulated GPU unless the environment says otherwise.
    public static ProgramRun of(Path script, Path folder, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        Path out = Files.createTempFile("cistern", ".out");
        Path err = Files.createTempFile("cistern", ".err");
        ProcessBuilder builder = new ProcessBuilder(Stream.concat(Stream.of(script.toString()), Stream.of(arguments))
                        .toList())
                .directory(folder.toFile())
                .redirectOutput(out.toFile())
                .redirectError(err.toFile());
        builder.environment().keySet().removeIf(name -> name.startsWith("CISTERN"));
        builder.environment().put("CISTERN_DRIVER", "simulated");
        builder.environment().put("CISTERN_JAVA_OPTS", SHORT_LIVED);
        builder.environment().putAll(environment);
        Process process = builder.start();
        if (!process.waitFor(2, TimeUnit.MINUTES)) {
            process.destroyForcibly();
            throw new IllegalStateException("still running after two minutes: " + List.of(arguments));
        }
        ProgramRun run = new ProgramRun(process.exitValue(), Files.readString(out), Files.readString(err));
        Files.delete(out);
        Files.delete(err);
        return run;
    }

    /// Lays a distribution out as `-Pdist` does, of links: the script, the program's JARs, and this JVM as its
    /// runtime.
    ///
    /// @return the script
    static Path layOut(Path folder) throws IOException {
        Path lib = Files.createDirectories(folder.resolve("lib"));
        int number = 0;
        for (String entry : System.getProperty("java.class.path").split(":")) {
            Path part = Path.of(entry).toAbsolutePath();
            if (part.toString().matches(PROGRAM_PARTS) && !part.endsWith("test-classes")) {
                if (Files.isDirectory(part)) { // A module path takes no link to a folder of classes.
                    pack(part, lib.resolve("part" + number++ + ".jar"));
                } else {
                    Files.createSymbolicLink(lib.resolve(part.getFileName()), part);
                }
            }
        }
        Files.createSymbolicLink(folder.resolve("runtime"), Path.of(System.getProperty("java.home")));
        Path script = folder.resolve("cistern");
        Files.copy(
                Path.of(System.getProperty("basedir", "."), "../..", "cistern"),
                script,
                java.nio.file.StandardCopyOption.COPY_ATTRIBUTES);
        return script;
    }

    private static void pack(Path classes, Path jar) {
        ToolProvider tool = ToolProvider.findFirst("jar").orElseThrow();
        int code =
                tool.run(System.out, System.err, "--create", "--file", jar.toString(), "-C", classes.toString(), ".");
        if (code != 0) {
            throw new IllegalStateException("can't pack " + classes);
        }
    }

    /// A trace file with the header and these rows.
    public static Path trace(Path folder, String name, String... rows) throws IOException {
        Path file = folder.resolve(name);
        Files.write(
                file,
                Stream.concat(Stream.of("op,id,bytes,stream"), Arrays.stream(rows))
                        .toList(),
                StandardCharsets.US_ASCII);
        return file;
    }
}
