package io.cistern.cuda.nvrtc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The binding of NVRTC, against a compiler made for it.
class NvrtcTests {
    private static final String PROPERTY = "cistern.nvrtc.library";

    @TempDir
    private Path folder;

    private Path library;

    private Nvrtc fake() throws Exception {
        library = folder.resolve("libnvrtc-fake.so");
        Path source = Path.of(NvrtcTests.class.getResource("/fake_nvrtc.c").toURI());
        ProcessBuilder gcc = new ProcessBuilder("gcc", "-shared", "-fPIC", "-o", library.toString(), source.toString());
        boolean built;
        try {
            built = gcc.inheritIO().start().waitFor() == 0;
        } catch (java.io.IOException none) {
            built = false;
        }
        assumeTrue(built, "no gcc on the PATH");
        System.setProperty(PROPERTY, library.toString());
        return Nvrtc.find();
    }

    @AfterEach
    void forgetTheLibrary() {
        System.clearProperty(PROPERTY);
    }

    @Test
    void theTextOfAProgramIsTheCompilers() throws Exception {
        Nvrtc nvrtc = fake();
        assertThat(nvrtc.version()).isEqualTo("12.6");
        assertThat(nvrtc.libraryName()).isEqualTo(library.toString());
        assertThat(nvrtc.compile("a program", "a.cu", List.of("--one", "--two")))
                .isEqualTo("// a program --one --two");
        assertThat(alive()).isZero();
    }

    @Test
    void theLogOfTheCompilerIsTheError() throws Exception {
        Nvrtc nvrtc = fake();
        NvrtcException failure =
                catchThrowableOfType(NvrtcException.class, () -> nvrtc.compile("an error", "filter.cu", List.of()));
        assertThat(failure.code()).isEqualTo(6);
        assertThat(failure.log()).isEqualTo("filter.cu(1): error: identifier \"error\" is undefined");
        assertThat(failure)
                .hasMessageStartingWith("nvrtcCompileProgram failed: NVRTC_ERROR_COMPILATION (6)")
                .hasMessageEndingWith(failure.log());
        assertThat(alive()).isZero();
    }

    @Test
    void aCompilerThatIsNotThereIsNamed() {
        System.setProperty(PROPERTY, "libnvrtc-of-nobody.so");
        assertThatThrownBy(Nvrtc::find)
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("libnvrtc-of-nobody.so")
                .hasMessageContaining(PROPERTY);
    }

    @SuppressWarnings("restricted")
    private int alive() {
        return SymbolLookup.libraryLookup(library, Arena.global())
                .findOrThrow("fake_alive")
                .reinterpret(4)
                .get(ValueLayout.JAVA_INT, 0);
    }
}
