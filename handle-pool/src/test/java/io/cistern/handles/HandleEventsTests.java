package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
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
    void aRecordingTellsOfHandlesAndThreads() throws IOException {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        Path file = folder.resolve("handles.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("cistern.HandleCreated").withoutThreshold();
            recording.enable("cistern.HandleThreadEnded");
            recording.enable("cistern.HandlePoolStatistics").with("period", "endChunk");
            recording.start();
            HandlePoolFixture.onNewThread(() -> pool.handle(0, fixture.stream));
            HandlePoolFixture.await(() -> pool.statistics(0).lifeSpans().count() == 1);
            recording.stop();
            recording.dump(file);
        }
        List<RecordedEvent> events = RecordingFile.readAllEvents(file);
        assertThat(of(events, "cistern.HandleCreated")).singleElement().satisfies(event -> {
            assertThat(event.getString("library")).isEqualTo("checked");
            assertThat(event.getInt("device")).isZero();
        });
        assertThat(of(events, "cistern.HandleThreadEnded"))
                .singleElement()
                .satisfies(event -> assertThat(event.getLong("lifeSpan")).isPositive());
        assertThat(of(events, "cistern.HandlePoolStatistics"))
                .anySatisfy(event -> assertThat(event.getLong("created")).isEqualTo(1));
    }

    private static List<RecordedEvent> of(List<RecordedEvent> events, String name) {
        return events.stream()
                .filter(event -> event.getEventType().getName().equals(name))
                .toList();
    }
}
