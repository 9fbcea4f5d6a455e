package io.cistern.async.sharing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.type;

import io.cistern.cuda.HandleType;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.testkit.StreamLatch;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongPredicate;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@EnabledOnOs(OS.LINUX)
class SharedPoolTests {
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
        assertThat(gpus.owner.misuses()).isEmpty();
        assertThat(gpus.guest.misuses()).isEmpty();
        gpus.close();
    }

    static void assertRefused(Reason reason, ThrowingCallable call) {
        assertThatThrownBy(call)
                .asInstanceOf(type(SharingException.class))
                .satisfies(failure ->
                        assertThat(failure.reason()).as(failure.getMessage()).isEqualTo(reason));
    }

    private int seenByGuest(ImportedBuffer buffer) {
        return TwoGpus.content(gpus.guest, buffer.address(), gpus.guestStream);
    }

    @Test
    void importerAndExporterReadWhatTheOtherWrote() {
        try (ExportedBuffer out = gpus.publish(exported, "weights")) {
            gpus.fill(gpus.owner, out.address(), 42, gpus.ownerStream);
            out.record(gpus.ownerStream);
            try (ImportedPool imported = gpus.connect();
                    ImportedBuffer in = imported.map("weights", TwoGpus.BYTES, gpus.guestStream)) {
                assertThat(seenByGuest(in)).isEqualTo(42);
                gpus.fill(gpus.guest, in.address(), 43, gpus.guestStream);
                in.record(gpus.guestStream);
                out.await();
                assertThat(TwoGpus.content(gpus.owner, out.address(), gpus.ownerStream))
                        .isEqualTo(43);
            }
        }
    }

    @Test
    void whoMapsWaitsForWhatTheExporterWasStillDoing() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.owner);
                ImportedPool imported = gpus.connect()) {
            long address = gpus.allocate(exported);
            latch.hold(gpus.ownerStream);
            gpus.fill(gpus.owner, address, 5, gpus.ownerStream);
            ExportedBuffer out = exported.publish("late", address, TwoGpus.BYTES, gpus.ownerStream);
            var mapping = new FutureTask<>(() -> imported.map("late", 0, gpus.guestStream));
            Thread.ofPlatform().start(mapping);
            awaitUse();
            assertThat(mapping.isDone()).isFalse();
            latch.release();
            ImportedBuffer in = mapping.get();
            assertThat(seenByGuest(in)).isEqualTo(5);
            in.close();
            out.close();
        }
    }

    /// Until an importer has asked for a buffer.
    private void awaitUse() {
        while (exported.importers().isEmpty()) {
            Thread.onSpinWait();
        }
    }

    @Test
    void theExporterWaitsForWhatTheImporterWasStillDoing() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.guest);
                ImportedPool imported = gpus.connect()) {
            ExportedBuffer out = gpus.publish(exported, "back");
            ImportedBuffer in = imported.map("back", 0, gpus.guestStream);
            latch.hold(gpus.guestStream);
            gpus.fill(gpus.guest, in.address(), 6, gpus.guestStream);
            in.record(gpus.guestStream);
            var waiting = new FutureTask<>(out::await, true);
            Thread.ofPlatform().start(waiting);
            assertThat(waiting.isDone()).isFalse();
            latch.release();
            waiting.get();
            assertThat(TwoGpus.content(gpus.owner, out.address(), gpus.ownerStream))
                    .isEqualTo(6);
            in.close();
            out.close();
        }
    }

    @Test
    void aBufferIsLetGoBehindTheWorkOnIt() throws Exception {
        try (StreamLatch latch = TwoGpus.latch(gpus.guest);
                ImportedPool imported = gpus.connect()) {
            ExportedBuffer out = gpus.publish(exported, "back");
            ImportedBuffer in = imported.map("back", 0, gpus.guestStream);
            latch.hold(gpus.guestStream);
            gpus.fill(gpus.guest, in.address(), 6, gpus.guestStream);
            var closing = new FutureTask<>(in::close, true);
            Thread.ofPlatform().start(closing);
            assertRefused(Reason.IN_USE, out::close);
            latch.release();
            closing.get();
            out.close();
            assertThat(TwoGpus.content(gpus.owner, out.address(), gpus.ownerStream))
                    .isEqualTo(6);
        }
    }

    @ParameterizedTest
    @EnumSource(Transfer.class)
    void thePoolComesThroughTheSocketOrIsFetched(Transfer transfer) {
        gpus.publish(exported, "weights");
        try (ImportedPool imported =
                        ImportedPool.builder(gpus.guest).transfer(transfer).connect(gpus.path);
                ImportedBuffer in = imported.map("weights", 0, gpus.guestStream)) {
            assertThat(in.byteSize()).isEqualTo(TwoGpus.BYTES);
            assertThat(imported.exporter()).isEqualTo(ProcessHandle.current().pid());
        }
    }

    @Test
    void severalImportersMapTheSameMemory() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        gpus.fill(gpus.owner, out.address(), 8, gpus.ownerStream);
        out.record(gpus.ownerStream);
        try (ImportedPool one = gpus.connect();
                ImportedPool another = gpus.connect();
                ImportedBuffer first = one.map("weights", 0, gpus.guestStream);
                ImportedBuffer second = another.map("weights", 0, gpus.guestStream)) {
            gpus.fill(gpus.guest, first.address(), 9, gpus.guestStream);
            assertThat(seenByGuest(second)).isEqualTo(9);
        }
        out.close();
    }

    @Test
    void aPoolOfTheProgramsIsServedAndLeftAsItWas() {
        int type = HandleType.POSIX_FILE_DESCRIPTOR.bit();
        long own = gpus.owner.pools().create(new MemoryPoolProperties(MemoryLocation.device(0), type, 0));
        try (ExportedPool pool = gpus.exporting().pool(own).serve(gpus.path.resolveSibling("own"))) {
            assertThat(pool.handle()).isEqualTo(own);
        }
        gpus.owner.pools().destroy(0, own);
    }

    @Test
    void aPoolThatWasNotMadeForItIsRefusedWithTheReason() {
        long plain = gpus.owner.pools().create(MemoryPoolProperties.onDevice(0));
        Path path = gpus.path.resolveSibling("plain");
        assertRefused(Reason.NOT_SHAREABLE, () -> gpus.exporting().pool(plain).serve(path));
        assertThat(path).doesNotExist();
    }

    @Test
    void memoryOfAnotherPoolIsNotPublished() {
        long linear = gpus.owner.memory().allocate(0, 100);
        assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("a", linear, 100, gpus.ownerStream));
        long inDefault = gpus.owner.pools().allocate(0, 100, gpus.ownerStream);
        assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("a", inDefault, 100, gpus.ownerStream));
    }

    @Test
    void onlyWholeAllocationsArePublished() {
        long address = gpus.allocate(exported);
        assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("a", address + 512, 512, gpus.ownerStream));
        assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("a", address, TwoGpus.BYTES + 1, gpus.ownerStream));
        assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("a", address, 0, gpus.ownerStream));
    }

    @Test
    void namesAreCheckedAndUsedOnce() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        assertThatThrownBy(() -> gpus.publish(exported, "weights")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> gpus.publish(exported, "")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> gpus.publish(exported, "a\nb")).isInstanceOf(IllegalArgumentException.class);
        out.close();
        gpus.publish(exported, "weights").close();
    }

    @Test
    void whatIsNotPublishedOrHasAnotherSizeIsRefused() {
        gpus.publish(exported, "weights");
        try (ImportedPool imported = gpus.connect()) {
            assertRefused(Reason.UNKNOWN_NAME, () -> imported.map("wieghts", 0, gpus.guestStream));
            assertRefused(Reason.WRONG_SIZE, () -> imported.map("weights", 4096, gpus.guestStream));
            imported.map("weights", TwoGpus.BYTES, gpus.guestStream).close();
        }
    }

    @Test
    void aBufferThatIsMappedIsNotClosedUntilItIsLetGo() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        try (ImportedPool imported = gpus.connect()) {
            ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
            assertThat(exported.importers())
                    .containsExactly(ProcessHandle.current().pid());
            assertRefused(Reason.IN_USE, out::close);
            assertRefused(Reason.UNKNOWN_NAME, () -> imported.map("weights", 0, gpus.guestStream));
            in.close();
            out.close();
            assertThat(exported.importers()).isEmpty();
        }
    }

    @Test
    void closingTheImportedPoolLetsAllGo() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        ImportedPool imported = gpus.connect();
        ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
        imported.close();
        imported.close();
        in.close();
        out.close();
        assertThatThrownBy(in::address).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> imported.map("weights", 0, gpus.guestStream))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void anExporterThatIsGoneIsNoticedAndWhatIsMappedEndsInPeace() {
        gpus.publish(exported, "weights");
        ImportedPool imported = gpus.connect();
        ImportedBuffer in = imported.map("weights", 0, gpus.guestStream);
        assertThat(imported.isConnected()).isTrue();
        exported.close();
        assertThat(imported.isConnected()).isFalse();
        assertRefused(Reason.PEER_LOST, () -> in.await());
        assertRefused(Reason.PEER_LOST, () -> imported.map("weights", 0, gpus.guestStream));
        in.close();
        imported.close();
    }

    @Test
    void nobodyThereIsUnreachable() {
        assertRefused(Reason.UNREACHABLE, () -> ImportedPool.connect(gpus.guest, gpus.path.resolveSibling("nobody")));
    }

    @Test
    void aPathIsServedOnceAndFreeAfterwards() {
        assertRefused(Reason.UNREACHABLE, () -> gpus.serve());
        exported.close();
        assertThat(gpus.path).doesNotExist();
        exported = gpus.serve();
        gpus.connect().close();
    }

    @Test
    void anotherUserIsRefusedOnBothSides() {
        Path path = gpus.path.resolveSibling("others");
        try (ExportedPool _ = gpus.exporting().mayConnect(user -> false).serve(path)) {
            assertRefused(Reason.WRONG_USER, () -> ImportedPool.connect(gpus.guest, path));
        }
        assertRefused(
                Reason.WRONG_USER,
                () -> ImportedPool.builder(gpus.guest).mayServe(user -> false).connect(gpus.path));
    }

    @Test
    void anExporterThatCanNotTellWhoConnectsServesTheOthers() {
        Path path = gpus.path.resolveSibling("others");
        AtomicInteger users = new AtomicInteger();
        LongPredicate mayConnect = _ -> {
            if (users.getAndIncrement() == 0) {
                throw new IllegalStateException("no directory of users");
            }
            return true;
        };
        try (ExportedPool _ = gpus.exporting().mayConnect(mayConnect).serve(path)) {
            assertRefused(Reason.PEER_FAILED, () -> ImportedPool.connect(gpus.guest, path));
            ImportedPool.connect(gpus.guest, path).close();
        }
    }

    @Test
    void aDeviceThatTheImporterDoesNotSeeIsNamed() {
        Path path = gpus.path.resolveSibling("second");
        try (ExportedPool _ = ExportedPool.builder(gpus.owner, 1).serve(path);
                SimulatedGpu small = SimulatedGpu.builder().devices(1).build()) {
            assertRefused(Reason.WRONG_DEVICE, () -> ImportedPool.connect(small, path));
        }
    }

    @Test
    void fabricHandlesAreRefusedWhereThereIsNoChannel() {
        Path path = gpus.path.resolveSibling("fabric");
        assertThatThrownBy(() -> gpus.exporting().handleType(HandleType.FABRIC).serve(path))
                .isInstanceOf(RuntimeException.class);
        assertThat(path).doesNotExist();
    }

    @Test
    void nothingIsLeftBehind() throws Exception {
        long before = openFiles();
        Path path = gpus.path.resolveSibling("again");
        for (int i = 0; i < 10; i++) {
            try (ExportedPool pool = gpus.exporting().serve(path);
                    ExportedBuffer _ = gpus.publish(pool, "weights");
                    ImportedPool imported = ImportedPool.connect(gpus.guest, path);
                    ImportedBuffer in = imported.map("weights", 0, gpus.guestStream)) {
                gpus.fill(gpus.guest, in.address(), i, gpus.guestStream);
            }
        }
        gpus.owner.devices().synchronize(0);
        assertThat(path).doesNotExist();
        // Each round leaves live memory in its pool, whose store stays open.
        assertThat(openFiles() - before).isLessThanOrEqualTo(2 * 10);
    }

    private static long openFiles() throws Exception {
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }

    @Test
    void theServingThreadIsTheFactorysAndEnds() throws Exception {
        Thread[] made = new Thread[1];
        Path path = gpus.path.resolveSibling("thread");
        try (ExportedPool _ = gpus.exporting()
                .threads(work -> made[0] = Thread.ofPlatform().unstarted(work))
                .serve(path)) {
            assertThat(made[0].isAlive()).isTrue();
        }
        assertThat(made[0].join(Duration.ofSeconds(10))).isTrue();
    }

    @Test
    void closingTwiceDoesNothing() {
        ExportedBuffer out = gpus.publish(exported, "weights");
        out.close();
        out.close();
        exported.close();
        exported.close();
        assertThatThrownBy(() -> out.record(gpus.ownerStream)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> exported.publish("more", out.address(), 1, gpus.ownerStream))
                .isInstanceOf(IllegalStateException.class);
    }
}
