package io.cistern.onnxruntime;

import static io.cistern.onnxruntime.OnnxFixture.DEVICE;
import static io.cistern.onnxruntime.OnnxFixture.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.Allocator;
import io.cistern.MemoryLimit;
import io.cistern.MemoryPool;
import io.cistern.Registration;
import io.cistern.Scope;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.diagnostics.MemoryEvent;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.spi.TrimMode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Figures, limits and ends of sessions.
class SessionMemoryTests {
    @TempDir
    private Path folder;

    private OnnxFixture onnx;

    @BeforeEach
    void open() {
        onnx = new OnnxFixture(folder, 64 * MIB, "caching");
    }

    @AfterEach
    void close() {
        onnx.close();
    }

    private static long handle(SessionMemory session) {
        return session.stream().orElseThrow().handle();
    }

    @Test
    void aBlockBelongsToTheSessionOfItsStream() {
        SessionMemory one = onnx.onnx.open(SessionSettings.named("one"));
        SessionMemory two = onnx.onnx.open(SessionSettings.named("two"));
        long a = onnx.fake.allocateOnStream(1000, handle(one));
        long b = onnx.fake.allocateOnStream(500, handle(two));
        onnx.fake.free(a);
        assertThat(one.figures()).isEqualTo(new SessionFigures(0, 1000, 0, 1, 0, 0));
        assertThat(two.figures()).isEqualTo(new SessionFigures(500, 500, 1, 1, 0, 0));
        assertThat(onnx.onnx.figures()).isEqualTo(new SessionFigures(500, 1500, 1, 2, 0, 0));
        assertThat(onnx.onnx.sessions()).containsExactly(one, two);
        onnx.fake.free(b);
    }

    @Test
    void weightsBelongToTheSessionThatIsBeingMade() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s"));
        long weight = session.call(() -> onnx.fake.reserve(2000));
        long other = onnx.fake.reserve(3000);
        assertThat(session.figures()).isEqualTo(new SessionFigures(2000, 2000, 1, 1, 1, 0));
        assertThat(onnx.onnx.figures().usedBytes()).isEqualTo(5000);
        onnx.fake.free(weight);
        onnx.fake.free(other);
    }

    @Test
    void aForeignStreamsBlocksBelongToTheSessionOfTheRegion() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s").streams(SessionStreams.ONE_FOR_EACH_REQUEST));
        assertThat(session.stream()).isEmpty();
        long stream = onnx.foreignStream();
        session.call(() -> {
            onnx.fake.free(onnx.fake.allocateOnStream(700, stream));
            return 0;
        });
        onnx.fake.free(onnx.fake.allocateOnStream(900, stream));
        assertThat(session.figures()).isEqualTo(new SessionFigures(0, 700, 0, 1, 0, 0));
    }

    @Test
    void aLimitRefusesTheSessionAndNobodyElse() {
        MemoryLimit limit = MemoryLimit.of("encoder", 10_000);
        SessionMemory limited = onnx.onnx.open(SessionSettings.named("encoder").limit(limit));
        SessionMemory free = onnx.onnx.open(SessionSettings.named("free"));
        long block = onnx.fake.allocateOnStream(8000, handle(limited));
        assertThat(onnx.fake.allocateOnStream(8000, handle(limited))).isZero();
        assertThat(limited.figures().refused()).isOne();
        assertThat(onnx.onnx.lastFailure().orElseThrow())
                .isInstanceOf(DeviceOutOfMemoryException.class)
                .hasMessageContaining("encoder");
        onnx.fake.free(onnx.fake.allocateOnStream(8000, handle(free)));
        onnx.fake.free(block);
        assertThat(limit.usedBytes()).isZero();
        onnx.fake.free(onnx.fake.allocateOnStream(8000, handle(limited)));
    }

    @Test
    void aPoolOfTheCallingThreadServesARequest() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s"));
        try (MemoryPool pool = onnx.memory.pools().open("caching")) {
            long block;
            try (Scope _ = pool.enter()) {
                block = onnx.fake.allocateOnStream(1000, handle(session));
            }
            assertThat(pool.liveBlockCount()).isOne();
            onnx.fake.free(block);
            assertThat(pool.liveBlockCount()).isZero();
        }
    }

    @Test
    void aPoolOfTheCallingThreadServesALimitedSessionToo() {
        MemoryLimit limit = MemoryLimit.of("encoder", 10_000);
        SessionMemory session = onnx.onnx.open(SessionSettings.named("encoder").limit(limit));
        try (MemoryPool pool = onnx.memory.pools().open("caching");
                Scope _ = pool.enter()) {
            long block = onnx.fake.allocateOnStream(8000, handle(session));
            assertThat(pool.liveBlockCount()).isOne();
            assertThat(limit.usedBytes()).isEqualTo(8000);
            onnx.fake.free(block);
        }
    }

    /// How a session asks for a block.
    private enum Way {
        ON_ITS_STREAM,
        ON_A_FOREIGN_STREAM,
        ON_NO_STREAM
    }

    @ParameterizedTest
    @EnumSource
    void aSwapDuringAnAllocationRefusesNoLimitedSession(Way way) {
        MemoryLimit limit = MemoryLimit.of("encoder", 10_000);
        SessionMemory session = onnx.onnx.open(SessionSettings.named("encoder").limit(limit));
        AtomicBoolean isSwapped = new AtomicBoolean();
        try (Registration _ = onnx.memory.listeners().onRareEvent(event -> {
            if (event instanceof MemoryEvent.ScopeEntered && isSwapped.compareAndSet(false, true)) {
                onnx.memory.setCurrent("async");
            }
        })) {
            long block = session.call(() -> switch (way) {
                case ON_ITS_STREAM -> onnx.fake.allocateOnStream(8000, handle(session));
                case ON_A_FOREIGN_STREAM -> onnx.fake.allocateOnStream(8000, onnx.foreignStream());
                case ON_NO_STREAM -> onnx.fake.reserve(8000);
            });
            assertThat(isSwapped).isTrue();
            assertThat(onnx.onnx.lastFailure()).isEmpty();
            assertThat(limit.usedBytes()).isEqualTo(8000);
            onnx.fake.free(block);
        }
        assertThat(limit.usedBytes()).isZero();
    }

    @Test
    void aLimitedSessionInAClosedPoolIsRefused() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s").limit(MemoryLimit.of("encoder", 10_000)));
        Allocator closed = onnx.memory.open("caching");
        try (Scope _ = closed.enter()) {
            closed.close();
            assertThat(onnx.fake.allocateOnStream(1000, handle(session))).isZero();
        }
        assertThat(onnx.onnx.lastFailure().orElseThrow()).hasMessageContaining("is closed");
    }

    @Test
    void idleMemoryGoesBackWhileSessionsLive() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s"));
        long kept = onnx.fake.allocateOnStream(1000, handle(session));
        onnx.fake.free(onnx.fake.allocateOnStream(32 * MIB, handle(session)));
        long reserved = onnx.memory.statistics(DEVICE).reservedBytes().orElseThrow();
        assertThat(onnx.fake.shrink()).isZero();
        assertThat(onnx.memory.statistics(DEVICE).reservedBytes().orElseThrow()).isLessThan(reserved);
        onnx.fake.free(onnx.fake.allocateOnStream(32 * MIB, handle(session)));
        assertThat(onnx.onnx.trim(TrimMode.SYNCHRONIZE).returnedBytes()).isGreaterThanOrEqualTo(30 * MIB);
        onnx.fake.free(kept);
    }

    @Test
    void onnxRuntimeIsToldTheFigures() {
        long block = onnx.fake.reserve(1000);
        assertThat(onnx.fake.statistic("InUse")).isEqualTo(1000);
        assertThat(onnx.fake.statistic("MaxInUse")).isEqualTo(1000);
        assertThat(onnx.fake.statistic("NumAllocs")).isEqualTo(1);
        assertThat(onnx.fake.statistic("Limit")).isEqualTo(-1);
        assertThat(onnx.fake.statistic("TotalAllocated")).isGreaterThanOrEqualTo(1000);
        onnx.fake.free(block);
    }

    @Test
    void aSessionThatOutlivesTheMemoryIsRefusedAndFreesItsBlocks() {
        SessionMemory session = onnx.onnx.open(SessionSettings.named("s"));
        long stream = handle(session);
        long weight = onnx.fake.reserve(1000);
        long block = onnx.fake.allocateOnStream(1000, stream);
        onnx.onnx.close();
        assertThat(onnx.fake.allocateOnStream(1000, stream)).isZero();
        assertThat(onnx.onnx.lastFailure().orElseThrow()).hasMessageContaining("after its OnnxMemory was closed");
        onnx.fake.free(weight);
        onnx.fake.free(block);
        assertThat(onnx.onnx.figures().liveBlocks()).isZero();
        assertThat(onnx.memory.liveBlocks()).isEmpty();
    }

    @Test
    void aSessionThatOutlivesTheDeviceMemoryDoesNoHarm() {
        long weight = onnx.fake.reserve(1000);
        onnx.memory.close();
        assertThat(onnx.fake.reserve(1000)).isZero();
        onnx.fake.free(weight);
    }

    @Test
    void aStreamServesAnotherSessionOnlyWhenTheFirstHasFreedAll() {
        SessionMemory first = onnx.onnx.open(SessionSettings.named("first"));
        long stream = handle(first);
        long weight = onnx.fake.allocateOnStream(1000, stream);
        first.close();
        first.close();
        SessionMemory second = onnx.onnx.open(SessionSettings.named("second"));
        assertThat(handle(second)).isNotEqualTo(stream);
        onnx.fake.free(onnx.fake.allocateOnStream(10, stream)); // the session goes on
        assertThat(first.figures().allocations()).isEqualTo(2);
        onnx.fake.free(weight);
        SessionMemory third = onnx.onnx.open(SessionSettings.named("third"));
        assertThat(handle(third)).isEqualTo(stream);
    }

    @Test
    void aFreeThatTheDriverRefusesIsMadeWithTheNextAllocation() {
        long weight = onnx.fake.reserve(1000);
        onnx.gpu.faults().failOn(DriverCall.STREAM_WAIT_EVENT, 0, 1, CudaResult.UNKNOWN);
        onnx.fake.free(weight);
        assertThat(onnx.onnx.figures().liveBlocks()).isOne();
        assertThat(onnx.onnx.lastFailure()).isPresent();
        long next = onnx.fake.reserve(1000);
        assertThat(onnx.onnx.figures().liveBlocks()).isOne();
        onnx.fake.free(next);
        assertThat(onnx.onnx.figures().liveBlocks()).isZero();
    }

    @Test
    void anAllocationWhoseOrderTheDriverRefusesLeavesNothing() {
        long stream = onnx.foreignStream();
        onnx.gpu.faults().failOn(DriverCall.STREAM_WAIT_EVENT, 0, 1, CudaResult.UNKNOWN);
        assertThat(onnx.fake.allocateOnStream(1000, stream)).isZero();
        assertThat(onnx.onnx.figures().liveBlocks()).isZero();
        assertThat(onnx.onnx.figures().usedBytes()).isZero();
        assertThat(onnx.memory.liveBlocks()).isEmpty();
        onnx.fake.free(onnx.fake.allocateOnStream(1000, stream));
    }

    @Test
    void anAddressThatCantBeTakenYetStaysInItsPlace() {
        UnheardFrees unheard = new UnheardFrees();
        unheard.add(4096);
        assertThatIllegalStateException()
                .isThrownBy(() -> unheard.takeAll(_ -> {
                    throw new IllegalStateException("not yet");
                }));
        List<Long> taken = new ArrayList<>();
        unheard.takeAll(taken::add);
        unheard.takeAll(taken::add);
        assertThat(taken).containsExactly(4096L);
    }

    @Test
    void whatIsNoBlockIsReportedAndNothingHappens() {
        onnx.fake.free(0);
        assertThat(onnx.onnx.lastFailure()).isEmpty();
        onnx.fake.free(4096);
        assertThat(onnx.onnx.lastFailure().orElseThrow()).isInstanceOf(UnknownAddressException.class);
        assertThat(onnx.fake.allocate(0)).isZero();
    }

    @Test
    void noMemoryIsAnAnswerAndItsReportIsKept() {
        assertThat(onnx.fake.reserve(1L << 40)).isZero();
        assertThat(onnx.onnx.lastFailure().orElseThrow()).isInstanceOf(DeviceOutOfMemoryException.class);
        assertThat(onnx.onnx.figures().refused()).isOne();
        assertThat(onnx.fake.liveStatuses()).isZero();
    }
}
