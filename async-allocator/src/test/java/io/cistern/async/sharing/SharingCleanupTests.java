package io.cistern.async.sharing;

import static io.cistern.async.sharing.SharedPoolTests.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DeadContext;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.HandleType;
import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalListener;
import io.cistern.cuda.process.LocalMessage;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.Poll;
import io.cistern.errors.SharingException.Reason;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What is undone, closed and remembered after a call that failed or a connection that ended.
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class SharingCleanupTests {
    private static final Duration LONG = Duration.ofSeconds(20);

    private TwoGpus gpus;
    private ExportedPool exported;
    private ExportedBuffer published;

    @BeforeEach
    void open(@TempDir Path folder) {
        gpus = new TwoGpus(folder);
        exported = gpus.serve();
        published = gpus.publish(exported, "weights");
    }

    @AfterEach
    void close() {
        published.close();
        exported.close();
        assertThat(gpus.owner.misuses()).isEmpty();
        assertThat(gpus.guest.misuses()).isEmpty();
        gpus.close();
    }

    // --- Calls that fail ---

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {
                "EVENT_CREATE",
                "IPC_GET_EVENT_HANDLE",
                "MEM_POOL_IMPORT_POINTER",
                "IPC_OPEN_EVENT_HANDLE",
                "EVENT_QUERY"
            })
    void aMapThatFailsLeavesNothingOnEitherSide(DriverCall call) {
        try (ImportedPool imported = gpus.connect()) {
            imported.map("weights", 0, gpus.guestStream).close();
            Map<String, Long> ofGuest = gpus.guest.heldObjects();
            Map<String, Long> ofOwner = gpus.owner.heldObjects();
            long mapped = gpus.guest.calls().of(DriverCall.MEM_POOL_IMPORT_POINTER);
            long unmapped = gpus.guest.calls().of(DriverCall.MEM_FREE);
            gpus.guest.faults().failOn(call, 0, 1, CudaResult.OUT_OF_MEMORY);
            gpus.guest.faults().failOn(DriverCall.EVENT_DESTROY, 0, 1, CudaResult.UNKNOWN);
            gpus.guest.faults().failOn(DriverCall.MEM_FREE, 0, 1, CudaResult.UNKNOWN);
            CudaException failure =
                    catchThrowableOfType(CudaException.class, () -> imported.map("weights", 0, gpus.guestStream));
            assertThat(failure.result()).isEqualTo(CudaResult.OUT_OF_MEMORY);
            boolean hadEvent = call != DriverCall.EVENT_CREATE;
            assertThat(failure.getSuppressed()).as("an undo is tried again").isEmpty();
            gpus.guest.faults().clear();
            assertThat(gpus.guest.heldObjects()).isEqualTo(ofGuest);
            assertThat(gpus.owner.heldObjects()).isEqualTo(ofOwner);
            assertThat(exported.importers()).isEmpty();
            boolean hadPointer = call == DriverCall.IPC_OPEN_EVENT_HANDLE || call == DriverCall.EVENT_QUERY;
            assertThat(gpus.guest.calls().of(DriverCall.MEM_FREE) - unmapped)
                    .as("the first fails")
                    .isEqualTo(hadPointer ? 2 : 0);
            assertThat(gpus.guest.calls().of(DriverCall.MEM_POOL_IMPORT_POINTER) - mapped)
                    .isEqualTo(hadEvent && call != DriverCall.IPC_GET_EVENT_HANDLE ? 1 : 0);
        }
    }

    /// The length is only a check of what the exporter says.
    @Test
    void aBufferIsMappedIfTheDriverDoesNotTellItsLength() {
        try (ImportedPool imported = gpus.connect()) {
            gpus.guest.faults().failOn(DriverCall.MEM_GET_ADDRESS_RANGE, 0, 1, CudaResult.UNKNOWN);
            imported.map("weights", TwoGpus.BYTES, gpus.guestStream).close();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"DEVICE_GET_UUID", "MEM_POOL_IMPORT", "MEM_POOL_GET_ACCESS"})
    void aConnectionThatFailsLeavesNoPool(DriverCall call) {
        Map<String, Long> before = gpus.guest.heldObjects();
        gpus.guest.faults().failOn(call, 0, 1, CudaResult.OUT_OF_MEMORY);
        assertThatExceptionOfType(CudaException.class).isThrownBy(gpus::connect);
        assertThat(gpus.guest.heldObjects()).isEqualTo(before);
    }

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"MEM_POOL_EXPORT_POINTER", "EVENT_CREATE", "IPC_GET_EVENT_HANDLE", "EVENT_RECORD"})
    void aPublicationThatFailsLeavesNoEventAndNoName(DriverCall call) {
        long address = gpus.allocate(exported);
        Map<String, Long> before = gpus.owner.heldObjects();
        gpus.owner.faults().failOn(call, 0, 1, CudaResult.OUT_OF_MEMORY);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(() -> exported.publish("more", address, 1, gpus.ownerStream));
        assertThat(gpus.owner.heldObjects()).isEqualTo(before);
        exported.publish("more", address, 1, gpus.ownerStream).close();
    }

    @Test
    void anUndoThatFailsEachTimeIsTold() {
        try (ImportedPool imported = gpus.connect()) {
            gpus.guest.faults().failOn(DriverCall.IPC_OPEN_EVENT_HANDLE, 0, 1, CudaResult.OUT_OF_MEMORY);
            gpus.guest.faults().failOn(DriverCall.EVENT_DESTROY, 0, DeadContext.MOST_TRIES, CudaResult.UNKNOWN);
            assertThatExceptionOfType(CudaException.class)
                    .isThrownBy(() -> imported.map("weights", 0, gpus.guestStream))
                    .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DriverCall.class,
            names = {"MEM_FREE_ASYNC", "EVENT_RECORD", "EVENT_SYNCHRONIZE", "EVENT_DESTROY"})
    void aDeadContextClosesItsBuffers(DriverCall call) {
        ImportedPool imported = gpus.connect();
        imported.map("weights", 0, gpus.guestStream);
        gpus.guest.faults().loseContextOn(call, 0, CudaResult.ILLEGAL_ADDRESS);
        imported.close();
        assertThat(exported.importers()).isEmpty();
    }

    @Test
    void aPoolWhoseThreadIsGoneLeavesNothing() {
        Map<String, Long> before = gpus.owner.heldObjects();
        Path path = gpus.path.resolveSibling("gone");
        ExportedPool pool = gpus.exporting()
                .threads(_ -> Thread.ofPlatform().unstarted(() -> {}))
                .serve(path);
        long address = gpus.allocate(pool);
        pool.publish("weights", address, 1, gpus.ownerStream);
        pool.close();
        assertThat(path).doesNotExist();
        gpus.owner.pools().free(0, address, gpus.ownerStream);
        gpus.owner.devices().synchronize(0);
        assertThat(gpus.owner.heldObjects()).isEqualTo(before);
    }

    @Test
    void allBuffersAreClosedWithThePoolAndTheFirstFailureIsTold() {
        ImportedPool imported = gpus.connect();
        List<ImportedBuffer> mapped = List.of(
                imported.map("weights", 0, gpus.guestStream),
                imported.map("weights", 0, gpus.guestStream),
                imported.map("weights", 0, gpus.guestStream));
        long address = mapped.getLast().address();
        gpus.guest.faults().failOn(DriverCall.MEM_FREE_ASYNC, 0, 2, CudaResult.UNKNOWN);
        assertThatExceptionOfType(CudaException.class)
                .isThrownBy(imported::close)
                .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(1));
        assertThatExceptionOfType(CudaException.class)
                .as("the third is unmapped")
                .isThrownBy(() -> gpus.guest.memory().range(0, address));
        imported.close();
        assertThat(exported.importers()).isEmpty();
        assertThat(gpus.guest.heldObjects()).doesNotContainKey("events");
    }

    // --- Connections that end ---

    /// A client that speaks the protocol itself.
    private LocalSocket greeted(Transfer transfer) throws IOException {
        LocalSocket socket = LocalSocket.connect(gpus.path);
        socket.send(Message.encode(new Message.Hello(transfer)));
        LocalMessage answer = next(socket);
        assertThat(answer.attached().isPresent()).isEqualTo(transfer == Transfer.SOCKET);
        answer.attached().ifPresent(Descriptor::close);
        assertThat(Message.decode(answer.bytes())).isInstanceOf(Message.Pool.class);
        return socket;
    }

    private static LocalMessage next(LocalSocket socket) throws IOException {
        assertThat(Poll.readable(LONG, socket.descriptor().number()).isEmpty()).isFalse();
        return socket.receive(Message.MAX_BYTES).orElseThrow();
    }

    private Message ask(LocalSocket socket, Message question) throws IOException {
        socket.send(Message.encode(question));
        return Message.decode(next(socket).bytes());
    }

    private Message.Map mapping() {
        long event = gpus.guest.sharing().createEvent(0);
        return new Message.Map(
                "weights", 0, new DriverHandle(gpus.guest.sharing().exportEvent(0, event)));
    }

    @ParameterizedTest
    @EnumSource(Transfer.class)
    void aDescriptorIsSentOnlyToThoseWhoWantIt(Transfer transfer) throws IOException {
        greeted(transfer).close();
    }

    @Test
    void eachUseIsReleasedOnceByItsNumber() throws IOException {
        try (LocalSocket socket = greeted(Transfer.PIDFD)) {
            Message.Buffer first = (Message.Buffer) ask(socket, mapping());
            Message.Buffer second = (Message.Buffer) ask(socket, mapping());
            assertThat(first.id()).isNotEqualTo(second.id());
            assertThat(ask(socket, new Message.Release(first.id()))).isInstanceOf(Message.Released.class);
            assertThat(ask(socket, new Message.Release(first.id()))).isInstanceOf(Message.Refused.class);
            assertRefused(Reason.IN_USE, published::close);
            assertThat(ask(socket, new Message.Release(second.id()))).isInstanceOf(Message.Released.class);
            published.close();
        }
    }

    /// Its process may have work on the memory under way.
    @Test
    void aConnectionThatEndsLeavesItsUsesUntilItsProcessEnds() throws IOException {
        LocalSocket socket = greeted(Transfer.PIDFD);
        assertThat(ask(socket, mapping())).isInstanceOf(Message.Buffer.class);
        socket.close();
        gpus.connect().close(); // the server has seen the end by then
        assertThat(exported.importers()).containsExactly(ProcessHandle.current().pid());
        assertRefused(Reason.IN_USE, published::close);
        assertThat(exported.importers()).hasSize(1);
        exported.close();
        assertThat(exported.importers()).isEmpty();
    }

    @Test
    void aConnectionThatEndsTakesNoUseOfOthers() throws Exception {
        try (ImportedPool imported = gpus.connect();
                ImportedBuffer _ = imported.map("weights", 0, gpus.guestStream)) {
            greeted(Transfer.PIDFD).close();
            gpus.connect().close();
            assertRefused(Reason.IN_USE, published::close);
            assertThat(exported.importers()).hasSize(1);
        }
    }

    @Test
    void anExporterThatRefusesBeforeItIsAskedIsHeard() throws Exception {
        Path path = gpus.path.resolveSibling("busy");
        try (LocalListener listener = LocalListener.open(path);
                ExporterLink link = ExporterLink.connect(path, LONG, _ -> true)) {
            Poll.readable(LONG, listener.descriptor().number());
            try (LocalSocket socket = listener.accept().orElseThrow()) {
                socket.send(Message.encode(new Message.Refused(Reason.IN_USE, "too many")));
            }
            assertRefused(Reason.IN_USE, () -> link.ask(new Message.Hello(Transfer.SOCKET), Message.Pool.class));
        }
    }

    @Test
    void aPoolWithAFabricHandleIsImportedByThat() throws Exception {
        Path path = gpus.path.resolveSibling("fabric");
        try (LocalListener listener = LocalListener.open(path)) {
            Thread server = Thread.ofPlatform()
                    .start(() -> answerOnce(
                            listener,
                            new Message.Pool(
                                    gpus.owner.devices().uuid(0), HandleType.FABRIC.bit(), 1, DriverHandle.NONE)));
            assertThat(catchThrowableOfType(CudaException.class, () -> ImportedPool.connect(gpus.guest, path))
                            .result())
                    .as("there is no channel")
                    .isEqualTo(CudaResult.NOT_PERMITTED);
            server.join();
        }
    }

    /// Answers one question, with a descriptor that nobody wants.
    private static void answerOnce(LocalListener listener, Message answer) {
        try {
            Poll.readable(LONG, listener.descriptor().number());
            try (LocalSocket socket = listener.accept().orElseThrow();
                    Descriptor unwanted = Descriptor.ofMemory("unwanted")) {
                next(socket);
                socket.send(Message.encode(answer), unwanted);
                next(socket);
            }
        } catch (EOFException ended) {
            assertThat(ended).isNotNull();
        } catch (IOException broken) {
            throw new AssertionError(broken);
        }
    }

    /// Many times, so that other files that come and go don't matter.
    @Test
    void refusedConnectionsLeaveNoFileOpen() throws Exception {
        Path others = gpus.path.resolveSibling("others");
        Path fake = gpus.path.resolveSibling("fake");
        try (ExportedPool _ = gpus.exporting().mayConnect(_ -> false).serve(others);
                LocalListener listener = LocalListener.open(fake);
                Descriptor unasked = Descriptor.ofMemory("unasked")) {
            List<Callable<?>> refused = List.of(
                    () -> {
                        assertRefused(Reason.WRONG_USER, () -> ImportedPool.connect(gpus.guest, others));
                        return true;
                    },
                    () -> {
                        assertRefused(
                                Reason.WRONG_USER,
                                () -> ImportedPool.builder(gpus.guest)
                                        .mayServe(_ -> false)
                                        .connect(gpus.path));
                        return true;
                    },
                    () -> {
                        Thread server = Thread.ofPlatform().start(() -> answerOnce(listener, new Message.Released()));
                        assertRefused(Reason.MALFORMED, () -> ImportedPool.connect(gpus.guest, fake));
                        server.join();
                        return true;
                    },
                    () -> {
                        assertRefused(Reason.UNREACHABLE, gpus::serve);
                        return true;
                    },
                    () -> {
                        assertThatIllegalArgumentException()
                                .isThrownBy(() -> gpus.exporting().serve(gpus.path.resolveSibling("x".repeat(108))));
                        return true;
                    },
                    () -> {
                        try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
                            socket.send(Message.encode(new Message.Hello(Transfer.PIDFD)), unasked);
                            return next(socket);
                        }
                    },
                    () -> {
                        try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
                            socket.send(new byte[] {1, 2, 3});
                            return next(socket);
                        }
                    });
            for (Callable<?> each : refused) {
                each.call();
            }
            long before = openFiles();
            for (Callable<?> each : refused) {
                for (int i = 0; i < 20; i++) {
                    each.call();
                }
            }
            long deadline = System.nanoTime() + 5_000_000_000L;
            while (openFiles() > before + 5 && System.nanoTime() < deadline) { // servers notice ends a little later
                Thread.sleep(5);
            }
            assertThat(openFiles()).isLessThanOrEqualTo(before + 5);
        }
    }

    private static long openFiles() throws IOException {
        try (var files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        }
    }
}
