package io.cistern.caching.internal.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;

import io.cistern.caching.internal.check.PoisonedRanges.Range;
import io.cistern.spi.EventSink;
import org.junit.jupiter.api.Test;

class PoisonedRangesTests {
    private final EventSink next = mock(EventSink.class);
    private final PoisonedRanges ranges = new PoisonedRanges(next);

    @Test
    void aBlockHasThePartsThatWereFilled() {
        ranges.add(1000, 100);
        ranges.add(1200, 100);
        assertThat(ranges.take(1050, 200)).containsExactly(new Range(1050, 1100), new Range(1200, 1250));
        assertThat(ranges.take(0, 5000)).as("the rest").containsExactly(new Range(1000, 1050), new Range(1250, 1300));
        assertThat(ranges.take(0, 5000)).isEmpty();
    }

    @Test
    void aPartFromTheMiddleLeavesBothEnds() {
        ranges.add(1000, 300);
        assertThat(ranges.take(1100, 100)).containsExactly(new Range(1100, 1200));
        assertThat(ranges.take(1000, 300)).containsExactly(new Range(1000, 1100), new Range(1200, 1300));
    }

    @Test
    void memoryThatGoesOrComesHasNoPattern() {
        ranges.add(1000, 300);
        ranges.segmentReleased(0, 1000, 100);
        ranges.segmentAcquired(0, 1200, 100);
        assertThat(ranges.take(0, 5000)).containsExactly(new Range(1100, 1200));
        verify(next).segmentReleased(0, 1000, 100);
        verify(next).segmentAcquired(0, 1200, 100);
    }
}
