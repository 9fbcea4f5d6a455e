package io.cistern.suites;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cistern.cuda.CudaDriver;
import io.cistern.jvm.JavaProgram;
import io.cistern.jvm.RunningProgram;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Two processes that share memory of a pool, on the driver in the system property `cistern.testkit.driver`:
/// contents, order by events, and the state after one of them is killed. The processes run the same Java and
/// class path as this test. Only they touch the shared memory, so the tests go on whatever happens to them. A
/// process that was neither killed nor kept waiting serves the next test too.
@Tag("processes")
@EnabledOnOs(OS.LINUX)
@Timeout(180)
public class SharedPools {
    private static final long BYTES = 8 << 20;

    @TempDir
    private Path folder;

    private static final Deque<RunningProgram> IDLE = new ArrayDeque<>();

    private RunningProgram owner;
    private RunningProgram guest;
    private boolean reusable;

    /// For JUnit.
    public SharedPools() {}

    @BeforeEach
    void start() throws Exception {
        try (CudaDriver driver = DriverUnderTest.open()) {
            assumeTrue(
                    driver.capabilities().devices().stream()
                            .allMatch(device -> device.supports(io.cistern.cuda.DriverFeature.POSIX_FILE_DESCRIPTOR)
                                    .supported()),
                    "no file descriptors for device memory here");
        }
        owner = idleOrNew();
        guest = idleOrNew();
        reusable = true;
        owner.say("create").expect("create");
        owner.say("allocate " + BYTES).expect("allocate");
    }

    private static RunningProgram idleOrNew() throws IOException {
        return IDLE.isEmpty() ? process() : IDLE.removeFirst();
    }

    private static RunningProgram process() throws IOException {
        String driver = System.getProperty(DriverUnderTest.PROPERTY, "cuda");
        List<String> options = List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-D" + DriverUnderTest.PROPERTY + "=" + driver,
                "--class-path",
                System.getProperty("java.class.path"));
        return new JavaProgram(SharingProcess.class.getName(), options, List.of(), Map.of()).start();
    }

    @AfterEach
    void end() throws Exception {
        for (RunningProgram process : List.of(owner, guest)) {
            if (reusable && process.isAlive()) {
                ask(process, "forget");
                IDLE.add(process);
            } else {
                process.close();
            }
        }
    }

    @AfterAll
    static void endAll() {
        IDLE.forEach(RunningProgram::close);
        IDLE.clear();
    }

    private static String ask(RunningProgram process, String question) throws Exception {
        String kind = question.split(" ", -1)[0];
        String answer = process.say(question).expect(kind).substring(kind.length());
        assertThat(answer).as(question).doesNotStartWith(SharingProcess.REFUSED);
        return answer.strip();
    }

    /// Makes the guest map the owner's block, and each process open the other's event.
    private void share() throws Exception {
        Path path = folder.resolve("pool");
        ask(owner, "serve " + path);
        owner.say("hand-over");
        ask(guest, "import " + path);
        owner.expect("hand-over");
        map();
    }

    private void map() throws Exception {
        ask(guest, "map " + ask(owner, "export") + " " + BYTES);
        ask(guest, "open " + ask(owner, "event"));
        ask(owner, "open " + ask(guest, "event"));
    }

    @Test
    void bytesGoBothWaysInTheOrderOfEvents() throws Exception {
        share();
        for (int round = 1; round <= 5; round++) {
            ask(owner, "fill " + round);
            ask(owner, "record");
            ask(guest, "await");
            assertThat(ask(guest, "content")).isEqualTo("" + round);
            ask(guest, "fill " + -round);
            ask(guest, "record");
            ask(owner, "await");
            assertThat(ask(owner, "content")).isEqualTo("" + -round);
        }
    }

    @Test
    void theGuestsStreamWaitsForTheOwnersEvent() throws Exception {
        share();
        ask(owner, "fill 1");
        ask(owner, "content");
        ask(owner, "hold");
        ask(owner, "fill 2");
        ask(owner, "record");
        ask(guest, "await");
        assertThat(ask(guest, "idle")).isEqualTo("false");
        ask(owner, "release");
        assertThat(ask(guest, "content")).isEqualTo("2");
        assertThat(ask(guest, "has-passed")).isEqualTo("true");
    }

    @Test
    void theOwnersStreamWaitsForTheGuestsEvent() throws Exception {
        share();
        ask(guest, "hold");
        ask(guest, "fill 3");
        ask(guest, "record");
        ask(owner, "await");
        assertThat(ask(owner, "idle")).isEqualTo("false");
        ask(guest, "release");
        assertThat(ask(owner, "content")).isEqualTo("3");
    }

    @Test
    void aDescriptorIsFetchedByItsNumberOrThatIsNotAllowed() throws Exception {
        RunningProgram other = idleOrNew();
        try {
            String where = ask(other, "create");
            ask(other, "allocate " + BYTES);
            String fetched = ask(guest, "fetch " + where);
            assumeTrue(!fetched.startsWith("not allowed"), fetched);
            ask(guest, "map " + ask(other, "export") + " " + BYTES);
            ask(other, "fill 4");
            ask(other, "content");
            assertThat(ask(guest, "content")).isEqualTo("4");
        } finally {
            other.close();
        }
    }

    @Test
    void theGuestKnowsHowMuchItHasAndUnmappingLeavesTheOwnersMemory() throws Exception {
        share();
        assertThat(Long.parseLong(ask(guest, "range"))).isGreaterThanOrEqualTo(BYTES);
        ask(guest, "fill 5");
        ask(guest, "unmap");
        ask(guest, "destroy");
        assertThat(ask(owner, "content")).isEqualTo("5");
    }

    @Test
    void aGuestThatIsKilledLeavesNothing() throws Exception {
        share();
        long free = Long.parseLong(ask(owner, "free-bytes"));
        ask(guest, "fill 6");
        ask(guest, "content");
        guest.kill();
        assertThat(ask(owner, "content")).isEqualTo("6");
        ask(owner, "unmap");
        ask(owner, "destroy");
        assertThat(Long.parseLong(ask(owner, "free-bytes"))).isGreaterThanOrEqualTo(free);
    }

    @Test
    void aGuestKilledAtWorkHoldsNobodyWhoDoesNotWaitForIt() throws Exception {
        share();
        ask(guest, "hold");
        ask(guest, "fill 7");
        ask(guest, "record");
        assertThat(ask(owner, "idle")).isEqualTo("true");
        guest.kill();
        ask(owner, "fill 8");
        assertThat(ask(owner, "content")).isEqualTo("8");
        assertThat(ask(owner, "has-passed"))
                .as("what a killed process was to record passes")
                .isEqualTo("false");
    }

    /// Shows why `io.cistern.async.sharing` makes the host wait, and not a stream. The test reports whether a
    /// record of the survivor's own frees the stream, but does not rely on it.
    @Test
    void aStreamThatWaitsForAGuestWhichIsKilledWaitsOn(TestReporter reporter) throws Exception {
        share();
        ask(guest, "hold");
        ask(guest, "record");
        ask(owner, "await");
        reusable = false;
        guest.kill();
        assertThat(ask(owner, "idle")).isEqualTo("false");
        ask(owner, "record-for-other");
        reporter.publishEntry("own record of the killed process's event sets the stream free", ask(owner, "gets-idle"));
    }

    @Test
    void whatIsMappedOutlivesAnOwnerThatIsKilled() throws Exception {
        share();
        ask(owner, "fill 9");
        ask(owner, "content");
        owner.kill();
        assertThat(ask(guest, "content")).isEqualTo("9");
        ask(guest, "fill 10");
        assertThat(ask(guest, "content")).isEqualTo("10");
        ask(guest, "unmap");
        ask(guest, "destroy");
    }

    @Test
    void theDeviceHasItsMemoryBackWhenBothAreKilled() throws Exception {
        try (CudaDriver driver = DriverUnderTest.open()) {
            driver.devices().synchronize(0);
            share();
            long shared = driver.memory().freeBytes(0);
            owner.kill();
            guest.kill();
            assertThat(driver.memory().freeBytes(0)).isGreaterThanOrEqualTo(shared);
        }
    }
}
