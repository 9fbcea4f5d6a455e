package io.cistern.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Which handles name no stream any more, and what a stream waits for whose handle named another one before.
class EndedStreamsTests {
    private static final int DEVICE = 3;

    private final Notes notes = new Notes();
    private final EndedStreams ended = new EndedStreams(DEVICE, notes);

    /// Notes what is asked of it. A fence has the number of its stream; one over all streams is 1000.
    private static final class Notes implements StreamOrder {
        static final long ALL = 1000;

        final List<String> calls = new ArrayList<>();
        final Set<Long> passed = new HashSet<>();
        final Set<Long> captured = new HashSet<>();
        boolean awaitable = true;
        boolean refuses;

        @Override
        public long record(int device, long stream) {
            calls.add("record " + stream + " on " + device);
            return stream;
        }

        @Override
        public long recordAll(int device) {
            calls.add("record all on " + device);
            return ALL;
        }

        @Override
        public boolean recordable(int device, long stream) {
            return !captured.contains(stream);
        }

        @Override
        public boolean awaitable(int device, long fence) {
            return awaitable;
        }

        @Override
        public boolean passed(int device, long fence) {
            return passed.contains(fence);
        }

        @Override
        public void await(int device, long stream, long fence) {
            if (refuses) {
                throw new CudaException(DriverCall.STREAM_WAIT_EVENT, CudaResult.OUT_OF_MEMORY.code(), "");
            }
            calls.add(stream + " awaits " + fence);
        }

        @Override
        public void synchronize(int device, long fence) {
            throw new AssertionError("the host waits");
        }

        @Override
        public void release(int device, long fence) {
            calls.add("release " + fence);
        }
    }

    private List<String> take() {
        List<String> taken = List.copyOf(notes.calls);
        notes.calls.clear();
        return taken;
    }

    @Test
    void handlesAreKnownFromTheirEndUntilTheyComeAgain() {
        long[] handles = {50, 30, 70, -5, 40, 60, 20};
        for (long handle : handles) {
            assertThat(ended.contains(handle)).isFalse();
            ended.closing(handle);
            assertThat(ended.contains(handle)).isTrue();
        }
        assertThat(ended.contains(45)).isFalse();
        for (long handle : new long[] {40, 20, 70, -5, 60, 50, 30}) {
            ended.opened(handle);
            assertThat(ended.contains(handle)).isFalse();
        }
        for (long handle : handles) {
            assertThat(ended.contains(handle)).isFalse();
        }
    }

    @Test
    void theOthersStayWhenOneComesAgain() {
        for (long handle : new long[] {10, 20, 30, 40}) {
            ended.closing(handle);
        }
        ended.opened(20);
        assertThat(ended.contains(10)).isTrue();
        assertThat(ended.contains(20)).isFalse();
        assertThat(ended.contains(30)).isTrue();
        assertThat(ended.contains(40)).isTrue();
    }

    @Test
    void theDefaultStreamsDoNotEnd() {
        for (long stream : new long[] {0, 1, 2}) {
            ended.closing(stream);
            assertThat(ended.contains(stream)).isFalse();
        }
        assertThat(take()).isEmpty();
        ended.closing(3);
        assertThat(ended.contains(3)).isTrue();
    }

    @Test
    void theNextStreamOfAHandleWaitsForTheWorkOfTheFormer() {
        ended.closing(7);
        assertThat(take()).containsExactly("record 7 on 3");
        ended.opened(7);
        assertThat(take()).containsExactly("7 awaits 7", "release 7");
        ended.opened(7);
        assertThat(take()).isEmpty();
    }

    @Test
    void nobodyWaitsForWorkThatIsDone() {
        ended.closing(7);
        notes.passed.add(7L);
        take();
        ended.opened(7);
        assertThat(take()).containsExactly("release 7");
        assertThat(ended.contains(7)).isFalse();
    }

    @Test
    void aFenceOfDoneWorkIsReleasedAtTheNextEnd() {
        ended.closing(7);
        ended.closing(8);
        notes.passed.add(7L);
        take();
        ended.closing(9);
        assertThat(take()).containsExactly("release 7", "record 9 on 3");
        assertThat(ended.contains(7)).isTrue();
        notes.passed.add(0L); // no fence
        ended.opened(7);
        assertThat(take()).containsExactly("release 0");
        assertThat(ended.contains(7)).isFalse();
    }

    /// The stream that ends the second time did some work of which nobody was told.
    @Test
    void aHandleThatEndsTwiceStandsForAllWork() {
        ended.closing(7);
        take();
        ended.closing(7);
        assertThat(take()).containsExactly("record all on 3", "release 7");
        ended.opened(7);
        assertThat(take()).containsExactly("7 awaits 1000", "release 1000");
        assertThat(ended.contains(7)).isFalse();
    }

    @Test
    void aStreamThatCanNotWaitNowCountsAsEnded() {
        ended.closing(7);
        take();
        notes.captured.add(7L);
        ended.opened(7);
        notes.captured.clear();
        notes.awaitable = false;
        ended.opened(7);
        notes.awaitable = true;
        assertThat(take()).isEmpty();
        assertThat(ended.contains(7)).isTrue();
        ended.opened(7);
        assertThat(take()).containsExactly("7 awaits 7", "release 7");
        assertThat(ended.contains(7)).isFalse();
    }

    @Test
    void aStreamWhoseWaitTheDriverRefusesCountsAsEnded() {
        ended.closing(7);
        take();
        notes.refuses = true;
        ended.opened(7);
        assertThat(ended.contains(7)).isTrue();
        assertThat(take()).isEmpty();
    }

    @Test
    void closingReleasesAllFences() {
        ended.closing(7);
        ended.closing(8);
        take();
        ended.close();
        assertThat(take()).containsExactlyInAnyOrder("release 7", "release 8");
        assertThat(ended.contains(7)).isFalse();
        ended.close();
        assertThat(take()).isEmpty();
    }

    @Test
    void anEndAfterTheCloseIsNotRecorded() {
        ended.close();
        ended.closing(7);
        assertThat(notes.calls).isEmpty();
        assertThat(ended.contains(7)).isFalse();
    }
}
