package io.cistern;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.jvm.JavaProgram;
import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Structured task scopes are a preview in Java 25: a program that uses them is compiled and run apart.
class StructuredTaskTests {
    private static final String PROGRAM = "ForkInScope";

    @TempDir
    private Path folder;

    @Test
    void subtasksAreInTheScopeOfTheWorkThatForksThem() throws Exception {
        compile();
        assertThat(run())
                .containsExactly(
                        "outside: current inner current+current",
                        "virtual: pool inner current+pool",
                        "platform: pool inner current+pool",
                        "entered: current",
                        "carried: pool",
                        "afterwards: current inner current+current");
    }

    private void compile() throws Exception {
        Path source = Path.of(Objects.requireNonNull(getClass().getResource("/preview/" + PROGRAM + ".java"))
                .toURI());
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<String> options = List.of(
                "--enable-preview", "--release", "25", "-proc:none", "-d", folder.toString(), "-cp", classPath());
        boolean compiled = compiler.getTask(
                        null,
                        null,
                        null,
                        options,
                        null,
                        compiler.getStandardFileManager(null, null, null).getJavaFileObjects(source))
                .call();
        assertThat(compiled).isTrue();
    }

    private List<String> run() throws Exception {
        return new JavaProgram(
                        PROGRAM,
                        List.of(
                                "--enable-preview",
                                "--enable-native-access=ALL-UNNAMED",
                                "--class-path",
                                folder + File.pathSeparator + classPath()))
                .run();
    }

    private static String classPath() {
        return System.getProperty("java.class.path");
    }
}
