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

/// Makes the Javadoc of all published modules, in one tree. The Kotlin and Spark artifacts are not among them.
final class ApiDocs {
    private static final Pattern MODULE = Pattern.compile("(?m)^(?:open )?module ([\\w.]+) ");

    private static final Pattern LISTED = Pattern.compile("<module>([\\w/-]+)</module>");

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
            throw new IllegalStateException("javadoc ended with exit code " + result);
        }
    }

    /// Returns the sources of all modules that are published and export something, by the module's name.
    private static Map<String, Path> modules(Path root) throws IOException {
        Map<String, Path> modules = new LinkedHashMap<>();
        for (String folder : folders(root)) {
            Path sources = root.resolve(folder).resolve("src/main/java");
            Path declaration = sources.resolve("module-info.java");
            if (Files.exists(declaration) && isPublished(root.resolve(folder))) {
                String text = Files.readString(declaration);
                Matcher name = MODULE.matcher(text);
                if (name.find() && text.contains("\n    exports ")) {
                    modules.put(name.group(1), sources);
                }
            }
        }
        return modules;
    }

    static List<String> folders(Path root) throws IOException {
        return LISTED.matcher(Files.readString(root.resolve("pom.xml")))
                .results()
                .map(listed -> listed.group(1))
                .toList();
    }

    private static boolean isPublished(Path folder) throws IOException {
        return !Files.readString(folder.resolve("pom.xml")).contains("<cistern.unpublished>true");
    }
}
