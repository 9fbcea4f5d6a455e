package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// What a recording of the flight recorder has of handles.
@Timeout(60)
final class HandleEventsTests {
    private final HandlePoolFixture fixture = new HandlePoolFixture();

    @TempDir
    private Path folder;

    @AfterEach
    void nothingIsLeft() {
        fixture.close();
    }

    @Test
    void aRecordingTellsOfHandlesAndWaits() throws IOException {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxHandles(1));
        Path file = folder.resolve("handles.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("cistern.HandleCreated").withoutThreshold();
            recording.enable("cistern.HandleWait").withoutThreshold();
            recording.start();
            fixture.library.onCreate = () -> LockSupport.parkNanos(10_000_000);
            pool.handle(0, fixture.stream);
            assertThatExceptionOfType(HandleException.class)
                    .isThrownBy(() -> HandlePoolFixture.onNewThread(() -> pool.handle(0, fixture.stream)));
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events = RecordingFile.readAllEvents(file);
        assertThat(of(events, "cistern.HandleCreated")).singleElement().satisfies(event -> {
            assertThat(event.getString("library")).isEqualTo("checked");
            assertThat(event.getInt("device")).isZero();
            assertThat(event.getDuration()).isGreaterThanOrEqualTo(Duration.ofMillis(5));
        });
        assertThat(of(events, "cistern.HandleWait")).singleElement().satisfies(event -> {
            assertThat(event.getString("library")).isEqualTo("checked");
            assertThat(event.getDuration()).isGreaterThanOrEqualTo(Duration.ofMillis(40));
        });
    }

    private static List<RecordedEvent> of(List<RecordedEvent> events, String name) {
        return events.stream()
                .filter(event -> event.getEventType().getName().equals(name))
                .toList();
    }
}
