package io.cistern.cli;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// Files of each kind that commands read: those among the tests' resources, and made ones.
final class Samples {
    private static final Path RESOURCES = Path.of("src/test/resources");

    private static final String TRACE = """
            op,id,bytes,stream
            a,0,1024,0
            a,1,70000,1
            f,0,0,0
            a,2,3000000,1
            f,2,0,1
            """;
    private static final String TRACE_2 = """
            op,id,bytes,stream,device,thread,nanos
            a,0,1024,7,0,11,0
            a,1,70000,8,0,12,100
            u,0,0,8,0,12,200
            w,7,0,8,0,12,300
            f,0,0,8,0,12,400
            o,0,9000,7,0,11,500
            e,0,0,7,0,11,600
            """;
    private static final String SETTINGS = """
            # what a service sets
            cistern.allocator = limiting:limit=1GiB,upstream=caching
            cistern.device.0.limit=2GiB
            cistern.define.small=caching:page_size=2MiB
            cistern.leaks=sampled
            cistern.simulated.capacity=8GiB
            """;

    private final Map<String, byte[]> all = new LinkedHashMap<>();

    /// @param folder where files may be made
    Samples(Path folder) throws IOException {
        try (Stream<Path> resources = Files.walk(RESOURCES)) {
            for (Path file : resources.filter(Files::isRegularFile).sorted().toList()) {
                all.put(String.valueOf(file.getFileName()), Files.readAllBytes(file));
            }
        }
        add("trace-1.csv", TRACE);
        add("trace-2.csv", TRACE_2);
        add("trace-2.csv.gz", TRACE_2);
        addWritten(folder, "snapshot-own.json");
        addWritten(folder, "torch-own.pickle");
        all.put("snapshot-own.json.gz", Damage.gzip(all.get("snapshot-own.json")));
        all.put("torch-one-segment.pickle.gz", Damage.gzip(all.get("torch-one-segment.pickle")));
        all.put("rmm-bare-hex.csv.gz", Damage.gzip(all.get("rmm-bare-hex.csv")));
        add("settings.properties", SETTINGS);
        byte[] plugin = Files.readAllBytes(AcmePlugin.build(folder));
        all.put("acme.jar", plugin);
        add("allowed", "# plug-ins of this service\n" + sha256(plugin) + "  acme.jar\n");
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private void add(String name, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        all.put(name, name.endsWith(".gz") ? Damage.gzip(bytes) : bytes);
    }

    /// Adds what the program itself writes.
    private void addWritten(Path folder, String name) throws IOException {
        Path trace = Files.write(folder.resolve("sample.csv"), all.get("trace-2.csv"));
        Path written = folder.resolve(name);
        ProgramRun run = ProgramRun.inProcess(
                "replay",
                trace.toString(),
                "--device=simulated",
                "--allocator=caching",
                "--work=check",
                "--repeat=1",
                "--snapshot=" + written);
        if (run.exitCode() != 0) {
            throw new IllegalStateException(run.err());
        }
        all.put(name, Files.readAllBytes(written));
    }

    byte[] bytes(String name) {
        return all.get(name);
    }

    List<String> names() {
        return List.copyOf(all.keySet());
    }
}
