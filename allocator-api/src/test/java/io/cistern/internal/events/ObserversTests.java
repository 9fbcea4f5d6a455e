package io.cistern.internal.events;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.diagnostics.MemoryEvent;
import io.cistern.internal.events.Observers.Observer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which observers are told of what, and that an event that can't be made is counted.
final class ObserversTests {
    private static final Events.Factory<String> IN_A_FULL_HEAP = (_, _, _, _, _, _) -> {
        throw new OutOfMemoryError("as in a full Java heap");
    };

    private final Observers observers = new Observers();
    private final List<MemoryEvent> told = new ArrayList<>();
    private final Observer observer = new Observer(told::add, true);

    @Test
    void whatIsPostedIsToldInItsOrderBeforeWhatComesLater() {
        observers.add(observer);
        observers.post(Events.SEGMENT_ACQUIRED, "caching", 0, 256, 512, 0);
        observers.post(Events.SEGMENT_RELEASED, "caching", 0, 256, 512, 0);
        assertThat(told).isEmpty();
        observers.tell(Events.ANNOTATED, "step");
        assertThat(told)
                .containsExactly(
                        new MemoryEvent.SegmentAcquired("caching", 0, 256, 512),
                        new MemoryEvent.SegmentReleased("caching", 0, 256, 512),
                        new MemoryEvent.Annotated("step"));
        observers.post(Events.SCOPE_LEFT, "caching", -1, 0, 0, 0);
        observers.deliver();
        observers.deliver();
        assertThat(told).hasSize(4);
    }

    @Test
    void anEventThatCannotBeMadeIsLostAndCounted() {
        observers.add(observer);
        observers.post(Events.SCOPE_ENTERED, "caching", -1, 0, 0, 0);
        observers.post(IN_A_FULL_HEAP, "caching", 0, 256, 512, 0);
        observers.tell(IN_A_FULL_HEAP, "caching");
        assertThat(observers.lost()).isEqualTo(2);
        assertThat(told).as("what was posted before").hasSize(1);
        observers.tell(Events.ANNOTATED, "later");
        assertThat(told).hasSize(2);
        assertThat(observers.lost()).isEqualTo(2);
    }

    @Test
    void anObserverThatFailsMissesThatEventAlone() {
        observers.add(new Observer(
                _ -> {
                    throw new OutOfMemoryError("as in a full Java heap");
                },
                true));
        observers.add(observer);
        observers.tell(Events.ANNOTATED, "step");
        observers.tell(Events.ANNOTATED, "step");
        assertThat(told).hasSize(2);
        assertThat(observers.lost()).as("the others were told").isZero();
    }

    @Test
    void eachObserverIsRemovedOnce() {
        Observer ofRareEvents = new Observer(told::add, false);
        observers.add(observer);
        observers.add(ofRareEvents);
        observers.remove(observer);
        observers.remove(observer);
        assertThat(observers.any()).isTrue();
        assertThat(observers.anyOfBlocks()).isFalse();
        observers.tell(Events.ANNOTATED, "step");
        assertThat(told).hasSize(1);
        observers.remove(ofRareEvents);
        assertThat(observers.any()).isFalse();
    }

    @Test
    void whatAnObserverDoesIsToldToNobody() {
        observers.add(observer);
        observers.add(new Observer(
                _ -> {
                    observers.tell(Events.ANNOTATED, "inside");
                    observers.post(Events.SCOPE_ENTERED, "caching", -1, 0, 0, 0);
                },
                true));
        observers.tell(Events.ANNOTATED, "step");
        observers.deliver();
        assertThat(told).containsExactly(new MemoryEvent.Annotated("step"));
    }
}
