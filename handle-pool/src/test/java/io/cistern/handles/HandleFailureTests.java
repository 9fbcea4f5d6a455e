package io.cistern.handles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CaptureMode;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.graph.GraphCapture;
import io.cistern.graph.GraphMemory;
import io.cistern.jvm.LogOf;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A library, an allocator or a driver that fails: what the program learns, and that no handle and no place is lost.
@Timeout(60)
final class HandleFailureTests {
    @RegisterExtension
    private final LogOf log = new LogOf(HandlePool.class.getName());

    private final HandlePoolFixture fixture = new HandlePoolFixture();
    private final CheckedLibrary library = fixture.library;
    private final long stream = fixture.stream;

    @AfterEach
    void nothingIsLeft() {
        fixture.close();
    }

    @Test
    void aRefusedDestructionIsCounted() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        pool.handle(0, stream);
        library.onDestroy = () -> {
            throw new IllegalStateException("EXECUTION_FAILED");
        };
        pool.close();
        assertThat(pool.statistics(0).failedDestructions()).isEqualTo(1);
        assertThat(pool.statistics(0).lastFailure()).contains("EXECUTION_FAILED");
        assertThat(pool.statistics(0).alive()).isZero();
    }

    @Test
    void anErrorOfTheLibraryIsThrownAfterAllAreDestroyed() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        HandlePoolFixture.onNewThread(() -> {
            pool.handle(0, stream);
            return HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        });
        assertThat(library.alive()).isEqualTo(2);
        library.onDestroy = () -> {
            throw new UnsatisfiedLinkError("destroy");
        };
        assertThatExceptionOfType(UnsatisfiedLinkError.class).isThrownBy(() -> pool.trim(0, Duration.ZERO));
        assertThat(library.alive()).isZero();
        pool.handle(0, stream);
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        assertThatExceptionOfType(UnsatisfiedLinkError.class).isThrownBy(pool::close);
        assertThat(library.alive()).isZero();
        assertThat(pool.statistics(0).alive()).isZero();
    }

    @Test
    void anErrorOfTheLibraryIsThrownWhereItsGraphIsCollected() {
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        GraphMemory ofGraph;
        long graph;
        try (GraphCapture capture = GraphCapture.begin(fixture.memory, 0, stream, CaptureMode.GLOBAL)) {
            pool.handle(0, stream).use(stream);
            ofGraph = capture.memory();
            graph = capture.end();
        }
        pool.close();
        library.onDestroy = () -> {
            throw new UnsatisfiedLinkError("destroy");
        };
        fixture.gpu.graphs().destroy(0, graph);
        HandlePoolFixture.await(ofGraph::isGone);
        assertThatExceptionOfType(UnsatisfiedLinkError.class).isThrownBy(() -> GraphMemory.collect(fixture.memory));
        assertThat(pool.statistics(0).alive()).isZero();
    }

    @Test
    void aHandleIsDestroyedIfAStepAfterItsCreationFails() {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxHandles(1));
        fixture.gpu.faults().failOn(DriverCall.THREAD_EXCHANGE_CAPTURE_MODE, 1, 1, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class).isThrownBy(() -> pool.handle(0, stream));
        assertThat(library.created).hasValue(1);
        assertThat(library.alive()).isZero();
        pool.handle(0, stream).use(stream);
    }

    @Test
    void aLibraryThatKnowsNoWorkspaceSizeTakesNoPlace() {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxHandles(1));
        library.workspaceBytes = -1;
        assertThatThrownBy(() -> pool.handle(0, stream)).hasMessage("workspaceBytes");
        library.workspaceBytes = 0;
        pool.handle(0, stream).use(stream);
    }

    @Test
    void aLeaseWithoutAHandleTakesNoPlace() {
        var pool = fixture.open(HandlePoolFixture.soon().withMaxVirtualThreads(1));
        library.refusals.set(2);
        assertThatExceptionOfType(HandleException.class)
                .isThrownBy(() -> HandlePoolFixture.onVirtualThread(() -> pool.lease(0)))
                .withMessageContaining("NOT_INITIALIZED");
        HandlePoolFixture.onVirtualThread(() -> {
            try (var lease = pool.lease(0)) {
                lease.handle(stream).use(stream);
            }
            return null;
        });
        assertThat(pool.statistics(0).waits()).isZero();
    }

    @Test
    void aFailureOfTheWatchingThreadIsLogged() {
        library.workspaceBytes = 1 << 20;
        var pool = fixture.open(HandlePoolOptions.DEFAULT);
        fixture.useHooked().onFree = _ -> {
            throw new IllegalStateException("in a test");
        };
        HandlePoolFixture.onNewThread(() -> pool.handle(0, stream));
        HandlePoolFixture.await(() -> !log.messages().isEmpty());
        assertThat(log.messages())
                .singleElement()
                .asString()
                .startsWith("maintenance of handles of checked")
                .endsWith("the pool stays usable");
        assertThat(pool.statistics(0).idle()).isEqualTo(1);
    }

    /// While one thread gives back the workspace of a handle, another looks for threads that have ended.
    @ParameterizedTest
    @EnumSource(HandleStrategy.class)
    void aLeaseThatNobodyClosedIsCountedOnce(HandleStrategy strategy) throws InterruptedException {
        library.workspaceBytes = 1 << 20;
        var pool = fixture.open(HandlePoolOptions.DEFAULT.withStrategy(strategy));
        var isFreeing = new CountDownLatch(1);
        var goesOn = new CountDownLatch(1);
        fixture.useHooked().onFree = _ -> {
            isFreeing.countDown();
            HandlePoolFixture.await(() -> goesOn.getCount() == 0);
        };
        HandlePoolFixture.onNewThread(() -> pool.lease(0).handle(stream));
        isFreeing.await(); // on the watching thread
        pool.trim(0, Duration.ofHours(1));
        goesOn.countDown();
        HandlePoolFixture.await(() -> pool.statistics(0).abandonedLeases() > 0);
        assertThat(pool.statistics(0).abandonedLeases()).isEqualTo(1);
    }

    @Test
    void aLibraryCanBeMadeOfFunctions() {
        List<String> calls = new ArrayList<>();
        HandleLibrary<String> functions = HandleLibrary.of(
                "functions",
                device -> "handle of " + device,
                handle -> calls.add("destroy " + handle),
                (handle, set) -> calls.add("set " + set + " in " + handle));
        try (var pool = HandlePool.open(fixture.memory, functions)) {
            assertThat(pool.handle(1, 0)).isEqualTo("handle of 1");
            assertThat(pool).asString().contains("functions");
        }
        assertThat(calls).containsExactly("set 0 in handle of 1", "destroy handle of 1");
    }
}
