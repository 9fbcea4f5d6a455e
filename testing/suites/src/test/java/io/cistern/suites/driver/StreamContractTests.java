package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.Streams;
import io.cistern.testkit.StreamLatch;
import org.junit.jupiter.api.Test;

/// Streams run their own work in order and independently, and wait for each other only when told to.
abstract class StreamContractTests extends DriverContractTests {
    StreamContractTests(DriverContract suite) {
        super(suite);
    }

    private boolean idle(long stream) {
        return driver.streams().isIdle(DEVICE, stream);
    }

    @Test
    void aNewStreamIsIdle() {
        long stream = stream();
        assertThat(stream).isNotZero();
        assertThat(idle(stream)).isTrue();
    }

    @Test
    void onlyStreamsThatWereMadeSoIgnoreTheLegacyDefaultStream() {
        assertThat(driver.streams().isBlocking(DEVICE, stream())).isFalse();
        assertThat(driver.streams().isBlocking(DEVICE, 0)).isTrue();
        long blocking = driver.streams().create(DEVICE, false, 0);
        assertThat(driver.streams().isBlocking(DEVICE, blocking)).isTrue();
        driver.streams().destroy(DEVICE, blocking);
    }

    @Test
    void aHeldStreamIsBusyUntilItIsLetGo() {
        StreamLatch latch = latch();
        long stream = stream();
        latch.hold(stream);
        assertThat(idle(stream)).isFalse();
        latch.release();
        synchronize(stream);
        assertThat(idle(stream)).isTrue();
    }

    @Test
    void otherStreamsRunOnBesideAHeldOne() {
        StreamLatch latch = latch();
        long held = stream();
        long other = stream();
        long address = linear(4096);
        latch.hold(held);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 4096, other);
        synchronize(other);
        assertThat(idle(other)).isTrue();
        assertThat(idle(held)).isFalse();
    }

    @Test
    void aStreamWaitsForAnEventOfAnother() {
        StreamLatch latch = latch();
        long first = stream();
        long second = stream();
        latch.hold(first);
        driver.streams().await(DEVICE, second, eventOn(first));
        assertThat(idle(second)).isFalse();
        latch.release();
        synchronize(second);
        assertThat(idle(first)).isTrue();
    }

    @Test
    void workAfterAWaitSeesWhatWasWrittenBeforeTheEvent() {
        StreamLatch latch = latch();
        long first = stream();
        long second = stream();
        long address = linear(4096);
        HostBytes bytes = host(4096);
        latch.hold(first);
        driver.copies().fillBytes(DEVICE, address, (byte) 8, 4096, first);
        driver.streams().await(DEVICE, second, eventOn(first));
        driver.copies().toHost(DEVICE, bytes.segment(), address, 4096, second);
        latch.release();
        synchronize(second);
        assertThat(bytes.holdsOnly(8)).isTrue();
    }

    @Test
    void anEventNeverRecordedIsNoWait() {
        long stream = stream();
        driver.streams().await(DEVICE, stream, event());
        synchronize(stream);
        assertThat(idle(stream)).isTrue();
    }

    @Test
    void aWaitIsForTheMarkOfItsTime() {
        StreamLatch latch = latch();
        long first = stream();
        long second = stream();
        long event = eventOn(first);
        driver.streams().await(DEVICE, second, event);
        latch.hold(first);
        driver.events().record(DEVICE, event, first);
        synchronize(second);
        assertThat(idle(second)).isTrue();
        assertThat(idle(first)).isFalse();
    }

    @Test
    void aWaitOutlivesItsEvent() {
        StreamLatch latch = latch();
        long first = stream();
        long second = stream();
        long event = driver.events().create(DEVICE);
        latch.hold(first);
        driver.events().record(DEVICE, event, first);
        driver.streams().await(DEVICE, second, event);
        driver.events().destroy(DEVICE, event);
        assertThat(idle(second)).isFalse();
        latch.release();
        synchronize(second);
        assertThat(idle(second)).isTrue();
    }

    @Test
    void theWorkOfADestroyedStreamIsStillDone() {
        StreamLatch latch = latch();
        long stream = driver.streams().create(DEVICE);
        HostBytes bytes = host(4096);
        long address = linear(4096);
        driver.copies().fillBytes(DEVICE, address, (byte) 6, 4096, stream);
        latch.hold(stream);
        driver.copies().toHost(DEVICE, bytes.segment(), address, 4096, stream);
        driver.streams().destroy(DEVICE, stream);
        latch.release();
        driver.devices().synchronize(DEVICE);
        assertThat(bytes.holdsOnly(6)).isTrue();
    }

    @Test
    void noTwoStreamsEverHaveTheSameId() {
        long first = driver.streams().create(DEVICE);
        long firstId = driver.streams().id(DEVICE, first);
        driver.streams().destroy(DEVICE, first);
        long second = stream();
        long third = stream();
        assertThat(driver.streams().id(DEVICE, second)).isNotEqualTo(firstId);
        assertThat(driver.streams().id(DEVICE, third))
                .isNotEqualTo(driver.streams().id(DEVICE, second));
        assertThat(driver.streams().id(DEVICE, second))
                .isEqualTo(driver.streams().id(DEVICE, second));
    }

    @Test
    void prioritiesOutsideTheRangeAreClamped() {
        for (int priority : new int[] {Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE}) {
            long stream = driver.streams().create(DEVICE, true, priority);
            assertThat(idle(stream)).isTrue();
            driver.streams().destroy(DEVICE, stream);
        }
    }

    @Test
    void theLegacyDefaultStreamWaitsForBlockingStreamsOnly() {
        StreamLatch latch = latch();
        long address = linear(4096);
        long nonBlocking = stream();
        long blocking = driver.streams().create(DEVICE, false, 0);
        afterwards(() -> driver.streams().destroy(DEVICE, blocking));
        StreamLatch other = latch();
        other.hold(nonBlocking);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 4096, Streams.LEGACY_DEFAULT);
        synchronize(Streams.LEGACY_DEFAULT);
        latch.hold(blocking);
        driver.copies().fillBytes(DEVICE, address, (byte) 2, 4096, Streams.LEGACY_DEFAULT);
        assertThat(idle(Streams.LEGACY_DEFAULT)).isFalse();
        latch.release();
        synchronize(Streams.LEGACY_DEFAULT);
        assertThat(idle(blocking)).isTrue();
        assertThat(idle(nonBlocking)).isFalse();
    }

    @Test
    void blockingStreamsWaitForTheLegacyDefaultStream() {
        StreamLatch latch = latch();
        long address = linear(4096);
        long nonBlocking = stream();
        long blocking = driver.streams().create(DEVICE, false, 0);
        afterwards(() -> driver.streams().destroy(DEVICE, blocking));
        latch.hold(Streams.LEGACY_DEFAULT);
        driver.copies().fillBytes(DEVICE, address, (byte) 1, 4096, blocking);
        driver.copies().fillBytes(DEVICE, address, (byte) 2, 4096, nonBlocking);
        synchronize(nonBlocking);
        assertThat(idle(blocking)).isFalse();
        latch.release();
        synchronize(blocking);
        assertThat(host(4096).readFrom(address, blocking).holdsOnly(1)).isTrue();
    }

    @Test
    void handleZeroIsTheLegacyDefaultStream() {
        StreamLatch latch = latch();
        latch.hold(0);
        assertThat(idle(Streams.LEGACY_DEFAULT)).isFalse();
        assertThat(idle(0)).isFalse();
    }

    @Test
    void thePerThreadDefaultStreamDoesWork() {
        long address = linear(4096);
        driver.copies().fillBytes(DEVICE, address, (byte) 3, 4096, Streams.PER_THREAD_DEFAULT);
        assertThat(host(4096).readFrom(address, Streams.PER_THREAD_DEFAULT).holdsOnly(3))
                .isTrue();
    }
}
