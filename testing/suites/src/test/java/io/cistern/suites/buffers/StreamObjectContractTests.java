package io.cistern.suites.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.CudaStreamPool;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Streams;
import io.cistern.testkit.StreamLatch;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// Streams and events as objects.
abstract class StreamObjectContractTests extends BufferFixture {
    StreamObjectContractTests(BufferContract suite) {
        super(suite);
    }

    @Test
    void aStreamWaitsForAnEvent() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer buffer = buffer(4096);
        latch.hold(stream.handle());
        buffer.fill((byte) 1);
        CudaEvent filled = closedLater(CudaEvent.open(memory, DEVICE)).record(stream);
        other.await(filled);
        buffer.fill((byte) 2, other.handle());
        assertThat(filled.hasPassed()).isFalse();
        assertThat(other.isIdle()).isFalse();
        latch.release();
        other.synchronize();
        assertThat(filled.hasPassed()).isTrue();
        assertThat(contents(buffer)).containsOnly(2);
    }

    @Test
    void aStreamWaitsForAnother() {
        CudaStream other = anotherStream();
        StreamLatch latch = latch();
        DeviceBuffer buffer = buffer(4096);
        latch.hold(stream.handle());
        buffer.fill((byte) 1);
        other.await(stream);
        buffer.fill((byte) 2, other.handle());
        latch.release();
        other.synchronize();
        assertThat(contents(buffer)).containsOnly(2);
    }

    @Test
    void timedEventsTellWhatLiesBetween() {
        DeviceBuffer buffer = buffer(64 * MIB);
        CudaEvent begin = closedLater(CudaEvent.openTimed(memory, DEVICE)).record(stream);
        buffer.fill((byte) 1);
        CudaEvent end = closedLater(CudaEvent.openTimed(memory, DEVICE)).record(stream);
        end.synchronize();
        assertThat(end.millisSince(begin)).isPositive();
    }

    @Test
    void closingAStreamAnnouncesItsEnd() {
        CudaStream ending = CudaStream.open(memory, DEVICE);
        long handle = ending.handle();
        DeviceBuffer.allocate(MIB, ending).close();
        ending.close();
        ending.close();
        assertThatIllegalStateException().isThrownBy(ending::handle);
        assertThatIllegalStateException().isThrownBy(ending::synchronize);
        assertThat(handle).isNotZero();
    }

    @Test
    void aForeignStreamStaysItsOwners() {
        long handle = driver.streams().create(DEVICE);
        CudaStream foreign = CudaStream.ofForeign(memory, DEVICE, handle);
        DeviceBuffer.allocate(MIB, foreign).close();
        foreign.close();
        assertThat(foreign.isIdle()).isTrue();
        foreign.announceEnd();
        assertThatIllegalStateException().isThrownBy(foreign::handle);
        driver.streams().destroy(DEVICE, handle);
        assertThatIllegalStateException().isThrownBy(stream::announceEnd).withMessageContaining("is not foreign");
    }

    @Test
    void theLegacyStreamCanBeNamed() {
        CudaStream legacy = CudaStream.ofForeign(memory, DEVICE, Streams.LEGACY_DEFAULT);
        try (DeviceBuffer buffer = DeviceBuffer.allocate(4096, legacy)) {
            buffer.fill((byte) 8);
            assertThat(contents(buffer)).containsOnly(8);
        }
    }

    @Test
    void aForeignEventStaysItsOwners() {
        long handle = driver.events().create(DEVICE);
        CudaEvent foreign = CudaEvent.ofForeign(memory, DEVICE, handle).record(stream);
        foreign.close();
        stream.synchronize();
        assertThat(foreign.hasPassed()).isTrue();
        driver.events().destroy(DEVICE, handle);
    }

    @Test
    void prioritiesAreClamped() {
        try (CudaStream urgent = CudaStream.open(memory, DEVICE, -100);
                DeviceBuffer buffer = DeviceBuffer.allocate(100, urgent)) {
            buffer.fill((byte) 1);
            assertThat(contents(buffer)).containsOnly(1);
        }
    }

    @Test
    void aPoolHandsOutItsStreamsInTurns() {
        Set<CudaStream> streams = new HashSet<>();
        CudaStreamPool pool = CudaStreamPool.open(memory, DEVICE, 4, -1);
        CudaStream first = pool.next();
        for (int i = 0; i < 11; i++) {
            streams.add(pool.next());
        }
        assertThat(streams).hasSize(4).contains(first);
        pool.close();
        pool.close();
        assertThatIllegalStateException().isThrownBy(pool::next);
        assertThatIllegalStateException().isThrownBy(first::handle);
        assertThatIllegalArgumentException().isThrownBy(() -> CudaStreamPool.open(memory, DEVICE, 0));
    }
}
