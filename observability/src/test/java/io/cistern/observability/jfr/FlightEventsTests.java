package io.cistern.observability.jfr;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.ScopeCarrier;
import io.cistern.diagnostics.LeakLevel;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.observability.ObservedMemory;
import io.cistern.spi.TrimMode;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import jdk.jfr.consumer.RecordingStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What recordings of Java Flight Recorder hold of a device memory.
final class FlightEventsTests extends ObservedMemory {
    @TempDir
    Path folder;

    @FunctionalInterface
    private interface Work {
        void run() throws Exception;
    }

    /// The events of a kind that a recording of some work holds.
    private List<RecordedEvent> recorded(String name, Work work) throws Exception {
        try (Registration _ = FlightEvents.register(memory);
                Recording recording = new Recording()) {
            return recorded(recording, name, work);
        }
    }

    private List<RecordedEvent> recorded(Recording recording, String name, Work work) throws Exception {
        recording.start();
        work.run();
        recording.stop();
        return in(recording, name);
    }

    private List<RecordedEvent> in(Recording recording, String name) throws IOException {
        Path file = folder.resolve(recording.getId() + ".jfr");
        recording.dump(file);
        return RecordingFile.readAllEvents(file).stream()
                .filter(event -> event.getEventType().getName().equals(name))
                .toList();
    }

    @Test
    void segmentsAreRecordedWithTheProgramsStack() throws Exception {
        List<RecordedEvent> events = recorded("cistern.SegmentAcquired", () -> free(allocate(8 * MIB)));
        assertThat(events).isNotEmpty().allSatisfy(event -> {
            assertThat(event.getString("allocator")).isEqualTo("caching");
            assertThat(event.getInt("device")).isEqualTo(DEVICE);
            assertThat(event.getLong("address")).isPositive();
            assertThat(event.getStackTrace().getFrames())
                    .anyMatch(frame -> frame.getMethod().getType().getName().equals(ObservedMemory.class.getName()));
        });
        assertThat(events.stream().mapToLong(event -> event.getLong("byteSize")).sum())
                .isGreaterThanOrEqualTo(8 * MIB);
    }

    @Test
    void trimsAreRecordedWithTheSegmentsThatTheyReturn() throws Exception {
        try (Registration _ = FlightEvents.register(memory);
                Recording recording = new Recording()) {
            List<RecordedEvent> trims = recorded(recording, "cistern.Trim", () -> {
                free(allocate(8 * MIB));
                memory.trim(DEVICE, 0, TrimMode.SYNCHRONIZE);
            });
            assertThat(trims).hasSize(1);
            assertThat(trims.getFirst().getLong("returnedBytes")).isGreaterThanOrEqualTo(8 * MIB);
            assertThat(trims.getFirst().getBoolean("waited")).isTrue();
            assertThat(trims.getFirst().getDuration("took")).isPositive();
            assertThat(in(recording, "cistern.SegmentReleased")).isNotEmpty();
        }
    }

    @Test
    void anOutOfMemoryIsRecordedWithTheStepsBefore() throws Exception {
        long library = gpu.memory().allocate(DEVICE, 20 * MIB);
        try (Registration _ = FlightEvents.register(memory);
                Recording recording = new Recording()) {
            List<RecordedEvent> refusals = recorded(
                    recording,
                    "cistern.OutOfMemory",
                    () -> assertThatThrownBy(() -> allocate(250 * MIB)).isInstanceOf(DeviceOutOfMemoryException.class));
            assertThat(refusals).hasSize(1);
            RecordedEvent refusal = refusals.getFirst();
            assertThat(refusal.getLong("byteSize")).isEqualTo(250 * MIB);
            assertThat(refusal.getLong("totalBytes")).isEqualTo(256 * MIB);
            assertThat(refusal.getString("allocator")).isEqualTo("caching");
            List<RecordedEvent> steps = in(recording, "cistern.ReclaimStep");
            assertThat(steps)
                    .isNotEmpty()
                    .allSatisfy(step -> assertThat(step.getLong("byteSize")).isEqualTo(250 * MIB));
        }
        gpu.memory().free(DEVICE, library);
    }

    @Test
    void aScopeIsRecordedFromItsBeginToItsEnd() throws Exception {
        try (MemoryPool pool = MemoryPool.builder(memory).tag("step").open()) {
            List<RecordedEvent> scopes = recorded("cistern.Scope", () -> {
                try (Scope _ = pool.enter()) {
                    Thread.sleep(20);
                }
            });
            assertThat(scopes).hasSize(1);
            assertThat(scopes.getFirst().getDuration()).isGreaterThanOrEqualTo(Duration.ofMillis(20));
        }
    }

    @Test
    void scopesThatCarriedCodeLeftOpenEndWithThatAroundThem() throws Exception {
        try (MemoryPool pool = MemoryPool.builder(memory).tag("step").open()) {
            List<Scope> left = new ArrayList<>();
            List<RecordedEvent> scopes = recorded("cistern.Scope", () -> {
                try (Scope _ = pool.enter()) {
                    ScopeCarrier here = ScopeCarrier.capture(memory);
                    for (int task = 0; task < 1000; task++) {
                        here.run(() -> left.add(memory.current(DEVICE).enter()));
                    }
                }
            });
            assertThat(scopes)
                    .hasSize(1001)
                    .anyMatch(scope -> scope.getString("allocator").equals(pool.toString()));
        }
    }

    @Test
    void swapsAndAnnotationsAreRecorded() throws Exception {
        try (Registration _ = FlightEvents.register(memory);
                Recording recording = new Recording()) {
            List<RecordedEvent> changes = recorded(recording, "cistern.CurrentChanged", () -> {
                memory.listeners().annotate("step 7");
                memory.setCurrent("direct");
            });
            assertThat(changes).hasSize(1);
            assertThat(changes.getFirst().getString("former")).isEqualTo("caching");
            assertThat(changes.getFirst().getString("allocator")).isEqualTo("direct");
            assertThat(in(recording, "cistern.Annotation"))
                    .extracting(event -> event.getString("text"))
                    .containsExactly("step 7");
        }
    }

    @Test
    void samplesWeighWhatWasAllocatedBetweenThem() throws Exception {
        try (Registration _ = FlightEvents.register(memory);
                Recording recording = new Recording()) {
            recording.enable("cistern.AllocationSample").with("interval", "10MiB");
            List<RecordedEvent> samples = recorded(recording, "cistern.AllocationSample", () -> {
                for (int i = 0; i < 45; i++) {
                    free(allocate(MIB));
                }
            });
            assertThat(samples).hasSize(4);
            assertThat(samples)
                    .allSatisfy(sample -> assertThat(sample.getLong("weight")).isEqualTo(10 * MIB));
        }
    }

    @Test
    void slowAllocationsAreThoseBeyondTheSetting() throws Exception {
        try (Registration _ = FlightEvents.register(memory)) {
            try (Recording all = new Recording()) {
                all.enable("cistern.SlowAllocation").with("slowerThan", "0 ns");
                List<RecordedEvent> slow = recorded(all, "cistern.SlowAllocation", () -> free(allocate(1000)));
                assertThat(slow).hasSize(1);
                assertThat(slow.getFirst().getDuration("took")).isPositive();
            }
            try (Recording few = new Recording()) {
                few.enable("cistern.SlowAllocation").with("slowerThan", "200000000 m");
                assertThat(recorded(few, "cistern.SlowAllocation", () -> free(allocate(1000))))
                        .isEmpty();
            }
        }
    }

    @Test
    void theLeastOfTwoRecordingsSettingsHolds() {
        assertThat(new LeastSetting.SlowerThan().combine(java.util.Set.of("2 ms", "300 us", "1 s")))
                .isEqualTo("300 us");
        assertThat(new LeastSetting.SampleInterval().combine(java.util.Set.of("2MiB", "1GiB", "64KiB")))
                .isEqualTo("64KiB");
        assertThat(new LeastSetting.SlowerThan().combine(java.util.Set.of("soon")))
                .isEqualTo("1 ms");
        assertThat(new LeastSetting.SampleInterval().combine(java.util.Set.of("much")))
                .isEqualTo("64MiB");
    }

    @Test
    void figuresAreRecordedEverySecond() throws Exception {
        long address = allocate(5 * MIB);
        try (Registration _ = FlightEvents.register(memory);
                RecordingStream recording = new RecordingStream()) {
            CountDownLatch both = new CountDownLatch(2);
            recording.enable("cistern.DeviceStatistics").withPeriod(Duration.ofMillis(20));
            recording.enable("cistern.AllocatorStatistics").withPeriod(Duration.ofMillis(20));
            recording.onEvent("cistern.DeviceStatistics", event -> {
                if (event.getLong("requestedBytes") == 5 * MIB && event.getLong("totalBytes") == 256 * MIB) {
                    both.countDown();
                }
            });
            recording.onEvent("cistern.AllocatorStatistics", event -> {
                if (event.getString("allocator").equals("caching") && event.getLong("liveBlocks") == 1) {
                    both.countDown();
                }
            });
            recording.startAsync();
            assertThat(both.await(1, TimeUnit.MINUTES)).isTrue();
        }
        free(address);
    }

    @Test
    void leaksAreRecordedByPlaceWhenTheMemoryCloses() throws Exception {
        DeviceMemory leaking = DeviceMemory.builder(gpu)
                .catalog(found())
                .leakLevel(LeakLevel.SITES)
                .open();
        leaking.setCurrent("caching");
        FlightEvents.register(leaking);
        long[] blocks = new long[3];
        try (Recording recording = new Recording()) {
            recording.start();
            for (int i = 0; i < blocks.length; i++) {
                blocks[i] = leaking.allocate(MIB, DEVICE, stream);
            }
            leaking.close();
            recording.stop();
            List<RecordedEvent> leaks = in(recording, "cistern.Leak");
            assertThat(leaks).hasSize(1);
            assertThat(leaks.getFirst().getLong("blocks")).isEqualTo(3);
            assertThat(leaks.getFirst().getLong("byteSize")).isEqualTo(3 * MIB);
            assertThat(leaks.getFirst().getString("site")).isNotEmpty();
        }
        for (long block : blocks) {
            leaking.free(block, stream);
        }
    }

    @Test
    void registeredTwiceEventsAreRecordedOnce() throws Exception {
        try (Registration _ = FlightEvents.register(memory);
                Recording recording = new Recording()) {
            FlightEvents.register(memory).close();
            assertThat(recorded(
                            recording,
                            "cistern.Annotation",
                            () -> memory.listeners().annotate("once")))
                    .hasSize(1);
        }
    }

    @Test
    void nothingIsRecordedAfterTheRegistration() throws Exception {
        Registration registration = FlightEvents.register(memory);
        try (Recording recording = new Recording()) {
            recording.start();
            registration.close();
            registration.close();
            memory.listeners().annotate("late");
            recording.stop();
            assertThat(in(recording, "cistern.Annotation")).isEmpty();
        }
        assertThat(recorded("cistern.Annotation", () -> memory.listeners().annotate("again")))
                .hasSize(1);
    }

    /// A recording that began before, and one that begins after.
    @Test
    void whichComesFirstDoesNotMatter() throws Exception {
        try (Recording early = new Recording()) {
            early.start();
            try (Registration _ = FlightEvents.register(memory)) {
                memory.listeners().annotate("one");
                try (Recording late = new Recording()) {
                    assertThat(recorded(
                                    late,
                                    "cistern.Annotation",
                                    () -> memory.listeners().annotate("two")))
                            .hasSize(1);
                }
                memory.listeners().annotate("three");
            }
            early.stop();
            assertThat(in(early, "cistern.Annotation"))
                    .extracting(event -> event.getString("text"))
                    .containsExactly("one", "two", "three");
        }
    }
}
