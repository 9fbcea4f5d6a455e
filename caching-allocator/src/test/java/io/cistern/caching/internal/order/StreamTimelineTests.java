package io.cistern.caching.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.Streams;
import org.junit.jupiter.api.Test;

/// Whose default stream a timeline is.
class StreamTimelineTests {
    @Test
    void theDefaultStreamOfAThreadThatEndedIsAnOrphan() throws InterruptedException {
        StreamTimeline[] ofThread = new StreamTimeline[1];
        Thread thread = Thread.ofPlatform()
                .start(() -> ofThread[0] = new StreamTimeline(Fences.key(Streams.PER_THREAD_DEFAULT), 1));
        thread.join();
        assertThat(ofThread[0].isOrphan()).isTrue();
        assertThat(new StreamTimeline(Fences.key(Streams.PER_THREAD_DEFAULT), 1).isOrphan())
                .as("of this thread")
                .isFalse();
    }

    @Test
    void aStreamOfNoThreadIsNone() throws InterruptedException {
        StreamTimeline[] timelines = new StreamTimeline[2];
        Thread thread = Thread.ofPlatform().start(() -> {
            timelines[0] = new StreamTimeline(7, 1);
            timelines[1] = new StreamTimeline(Fences.key(Streams.LEGACY_DEFAULT), 1);
        });
        thread.join();
        assertThat(timelines).noneMatch(StreamTimeline::isOrphan);
    }
}
