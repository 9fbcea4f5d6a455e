package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// A callback makes room.
final class RetryAllocatorTests extends AdaptorContract {
    private final List<Integer> attempts = new ArrayList<>();

    @Override
    RetryAllocator over(DeviceAllocator upstream) {
        return new RetryAllocator(upstream, (_, attempt) -> {
            attempts.add(attempt);
            return false;
        });
    }

    @Test
    void itIsAskedAgainUntilThereIsRoom() {
        RetryAllocator retry = new RetryAllocator(upstream.failing(3), (failure, attempt) -> {
            attempts.add(attempt);
            return failure.byteSize() == 100;
        });
        assertThat(retry.allocate(100, DEVICE, STREAM)).isPositive();
        assertThat(attempts).containsExactly(1, 2, 3);
    }

    @Test
    void whenItGivesUpTheLastFailureIsTheCallers() {
        RetryAllocator retry = over(upstream.failing(5));
        assertThatThrownBy(() -> retry.allocate(100, DEVICE, STREAM)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(attempts).containsExactly(1);
    }

    @Test
    void whatTheCallbackFreesIsFound() {
        LimitAllocator limit = new LimitAllocator(upstream, 150);
        long held = limit.allocate(100, DEVICE, STREAM);
        RetryAllocator retry = new RetryAllocator(limit, (_, _) -> {
            limit.free(held, 100, DEVICE, STREAM);
            return true;
        });
        assertThat(retry.allocate(100, DEVICE, STREAM)).isEqualTo(held);
    }

    @Test
    void aCallbackThatThrowsEndsTheAttempt() {
        RetryAllocator retry = new RetryAllocator(upstream.failing(1), (_, _) -> {
            throw new IllegalStateException("no");
        });
        assertThatThrownBy(() -> retry.allocate(100, DEVICE, STREAM))
                .isInstanceOf(IllegalStateException.class)
                .satisfies(e -> assertThat(e.getSuppressed()[0]).isInstanceOf(DeviceOutOfMemoryException.class));
    }
}
