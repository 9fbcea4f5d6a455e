package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.spi.AllocatorProvider;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/// A third party's JAR: compiled from source texts against allocator-api alone, and packed.
final class PluginJar {
    private final Map<String, String> sources = new LinkedHashMap<>();
    private final Map<String, String> services = new LinkedHashMap<>();
    private final Set<String> left = new HashSet<>();

    /// The JAR or folder that a class came from.
    static Path home(Class<?> type) {
        try {
            return Path.of(
                    type.getProtectionDomain().getCodeSource().getLocation().toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /// An allocator's JAR of one class with its services file.
    static PluginJar allocator(String className, String source) {
        return new PluginJar().source(className, source).service(AllocatorProvider.class, className);
    }

    PluginJar source(String className, String source) {
        sources.put(className, source);
        return this;
    }

    /// Sets the services file's text.
    PluginJar service(Class<?> service, String text) {
        services.put("META-INF/services/" + service.getName(), text);
        return this;
    }

    /// Leaves a compiled class out of the JAR.
    PluginJar without(String className) {
        left.add(className.replace('.', '/') + ".class");
        return this;
    }

    Path build(Path jar) {
        return build(jar, List.of("--class-path", home(AllocatorProvider.class).toString()));
    }

    Path build(Path jar, List<String> paths) {
        try {
            Path classes = Files.createTempDirectory(jar.toAbsolutePath().getParent(), "classes");
            compile(classes, paths);
            pack(classes, jar);
            return PluginFolder.own(jar);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void compile(Path classes, List<String> paths) {
        if (sources.isEmpty()) {
            return;
        }
        List<String> options = new ArrayList<>(List.of("-proc:none", "-d", classes.toString()));
        options.addAll(paths);
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<Text> texts = sources.entrySet().stream().map(Text::new).toList();
        StringWriter complaints = new StringWriter();
        boolean compiled =
                compiler.getTask(complaints, null, null, options, null, texts).call();
        assertThat(compiled).as(() -> complaints + "in " + sources).isTrue();
    }

    private void pack(Path classes, Path jar) throws IOException {
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar));
                Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
                String name = classes.relativize(file).toString();
                if (!left.contains(name)) {
                    out.putNextEntry(new JarEntry(name));
                    Files.copy(file, out);
                }
            }
            for (Map.Entry<String, String> service : services.entrySet()) {
                out.putNextEntry(new JarEntry(service.getKey()));
                out.write((service.getValue() + "\n").getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    private static final class Text extends SimpleJavaFileObject {
        private final String text;

        Text(Map.Entry<String, String> source) {
            super(URI.create("string:///" + source.getKey().replace('.', '/') + ".java"), JavaFileObject.Kind.SOURCE);
            text = source.getValue();
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }
}
