package io.cistern.observability.nvtx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.jvm.CCompiler;
import io.cistern.observability.ObservedMemory;
import io.cistern.spi.TrimMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// What a profiler that reads NVTX is told: a library of the tests writes down its calls.
@ResourceLock(Resources.SYSTEM_PROPERTIES)
final class NvtxRangesTests extends ObservedMemory {
    private static final String SETTING = "cistern.nvtx.library";

    private static final String SOURCE = """
        #include <stdio.h>
        static unsigned long next = 41;
        static void line(const char *what, const char *text) {
            FILE *file = fopen("%s", "a");
            fprintf(file, "%%s %%s\\n", what, text);
            fclose(file);
        }
        void nvtxMarkA(const char *text) { line("mark", text); }
        unsigned long nvtxRangeStartA(const char *text) { line("start", text); return ++next; }
        void nvtxRangeEnd(unsigned long id) {
            char text[32];
            snprintf(text, sizeof text, "%%lu", id);
            line("end", text);
        }
        """;

    @TempDir
    Path folder;

    private Path calls;

    @BeforeEach
    void compile() throws Exception {
        Optional<CCompiler> compiler = CCompiler.find();
        assumeTrue(compiler.isPresent(), "no C compiler");
        calls = folder.resolve("calls");
        System.setProperty(
                SETTING,
                compiler.orElseThrow()
                        .library(folder.resolve("libnvtx.so"), SOURCE.formatted(calls))
                        .toString());
    }

    @AfterEach
    void forget() {
        System.clearProperty(SETTING);
    }

    private List<String> calls() throws Exception {
        return Files.exists(calls) ? Files.readAllLines(calls) : List.of();
    }

    @Test
    void annotationsAreMarksAndScopesAreRanges() throws Exception {
        try (Registration _ = NvtxRanges.register(memory)) {
            memory.listeners().annotate("step 1 – vorwärts");
            try (Scope _ = memory.current(DEVICE).enter()) {
                free(allocate(1000));
            }
        }
        memory.listeners().annotate("late");
        assertThat(calls()).containsExactly("mark step 1 – vorwärts", "start scope caching", "end 42");
    }

    @Test
    void aVirtualThreadsScopesAreRanges() throws Exception {
        try (Registration _ = NvtxRanges.register(memory)) {
            Thread.ofVirtual()
                    .start(() -> {
                        try (Scope _ = memory.current(DEVICE).enter()) {
                            Thread.yield();
                        }
                    })
                    .join();
        }
        assertThat(calls()).containsExactly("start scope caching", "end 42");
    }

    @Test
    void trimsSwapsAndRefusalsAreMarks() throws Exception {
        free(allocate(8 * MIB));
        try (Registration _ = NvtxRanges.register(memory)) {
            memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            assertThatThrownBy(() -> allocate(300 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class);
            memory.setCurrent("direct");
        }
        assertThat(calls())
                .anyMatch(call -> call.startsWith("mark trim caching, device 0: "))
                .anyMatch(call -> call.startsWith("mark out of memory: " + 300 * MIB + " bytes, device 0"))
                .contains("mark current allocator of device 0: caching -> direct");
    }

    @Test
    void withoutALibraryNothingHappens() throws Exception {
        System.setProperty(SETTING, folder.resolve("absent.so").toString());
        try (Registration _ = NvtxRanges.register(memory)) {
            memory.listeners().annotate("unheard");
            free(allocate(1000));
        }
        assertThatThrownBy(NvtxLibrary::find)
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContainingAll("absent.so", SETTING);
        assertThat(calls()).isEmpty();
    }
}
