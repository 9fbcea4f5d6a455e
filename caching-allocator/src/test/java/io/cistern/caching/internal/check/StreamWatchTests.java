package io.cistern.caching.internal.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Streams;
import org.junit.jupiter.api.Test;

/// Handles that come again, as a real driver's do and the simulated one's do not.
class StreamWatchTests {
    private static final long HANDLE = 0x1000;

    private final Streams streams = mock(Streams.class);
    private final StreamWatch watch = new StreamWatch(streams);

    @Test
    void aHandleOfAnotherStreamMeansThatItsPredecessorEnded() {
        when(streams.id(0, HANDLE)).thenReturn(7L, 7L, 8L, 8L);
        assertThat(allocates()).isFalse();
        assertThat(allocates()).isFalse();
        assertThat(allocates()).isTrue();
        assertThat(allocates()).as("told once").isFalse();
    }

    @Test
    void aDeadHandleMeansThatTheStreamEnded() {
        when(streams.id(0, HANDLE)).thenReturn(7L).thenThrow(failure(CudaResult.INVALID_HANDLE));
        allocates();
        assertThat(watch.endedUnannounced(0, HANDLE, true)).isTrue();
    }

    @Test
    void anAnnouncedEndIsNone() {
        when(streams.id(0, HANDLE)).thenReturn(7L, 8L);
        allocates();
        watch.announced(0, HANDLE);
        assertThat(watch.endedUnannounced(0, HANDLE, true)).as("a free later").isFalse();
        assertThat(allocates()).as("a stream of the same handle").isFalse();
    }

    @Test
    void aQuestionThatTheDriverRefusesTellsNothing() {
        when(streams.id(0, HANDLE))
                .thenThrow(failure(CudaResult.UNKNOWN))
                .thenReturn(7L)
                .thenThrow(failure(CudaResult.UNKNOWN))
                .thenReturn(7L, 8L);
        for (int i = 0; i < 4; i++) {
            assertThat(allocates()).isFalse();
        }
        assertThat(allocates()).as("another stream").isTrue();
    }

    @Test
    void aDriverThatNumbersNoStreamsTellsNothing() {
        when(streams.id(0, HANDLE)).thenThrow(failure(CudaResult.NOT_SUPPORTED));
        assertThat(allocates()).isFalse();
        assertThat(allocates()).isFalse();
    }

    @Test
    void defaultStreamsDoNotEnd() {
        for (long stream = 0; stream <= Streams.PER_THREAD_DEFAULT; stream++) {
            assertThat(watch.endedUnannounced(0, stream, false)).isFalse();
            verify(streams, never()).id(0, stream);
        }
    }

    private boolean allocates() {
        return watch.endedUnannounced(0, HANDLE, false);
    }

    private static CudaException failure(CudaResult result) {
        return new CudaException(DriverCall.STREAM_GET_ID, result.code(), "in a test");
    }
}
