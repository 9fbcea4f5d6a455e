package io.cistern.site;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.StandardLocation;
import javax.tools.ToolProvider;

/// Compiles samples, all in one go.
final class SampleCompiler {
    private SampleCompiler() {}

    /// Returns the errors, with the lines that they are in.
    ///
    /// @param out gets the classes
    static List<String> compile(List<SampleSource> sources, Path out) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> told = new DiagnosticCollector<>();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(told, Locale.ROOT, null)) {
            files.setLocationFromPaths(StandardLocation.CLASS_OUTPUT, List.of(out));
            List<String> options = List.of("-proc:none", "-classpath", System.getProperty("java.class.path"));
            compiler.getTask(null, files, told, options, null, units(sources)).call();
        }
        return told.getDiagnostics().stream()
                .filter(each -> each.getKind() == Diagnostic.Kind.ERROR)
                .map(SampleCompiler::text)
                .toList();
    }

    private static List<JavaFileObject> units(List<SampleSource> sources) {
        List<JavaFileObject> units = new ArrayList<>();
        for (SampleSource source : sources) {
            units.add(new Unit(source));
        }
        return units;
    }

    private static String text(Diagnostic<? extends JavaFileObject> error) {
        JavaFileObject source = error.getSource();
        String line = source == null ? "" : line(source, error.getLineNumber());
        return (source == null ? "" : source.getName()) + ": " + error.getMessage(Locale.ROOT) + " in: " + line;
    }

    private static String line(JavaFileObject source, long number) {
        try {
            List<String> lines = source.getCharContent(true).toString().lines().collect(Collectors.toList());
            return number < 1 ? "" : lines.get((int) number - 1).strip();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /// A source in memory.
    private static final class Unit extends SimpleJavaFileObject {
        private final String text;

        Unit(SampleSource source) {
            super(URI.create("sample:///" + source.className().replace('.', '/') + ".java"), Kind.SOURCE);
            this.text = source.text();
        }

        @Override
        public CharSequence getCharContent(boolean ignoreErrors) {
            return text;
        }
    }
}
