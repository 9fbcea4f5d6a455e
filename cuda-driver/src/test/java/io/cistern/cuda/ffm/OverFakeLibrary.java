package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// The binding over a library that records what arrives in C, one for all tests of a class. Both devices have their
/// contexts; no failure lasts longer than a test.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class OverFakeLibrary {
    static final long ADDRESS = 0x7f1234567800L;
    static final long STREAM = 0x5_0000_0007L;
    static final long EVENT = 0x4_0000_0009L;
    static final long POOL = 0xd_0000_0005L;

    FakeLibrary library;
    NativeDriver driver;

    @BeforeAll
    void openDriver(@TempDir Path folder) {
        library = new FakeLibrary(folder);
        driver = library.open();
        driver.devices().primaryContext(0);
        driver.devices().primaryContext(1);
    }

    @AfterAll
    void closeDriver() {
        driver.close();
    }

    @BeforeEach
    void record() {
        library.record(true);
    }

    @AfterEach
    void failNoMore() {
        library.fail("", 0);
    }

    /// All calls since the test or the last look began, without those for contexts.
    void assertCalls(String... expected) {
        assertThat(library.callsWithoutContexts()).containsExactly(expected);
        library.record(true);
    }
}
