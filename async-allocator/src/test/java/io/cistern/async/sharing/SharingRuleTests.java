package io.cistern.async.sharing;

import static io.cistern.async.sharing.SharedPoolTests.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.async.AsyncProvider;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.process.LocalListener;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.Poll;
import io.cistern.errors.SharingException.Reason;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import io.cistern.testkit.StreamLatch;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What is waited for, what is left, and what is refused, at the bounds.
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class SharingRuleTests {
    private TwoGpus gpus;
    private ExportedPool exported;

    @BeforeEach
    void open(@TempDir Path folder) {
        gpus = new TwoGpus(folder);
        exported = gpus.serve();
    }

    @AfterEach
    void close() {
        exported.close();
        assertThat(Thread.currentThread().isInterrupted())
                .as("closing waits for a thread and interrupts none")
                .isFalse();
        assertThat(gpus.owner.misuses()).isEmpty();
        assertThat(gpus.guest.misuses()).isEmpty();
        gpus.close();
    }

    /// Starts a call that must wait, and returns it once it does.
    private static FutureTask<?> waiting(Runnable call) {
        FutureTask<?> task = new FutureTask<>(call, true);
        Thread thread = Thread.ofPlatform().daemon().start(task);
        while (thread.getState() != Thread.State.TIMED_WAITING) {
            assertThat(task.isDone()).as("did not wait").isFalse();
            Thread.onSpinWait();
        }
        return task;
    }

    // --- Waits ---

    @Test
    void importersComeAfterWhatTheExporterRecordsLater() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.owner);
                ImportedPool imported = gpus.connect();
                ExportedBuffer out = gpus.publish(exported, "weights");
                ImportedBuffer in = imported.map("weights", 0, gpus.guestStream)) {
            latch.hold(gpus.ownerStream);
            gpus.fill(gpus.owner, out.address(), 7, gpus.ownerStream);
            in.await(); // nothing of that is recorded
            out.record(gpus.ownerStream);
            FutureTask<?> awaiting = waiting(in::await);
            latch.release();
            awaiting.get();
            assertThat(TwoGpus.content(gpus.guest, in.address(), gpus.guestStream))
                    .isEqualTo(7);
        }
    }

    @Test
    void anInterruptedWaitGoesOnAndStaysInterrupted() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.guest);
                ImportedPool imported = gpus.connect();
                ExportedBuffer out = gpus.publish(exported, "weights");
                ImportedBuffer in = imported.map("weights", 0, gpus.guestStream)) {
            latch.hold(gpus.guestStream);
            in.record(gpus.guestStream);
            FutureTask<?> awaiting = waiting(() -> {
                Thread.currentThread().interrupt();
                out.await();
                assertThat(Thread.currentThread().isInterrupted()).isTrue();
            });
            latch.release();
            awaiting.get();
        }
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
    }

    @Test
    void aBufferThatIsReleasedIsWaitedForNoMore() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.guest);
                ImportedPool imported = gpus.connect();
                ExportedBuffer out = gpus.publish(exported, "weights")) {
            ImportedBuffer first = imported.map("weights", 0, gpus.guestStream);
            latch.hold(gpus.guestStream);
            first.record(gpus.guestStream);
            FutureTask<?> awaiting = waiting(out::await);
            FutureTask<?> closing = new FutureTask<>(first::close, true);
            Thread.ofPlatform().start(closing);
            assertThat(awaiting.isDone()).isFalse();
            latch.release();
            closing.get();
            awaiting.get();
            out.await();
        }
    }

    @Test
    void closingWaitsForTheLastReleaseWithPatience() throws Exception {
        Path path = gpus.path.resolveSibling("patient");
        try (ExportedPool patient =
                gpus.exporting().patience(Duration.ofSeconds(30)).serve(path)) {
            ExportedBuffer out = gpus.publish(patient, "weights");
            try (ImportedPool imported = ImportedPool.connect(gpus.guest, path)) {
                ImportedBuffer one = imported.map("weights", 0, gpus.guestStream);
                ImportedBuffer another = imported.map("weights", 0, gpus.guestStream);
                FutureTask<?> closing = waiting(out::close);
                one.close();
                assertRefused(Reason.UNKNOWN_NAME, () -> imported.map("weights", 0, gpus.guestStream));
                assertThat(closing.isDone()).isFalse();
                another.close();
                closing.get();
            }
        }
    }

    @Test
    void closingAPoolWaitsForTheImportersToo() throws Exception {
        Path path = gpus.path.resolveSibling("patient");
        ExportedPool patient = gpus.exporting().patience(Duration.ofSeconds(30)).serve(path);
        gpus.publish(patient, "weights");
        try (ImportedPool imported = ImportedPool.connect(gpus.guest, path)) {
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            FutureTask<?> closing = waiting(patient::close);
            assertThat(imported.isConnected()).isTrue();
            in.close();
            closing.get();
            assertThat(imported.isConnected()).isFalse();
        }
    }

    /// An interrupt ends the wait for importers, not the close.
    @Test
    void anInterruptedThreadClosesAllTheSame() {
        gpus.publish(exported, "weights");
        try (ImportedPool imported = gpus.connect();
                ImportedBuffer _ = imported.map("weights", 0, gpus.guestStream)) {
            Thread.currentThread().interrupt();
            exported.close();
            assertThat(Thread.interrupted()).isTrue();
            assertThat(gpus.path).doesNotExist();
        }
    }

    @Test
    void anInterruptedThreadIsToldWhoStillMapsABuffer() {
        Path path = gpus.path.resolveSibling("endless");
        try (ExportedPool endless = gpus.exporting()
                        .patience(Duration.ofSeconds(Long.MAX_VALUE))
                        .serve(path);
                ImportedPool imported = ImportedPool.connect(gpus.guest, path)) {
            ExportedBuffer out = gpus.publish(endless, "weights");
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            Thread.currentThread().interrupt();
            assertThat(catchThrowable(out::close)).hasMessageContaining("as the wait for them is interrupted");
            assertThat(Thread.interrupted()).isTrue();
            in.close();
            Thread.currentThread().interrupt();
            out.close();
            assertThat(Thread.interrupted()).isTrue();
        }
    }

    @Test
    void aPoolAndItsBufferAreClosedAtOnce() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.guest);
                ExportedBuffer out = gpus.publish(exported, "weights")) {
            ImportedPool imported = gpus.connect();
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            latch.hold(gpus.guestStream);
            FutureTask<?> closing = new FutureTask<>(in::close, true);
            Thread.ofPlatform().daemon().start(closing);
            awaitClosing(in);
            FutureTask<?> closingAll = new FutureTask<>(imported::close, true);
            Thread all = Thread.ofPlatform().daemon().start(closingAll);
            while (all.getState() != Thread.State.BLOCKED) {
                assertThat(closingAll.isDone()).isFalse();
                Thread.onSpinWait();
            }
            latch.release();
            closing.get(20, TimeUnit.SECONDS);
            closingAll.get(20, TimeUnit.SECONDS);
            assertThat(out.importers()).isEmpty();
        }
    }

    private void awaitClosing(ImportedBuffer in) {
        while (gpus.guest.calls().of(DriverCall.EVENT_SYNCHRONIZE) == 0) {
            assertThat(in.byteSize()).isPositive();
            Thread.onSpinWait();
        }
    }

    /// The server is held up meanwhile.
    @Test
    void manyImportersConnectAtOnce() throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        try (ImportedPool first = gpus.connect();
                ExportedBuffer _ = gpus.publish(exported, "weights")) {
            CountDownLatch isHeld = new CountDownLatch(1);
            Thread.ofPlatform()
                    .daemon()
                    .start(() -> exported.publications().locked(() -> {
                        isHeld.countDown();
                        awaitLatch(done);
                    }));
            isHeld.await();
            FutureTask<?> mapping = new FutureTask<>(
                    () -> first.map("weights", 0, gpus.guestStream).close(), true);
            Thread.ofPlatform().daemon().start(mapping);
            List<LocalSocket> waiting = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                waiting.add(LocalSocket.connect(gpus.path));
            }
            done.countDown();
            waiting.forEach(LocalSocket::close);
            mapping.get();
        } finally {
            done.countDown();
        }
    }

    /// The importer's process lives on, and the exporter would wait for its end.
    @Test
    void anAnswerThatCameTooLateKeepsNoBuffer() throws Exception {
        ImportedPool.Builder impatient = ImportedPool.builder(gpus.guest).patience(Duration.ofMillis(200));
        ExportedBuffer out = gpus.publish(exported, "weights");
        try (ImportedPool imported = impatient.connect(gpus.path)) {
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            exported.publications()
                    .locked(() ->
                            assertRefused(Reason.UNREACHABLE, () -> imported.map("weights", 0, gpus.guestStream)));
            gpus.connect().close(); // the answer has been sent by then
            in.close();
        }
        out.close();
    }

    private static void awaitLatch(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void anExporterThatDoesNotAnswerIsGivenUp() throws Exception {
        Path silent = gpus.path.resolveSibling("silent");
        try (LocalListener listener = LocalListener.open(silent)) {
            long begin = System.nanoTime();
            assertRefused(
                    Reason.UNREACHABLE,
                    () -> ImportedPool.builder(gpus.guest)
                            .patience(Duration.ofMillis(200))
                            .connect(silent));
            assertThat(System.nanoTime() - begin).isBetween(150_000_000L, 20_000_000_000L);
            assertThat(Poll.readable(Duration.ZERO, listener.descriptor().number())
                            .isEmpty())
                    .isFalse();
        }
    }

    // --- What is left ---

    /// The events of both sides, also those of importers that never release.
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void noEventOrPoolIsLeftOnEitherSide(boolean releases) {
        exported.close();
        Map<String, Long> ofOwner = gpus.owner.heldObjects();
        Map<String, Long> ofGuest = gpus.guest.heldObjects();
        ExportedPool pool = gpus.serve();
        ExportedBuffer out = gpus.publish(pool, "weights");
        ImportedPool imported = gpus.connect();
        List<ImportedBuffer> mapped = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            mapped.add(imported.map("weights", 0, gpus.guestStream));
        }
        if (releases) {
            mapped.forEach(ImportedBuffer::close);
            out.close();
        }
        pool.close();
        imported.close();
        gpus.owner.pools().free(0, out.address(), gpus.ownerStream);
        gpus.owner.devices().synchronize(0);
        assertThat(gpus.owner.heldObjects()).isEqualTo(ofOwner);
        assertThat(gpus.guest.heldObjects()).isEqualTo(ofGuest);
    }

    @Test
    void aPoolThatCannotBeServedIsNotLeft() {
        Map<String, Long> before = gpus.owner.heldObjects();
        assertRefused(Reason.UNREACHABLE, gpus::serve);
        assertThatIllegalStateException()
                .isThrownBy(() -> gpus.exporting()
                        .threads(_ -> {
                            throw new IllegalStateException("no thread");
                        })
                        .serve(gpus.path.resolveSibling("no-thread")))
                .withMessage("no thread");
        assertThat(gpus.path.resolveSibling("no-thread")).doesNotExist();
        assertThat(gpus.owner.heldObjects()).isEqualTo(before);
    }

    @Test
    void oneImporterIsToldApartFromAnother() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        ImportedPool another = gpus.connect();
        try (ImportedPool one = gpus.connect()) {
            ImportedBuffer first = one.map("weights", 0, gpus.guestStream);
            another.map("weights", 0, gpus.guestStream);
            another.close();
            assertRefused(Reason.IN_USE, out::close);
            first.close();
            out.close();
        }
    }

    // --- What is refused ---

    @Test
    void fromTheFirstByteToTheWholeAllocationMayBePublished() {
        long address = gpus.allocate(exported);
        for (long byteSize : List.of(1L, TwoGpus.BYTES)) {
            try (ExportedBuffer out = exported.publish("part", address, byteSize, gpus.ownerStream);
                    ImportedPool imported = gpus.connect();
                    ImportedBuffer in = imported.map("part", byteSize, gpus.guestStream)) {
                assertThat(out.byteSize()).isEqualTo(byteSize);
                assertThat(in.byteSize()).isEqualTo(byteSize);
                assertThat(out.address()).isEqualTo(address);
                assertThat(in.name()).isEqualTo(out.name()).isEqualTo("part");
            }
        }
    }

    @Test
    void namesHaveUpTo255Bytes() {
        long address = gpus.allocate(exported);
        String longest = "ä".repeat(127) + "x";
        try (ExportedBuffer _ = exported.publish(longest, address, 1, gpus.ownerStream);
                ImportedPool imported = gpus.connect()) {
            imported.map(longest, 0, gpus.guestStream).close();
            assertThatIllegalArgumentException().isThrownBy(() -> imported.map(longest + "x", 0, gpus.guestStream));
            assertThatIllegalArgumentException().isThrownBy(() -> imported.map("", 0, gpus.guestStream));
            assertThatIllegalArgumentException().isThrownBy(() -> imported.map(longest, -1, gpus.guestStream));
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> exported.publish(longest + "x", address, 1, gpus.ownerStream));
    }

    /// Other processes could not ask for it: a lone surrogate has no bytes in UTF-8.
    @Test
    void aNameWithoutBytesIsRefused() {
        long address = gpus.allocate(exported);
        assertThatIllegalArgumentException().isThrownBy(() -> exported.publish("\ud800", address, 1, gpus.ownerStream));
    }

    @Test
    void anAddressThatTheDriverDoesNotKnowIsRefused() {
        long freed = gpus.allocate(exported);
        gpus.owner.pools().free(0, freed, gpus.ownerStream);
        gpus.owner.devices().synchronize(0);
        for (long address : List.of(0L, 4711L, freed)) {
            assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("weights", address, 1, gpus.ownerStream));
        }
    }

    @Test
    void aClosedPoolHasNoAllocator() {
        Catalog catalog = Catalog.of(List.of(new AsyncProvider()), List.of());
        try (DeviceMemory owner =
                DeviceMemory.builder(gpus.owner).catalog(catalog).open()) {
            exported.close();
            assertThatIllegalStateException().isThrownBy(() -> exported.allocator(owner));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"exported", "imported"})
    void aClosedBufferIsNotUsed(String side) {
        ExportedBuffer out = gpus.publish(exported, "weights");
        try (ImportedPool imported = gpus.connect()) {
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            in.close();
            out.close();
            List<Runnable> uses = side.equals("exported")
                    ? List.of(out::await, () -> out.record(gpus.ownerStream))
                    : List.of(in::await, () -> in.record(gpus.guestStream), in::address);
            for (Runnable use : uses) {
                assertThatIllegalStateException()
                        .isThrownBy(use::run)
                        .withMessageContaining(side + " buffer weights of " + TwoGpus.BYTES + " bytes is closed");
            }
        }
    }

    @Test
    void optionsAreChecked() {
        assertThatIllegalArgumentException().isThrownBy(() -> gpus.exporting().handleType(HandleType.NONE));
        assertThatIllegalArgumentException().isThrownBy(() -> gpus.exporting().patience(Duration.ofNanos(-1)));
        ImportedPool.Builder importing = ImportedPool.builder(gpus.guest);
        assertThatIllegalArgumentException().isThrownBy(() -> importing.patience(Duration.ofNanos(-1)));
        assertThat(importing.patience(Duration.ZERO)).isSameAs(importing);
    }

    @Test
    void oneImporterMapsABoundedNumberOfBuffers() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        try (ImportedPool imported = gpus.connect()) {
            for (int i = 0; i < 4096; i++) {
                imported.map("weights", 0, gpus.guestStream);
            }
            assertRefused(Reason.IN_USE, () -> imported.map("weights", 0, gpus.guestStream));
            try (ImportedPool other = gpus.connect()) {
                other.map("weights", 0, gpus.guestStream);
            }
        }
        out.close();
    }

    // --- Devices ---

    @Test
    void aPoolOfTheSecondDeviceIsAllocatedFromThere() {
        Catalog catalog = Catalog.of(List.of(new AsyncProvider()), List.of());
        Path path = gpus.path.resolveSibling("second");
        try (ExportedPool pool = ExportedPool.builder(gpus.owner, 1).serve(path);
                DeviceMemory owner =
                        DeviceMemory.builder(gpus.owner).catalog(catalog).open();
                DeviceMemory guest =
                        DeviceMemory.builder(gpus.guest).catalog(catalog).open();
                Allocator allocator = pool.allocator(owner);
                CudaStream stream = CudaStream.open(owner, 1);
                CudaStream other = CudaStream.open(guest, 0);
                CudaStream guests = CudaStream.open(guest, 1);
                DeviceBuffer weights = DeviceBuffer.allocate(allocator, 1000, stream);
                ExportedBuffer _ = pool.publish("weights", weights);
                ImportedPool imported = ImportedPool.connect(gpus.guest, path)) {
            assertThat(imported.device()).isEqualTo(pool.device()).isEqualTo(1);
            assertThatIllegalArgumentException().isThrownBy(() -> imported.open("weights", other));
            try (DeviceBuffer seen = imported.open("weights", guests)) {
                assertThat(seen.device()).isEqualTo(1);
                assertThat(seen.byteSize()).isEqualTo(1000);
            }
        }
    }

    @Test
    void messagesNameThePoolAndItsProcess() {
        long pid = ProcessHandle.current().pid();
        try (ImportedPool imported = gpus.connect()) {
            assertThat(exported).hasToString("exported pool 0x" + Long.toHexString(exported.handle()) + " of device 0");
            assertThat(imported).hasToString("imported pool of process " + pid + " on device 0");
            ExportedBuffer out = gpus.publish(exported, "weights");
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            assertThat(catchThrowable(out::close)).hasMessageContaining("by the processes [" + pid + "] after 200 ms");
            in.close();
        }
    }

    @Test
    void anImporterWithOneDeviceFindsItByItsIdentity() {
        try (SimulatedGpu small = SimulatedGpu.builder().devices(1).build();
                ImportedPool imported = ImportedPool.connect(small, gpus.path)) {
            assertThat(imported.device()).isZero();
        }
    }
}
