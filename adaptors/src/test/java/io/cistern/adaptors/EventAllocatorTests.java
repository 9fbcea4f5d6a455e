package io.cistern.adaptors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Registration;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorAdaptor;
import io.cistern.spi.DeviceAllocator;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The listener hears of everything, and thresholds are crossed once in each direction.
final class EventAllocatorTests extends AdaptorContract {
    private final List<String> heard = Collections.synchronizedList(new ArrayList<>());

    private final AllocationListener listener = new AllocationListener() {
        @Override
        public void allocated(long address, long byteSize, int device, long stream) {
            heard.add("allocated " + byteSize);
        }

        @Override
        public void failed(DeviceOutOfMemoryException failure, long stream) {
            heard.add("failed " + failure.byteSize());
        }

        @Override
        public void freed(long address, long byteSize, int device, long stream) {
            heard.add("freed " + byteSize);
        }

        @Override
        public void onThresholdExceeded(int device, long thresholdBytes, long liveBytes) {
            heard.add("rose " + thresholdBytes + " at " + liveBytes);
        }

        @Override
        public void onThresholdCleared(int device, long thresholdBytes, long liveBytes) {
            heard.add("fell " + thresholdBytes + " at " + liveBytes);
        }
    };

    @Override
    EventAllocator over(DeviceAllocator upstream) {
        return new EventAllocator(upstream, listener, 150, 250);
    }

    @Override
    long believedLive(AllocatorAdaptor adaptor) {
        return heard.stream().filter(event -> event.startsWith("allocated")).count()
                - heard.stream().filter(event -> event.startsWith("freed")).count();
    }

    @Test
    void aListenerHearsFromItsRegistrationOnUntilThatIsClosed() {
        EventAllocator events = over(upstream);
        List<Long> told = new ArrayList<>();
        long before = events.allocate(10, DEVICE, STREAM);
        Registration registration = events.addListener(new AllocationListener() {
            @Override
            public void freed(long address, long byteSize, int device, long stream) {
                told.add(byteSize);
            }
        });
        events.free(before, 10, DEVICE, STREAM);
        registration.close();
        registration.close();
        events.free(events.allocate(20, DEVICE, STREAM), 20, DEVICE, STREAM);
        assertThat(told).containsExactly(10L);
        assertThat(heard).containsExactly("allocated 10", "freed 10", "allocated 20", "freed 20");
    }

    @Test
    void thresholdsAreCrossedInBothDirections() {
        EventAllocator events = over(upstream);
        long first = events.allocate(100, DEVICE, STREAM);
        long second = events.allocate(50, DEVICE, STREAM);
        long third = events.allocate(100, 0, STREAM);
        long fourth = events.allocate(200, DEVICE, STREAM);
        events.free(fourth, 200, DEVICE, STREAM);
        events.free(third, 100, 0, STREAM);
        events.free(second, 50, DEVICE, STREAM);
        events.free(first, 100, DEVICE, STREAM);
        assertThat(heard)
                .containsExactly(
                        "allocated 100",
                        "allocated 50",
                        "rose 150 at 150",
                        "allocated 100",
                        "allocated 200",
                        "rose 250 at 350",
                        "freed 200",
                        "fell 250 at 150",
                        "freed 100",
                        "freed 50",
                        "fell 150 at 100",
                        "freed 100");
    }

    @Test
    void failuresAreHeardAndNotCounted() {
        EventAllocator events = over(upstream.failing(1));
        assertThatThrownBy(() -> events.allocate(1000, DEVICE, STREAM)).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(heard).containsExactly("failed 1000");
    }

    @Test
    void aListenerThatThrowsDoesNotDisturb() {
        assertThat(throwing(new IllegalStateException("a mistake of the listener's, logged on purpose"))
                        .allocate(100, DEVICE, STREAM))
                .isPositive();
    }

    @Test
    void anErrorOfAListenerDoesNotDisturb() {
        assertThat(throwing(new AssertionError("an error of the listener's, logged on purpose"))
                        .allocate(100, DEVICE, STREAM))
                .isPositive();
    }

    private EventAllocator throwing(Throwable failure) {
        return new EventAllocator(
                upstream,
                new AllocationListener() {
                    @Override
                    public void allocated(long address, long byteSize, int device, long stream) {
                        throw failure instanceof Error error ? rethrow(error) : (RuntimeException) failure;
                    }
                },
                1);
    }

    private static RuntimeException rethrow(Error error) {
        throw error;
    }
}
