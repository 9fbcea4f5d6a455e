package io.cistern.site;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;

/// Makes the Javadoc of the modules that pages refer programs to, in one tree.
final class ApiDocs {
    private static final Pattern MODULE = Pattern.compile("(?m)^(?:open )?module ([\\w.]+) ");

    private static final List<String> FOLDERS = List.of(
            "allocator-api",
            "device-buffers",
            "caching-allocator",
            "async-allocator",
            "nccl-allocator",
            "pluggable-loader",
            "adaptors",
            "stream-hazards",
            "memory-pressure",
            "handle-pool",
            "cuda-driver",
            "simulated-gpu",
            "observability",
            "integrations/javacpp",
            "integrations/jcuda",
            "integrations/onnxruntime");

    private ApiDocs() {}

    /// @param out the folder for the files
    /// @param classPath the JARs of other projects that the modules need
    /// @throws IllegalStateException if javadoc fails
    static void make(Path root, Path out, String classPath) throws IOException {
        Map<String, Path> modules = modules(root);
        List<String> options = new ArrayList<>(List.of(
                "-quiet",
                "-Xdoclint:none",
                "-notimestamp",
                "-encoding",
                "UTF-8",
                "-windowtitle",
                "Cistern",
                "-doctitle",
                "Cistern",
                "-tag",
                "implSpec:a:Implementation requirements:",
                "--module-path",
                classPath,
                "-d",
                out.toString(),
                "--module",
                String.join(",", modules.keySet())));
        modules.forEach((name, sources) -> options.addAll(List.of("--module-source-path", name + "=" + sources)));
        int result = ToolProvider.findFirst("javadoc")
                .orElseThrow(() -> new IllegalStateException("this Java has no javadoc"))
                .run(System.out, System.err, options.toArray(String[]::new));
        if (result != 0) {
            throw new IllegalStateException("javadoc ended with " + result);
        }
    }

    private static Map<String, Path> modules(Path root) throws IOException {
        Map<String, Path> modules = new LinkedHashMap<>();
        for (String folder : FOLDERS) {
            Path sources = root.resolve(folder).resolve("src/main/java");
            Matcher name = MODULE.matcher(Files.readString(sources.resolve("module-info.java")));
            if (!name.find()) {
                throw new IllegalStateException(sources + " declares no module");
            }
            modules.put(name.group(1), sources);
        }
        return modules;
    }
}
