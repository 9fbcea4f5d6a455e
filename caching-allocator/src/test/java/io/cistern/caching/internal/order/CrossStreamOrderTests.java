package io.cistern.caching.internal.order;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.cistern.caching.TestOrder;
import io.cistern.caching.internal.base.CacheEvent;
import io.cistern.caching.internal.base.DeviceCounters;
import io.cistern.caching.options.PageReuse;
import io.cistern.cuda.CudaDriver;
import io.cistern.spi.EventSink;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Which waits order a stream after another, which questions are asked of the driver, and what is remembered of both.
class CrossStreamOrderTests {
    private final DeviceCounters counters = new DeviceCounters(0, mock(EventSink.class));
    private final TestOrder streams = new TestOrder();
    private final Fences fences = new Fences(0, mock(CudaDriver.class), streams, counters);
    private final AtomicLong clock = new AtomicLong();
    private final CrossStreamOrder order = new CrossStreamOrder(fences, clock, PageReuse.WAIT, counters);
    private final StreamTimeline lasting = begin(1);

    @AfterEach
    void nothingIsLeft() {
        order.close();
        streams.busy.clear();
        fences.releasePassed();
        assertThat(streams.openFences()).isZero();
    }

    @Test
    void waitsForStreamsThatAreNoMoreAreForgotten() {
        List<StreamTimeline> ended = new ArrayList<>(); // so that it is not the garbage collector who forgets them
        for (long key = 2; key < 100; key++) {
            StreamTimeline next = begin(key);
            order.precede(lasting, next, clock.get());
            order.precede(next, lasting, clock.get());
            order.closing(next, fences.end(key));
            order.forget(next);
            ended.add(next);
        }
        assertThat(lasting.awaited).hasSizeLessThan(4);
        assertThat(lasting.awaitedByFence).hasSizeLessThan(4);
        assertThat(ended.getLast().awaitedByFence).hasSizeLessThan(4);
    }

    @Test
    void aWaitForWorkThatGoesOnIsPassedOnHoweverManyFencesCome() {
        StreamTimeline first = begin(2);
        StreamTimeline last = begin(3);
        long freedAt = clock.get();
        order.precede(lasting, first, freedAt);
        for (int i = 0; i < 4; i++) {
            order.precede(last, lasting, clock.get());
        }
        assertThat(order.coveredTime(last, first)).isGreaterThanOrEqualTo(freedAt);
        assertThat(streams.waits).doesNotContain("2→3");
    }

    @Test
    void aStreamThatIsSaidToHaveFinishedNeedsNoWait() {
        StreamTimeline giver = begin(2);
        streams.independent.add(2L);
        long freedAt = clock.get();
        assertThat(order.wouldWait(lasting, giver, freedAt)).isTrue();
        assertThat(order.isPassed(giver, freedAt)).isFalse();
        streams.busy.remove(2L);
        assertThat(order.wouldWait(lasting, giver, freedAt)).isFalse();
        assertThat(order.isPassed(giver, freedAt)).isTrue();
        order.precede(lasting, giver, freedAt);
        assertThat(streams.waits).isEmpty();
        assertThat(streams.recordedOn).isEmpty();
        int asked = streams.questions;
        assertThat(order.wouldWait(lasting, giver, freedAt)).isFalse();
        assertThat(streams.questions).as("it is known").isEqualTo(asked);
    }

    @Test
    void ofAStreamThatWaitsForOthersOnlyAFenceTells() {
        StreamTimeline giver = begin(2);
        long freedAt = clock.get();
        assertThat(order.wouldWait(lasting, giver, freedAt)).isTrue();
        assertThat(streams.recordedOn).containsExactly(2L);
        streams.busy.remove(2L);
        assertThat(order.wouldWait(lasting, giver, freedAt)).isFalse();
        assertThat(streams.recordedOn).hasSize(1);
    }

    @Test
    void ofAStreamThatIsCapturedNothingIsRecordedAndNothingIsKnown() {
        StreamTimeline giver = begin(2);
        streams.captured.add(2L);
        assertThat(order.wouldWait(lasting, giver, clock.get())).isTrue();
        order.ask(giver, clock.get());
        assertThat(streams.recordedOn).isEmpty();
        assertThat(order.newestTakeable(lasting, giver, true)).isLessThan(clock.get());
        streams.captured.clear();
        assertThat(order.newestTakeable(lasting, giver, true)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void aStreamThatEndedWouldBeWaitedForUntilItsEndHasPassed() {
        StreamTimeline ended = begin(2);
        order.closing(ended, fences.end(2));
        assertThat(order.wouldWait(lasting, ended, clock.get())).isTrue();
        assertThat(order.hasFinished(ended)).isFalse();
        streams.busy.remove(2L);
        assertThat(order.wouldWait(lasting, ended, clock.get())).isFalse();
        assertThat(order.hasFinished(ended)).isTrue();
    }

    @Test
    void afterAStreamHadWorkLeftTheNextQuestionsAreSkipped() {
        StreamTimeline giver = begin(2);
        streams.independent.add(2L);
        for (int taker = 1; taker <= 18; taker++) {
            order.precede(begin(100 + taker), giver, clock.getAndIncrement());
            assertThat(streams.questions).as("taker %d", taker).isEqualTo(taker < 18 ? 1 : 2);
        }
        assertThat(counters.counted(CacheEvent.STREAM_WAIT)).isEqualTo(18);
    }

    @Test
    void oneFenceServesAllTakersOfWhatWasFreedBefore() {
        StreamTimeline giver = begin(2);
        long freedAt = clock.getAndIncrement();
        for (int taker = 0; taker < 5; taker++) {
            StreamTimeline each = begin(100 + taker);
            order.precede(each, giver, freedAt);
            order.precede(each, giver, freedAt);
        }
        assertThat(streams.recordedOn).containsExactly(2L);
        assertThat(streams.waits).containsExactly("2→100", "2→101", "2→102", "2→103", "2→104");
        order.precede(lasting, giver, clock.getAndIncrement());
        assertThat(streams.recordedOn).as("freed later").hasSize(2);
    }

    @Test
    void aFenceThatNoStreamMayWaitForIsRecordedAgain() {
        StreamTimeline giver = begin(2);
        long freedAt = clock.getAndIncrement();
        order.precede(begin(3), giver, freedAt);
        streams.captured.add(2L);
        order.precede(lasting, giver, freedAt);
        assertThat(streams.recordedOn).as("in the stream's place all streams").containsExactly(2L, TestOrder.ALL);
        assertThat(streams.waits).contains(TestOrder.ALL + "→1");
    }

    @Test
    void aQuestionLeavesAFenceThatTellsLater() {
        StreamTimeline giver = begin(2);
        long freedAt = clock.getAndIncrement();
        order.ask(giver, freedAt);
        order.ask(giver, freedAt);
        assertThat(streams.recordedOn).as("of work that goes on, one").containsExactly(2L);
        assertThat(order.isPassed(giver, freedAt)).isFalse();
        streams.busy.remove(2L);
        order.ask(giver, freedAt);
        assertThat(order.isPassed(giver, freedAt)).isTrue();
        int asked = streams.questions;
        order.ask(giver, freedAt);
        assertThat(streams.questions).as("nothing is asked twice").isEqualTo(asked);
        assertThat(streams.recordedOn).hasSize(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatAStreamWaitedForHasPassedOnceItHas(boolean isIndependent) {
        StreamTimeline first = begin(2);
        StreamTimeline second = begin(3);
        long freedAt = clock.getAndIncrement();
        order.precede(second, first, freedAt);
        if (isIndependent) {
            streams.independent.add(3L);
        } else {
            order.ask(second, clock.get());
        }
        assertThat(order.coveredTime(lasting, first)).isLessThan(freedAt);
        streams.busy.remove(3L);
        order.ask(second, clock.get());
        assertThat(order.isPassed(first, freedAt)).isTrue();
        order.precede(lasting, first, freedAt);
        assertThat(streams.waits).containsExactly("2→3");
    }

    @Test
    void aWaitForTheEndOfAStreamIsOneForWhatThatWaitedFor() {
        StreamTimeline first = begin(2);
        StreamTimeline ended = begin(3);
        long freedAt = clock.getAndIncrement();
        order.precede(ended, first, freedAt);
        order.closing(ended, fences.end(3));
        assertThat(order.follow(lasting, ended)).isTrue();
        order.precede(lasting, first, freedAt);
        assertThat(streams.waits).containsExactly("2→3", "3→1");
        assertThat(ended.awaited).isEmpty();
    }

    @Test
    void aStreamThatIsAboutToEndIsNeitherFinishedNorFollowed() {
        StreamTimeline ending = begin(2);
        assertThat(order.hasFinished(ending)).as("no fence yet").isFalse();
        order.ask(ending, clock.getAndIncrement());
        assertThat(order.follow(lasting, ending)).as("an older fence").isFalse();
        order.closing(ending, fences.end(2));
        assertThat(order.follow(lasting, ending)).isTrue();
    }

    @Test
    void aStreamThatIsGoneAtItsEndKeepsNoFence() {
        StreamTimeline gone = begin(2);
        long end = fences.end(2);
        order.forget(gone);
        order.closing(gone, end);
        assertThat(order.hasFinished(gone)).as("asks nobody").isTrue();
    }

    @Test
    void ifMemoryMayNotWaitItMovesOnceItsWorkHasPassed() {
        CrossStreamOrder patient = new CrossStreamOrder(fences, clock, PageReuse.NEVER, counters);
        StreamTimeline giver = begin(2);
        long freedAt = clock.getAndIncrement();
        patient.ask(giver, freedAt);
        StreamTimeline ended = begin(3);
        patient.closing(ended, fences.end(3));
        assertThat(patient.follow(lasting, ended)).isFalse();
        streams.busy.remove(2L);
        assertThat(patient.newestTakeable(lasting, giver, true))
                .as("not asked yet")
                .isLessThan(freedAt);
        patient.poll();
        assertThat(patient.newestTakeable(lasting, giver, true)).isGreaterThanOrEqualTo(freedAt);
        assertThat(patient.newestTakeable(giver, giver, false)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void ofEndedStreamsThatGoOnFewAreAskedAtATime() {
        CrossStreamOrder patient = new CrossStreamOrder(fences, clock, PageReuse.NEVER, counters);
        List<StreamTimeline> ended = new ArrayList<>();
        for (long key = 2; key < 20; key++) {
            ended.add(begin(key));
            patient.closing(ended.getLast(), fences.end(key));
        }
        StreamTimeline goesOn = begin(20);
        patient.ask(goesOn, clock.getAndIncrement());
        streams.busy.remove(20L);
        int asked = streams.questions;
        patient.poll();
        assertThat(streams.questions - asked).isEqualTo(Fences.MAX_LATE + 1);
        assertThat(patient.newestTakeable(lasting, goesOn, false))
                .as("asked nevertheless")
                .isPositive();
        for (int i = 0; i < 3; i++) {
            streams.busy.remove(ended.get(i).key);
        }
        patient.poll();
        assertThat(ended.subList(0, 3)).allMatch(each -> each.passedTime == Long.MAX_VALUE);
        ended.forEach(patient::forget);
        patient.close();
    }

    @Test
    void aPolicyThatWaitsAsksNothingBeforehand() {
        StreamTimeline giver = begin(2);
        order.precede(lasting, giver, clock.getAndIncrement());
        int asked = streams.questions;
        order.poll();
        assertThat(streams.questions).isEqualTo(asked);
    }

    private StreamTimeline begin(long key) {
        streams.busy.add(key);
        return new StreamTimeline(key, clock.get());
    }

    @Test
    void aStreamEndsOnlyAfterAQuestionAboutIt() throws InterruptedException {
        StreamTimeline giver = begin(2);
        Thread ending = Thread.ofPlatform().unstarted(() -> order.closing(giver, fences.end(2)));
        boolean[] endedMeanwhile = {false};
        streams.asking = _ -> {
            streams.asking = _ -> {};
            ending.start();
            endedMeanwhile[0] = hasEnded(ending);
        };
        long _ = order.newestTakeable(lasting, giver, true);
        ending.join();
        assertThat(endedMeanwhile[0]).isFalse();
    }

    private static boolean hasEnded(Thread thread) {
        try {
            return thread.join(Duration.ofMillis(100));
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
    }
}
