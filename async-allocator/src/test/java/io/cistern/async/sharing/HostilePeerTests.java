package io.cistern.async.sharing;

import static io.cistern.async.sharing.SharedPoolTests.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cistern.cuda.Sharing;
import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalListener;
import io.cistern.cuda.process.LocalMessage;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.Poll;
import io.cistern.errors.SharingException.Reason;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Processes of the same user that do not keep to the protocol: the other side says so and goes on with the rest.
@EnabledOnOs(OS.LINUX)
class HostilePeerTests {
    private static final Duration LONG = Duration.ofSeconds(20);
    private static final DriverHandle NO_EVENT = DriverHandle.NONE;

    private TwoGpus gpus;
    private ExportedPool exported;
    private ExportedBuffer published;
    private Path fake;

    @BeforeEach
    void open(@TempDir Path folder) {
        gpus = new TwoGpus(folder);
        exported = gpus.serve();
        published = gpus.publish(exported, "weights");
        fake = folder.resolve("fake");
    }

    /// Whatever came before, a decent importer is served.
    @AfterEach
    void decentImportersAreServedAsEver() {
        try (ImportedPool imported = gpus.connect();
                ImportedBuffer in = imported.map("weights", 0, gpus.guestStream)) {
            gpus.fill(gpus.guest, in.address(), 1, gpus.guestStream);
        }
        published.close();
        exported.close();
        gpus.close();
    }

    private static LocalMessage next(LocalSocket socket) throws IOException {
        assertThat(Poll.readable(LONG, socket.descriptor().number()).isEmpty()).isFalse();
        return socket.receive(Message.MAX_BYTES).orElseThrow();
    }

    /// Sends one message after the other; the last must be refused, and the connection end.
    private void assertLetGo(Reason reason, byte[]... messages) throws IOException {
        try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
            LocalMessage answer = null;
            for (byte[] message : messages) {
                socket.send(message);
                answer = next(socket);
                answer.attached().ifPresent(Descriptor::close);
            }
            assertThat(Message.decode(answer.bytes()))
                    .isInstanceOfSatisfying(
                            Message.Refused.class,
                            refused -> assertThat(refused.reason()).isEqualTo(reason));
            assertEnds(socket);
        }
    }

    private static void assertEnds(LocalSocket socket) throws IOException {
        try {
            next(socket);
            throw new AssertionError("the connection goes on");
        } catch (EOFException expected) {
            assertThat(expected).isNotNull();
        }
    }

    private static byte[] hello() {
        return Message.encode(new Message.Hello(Transfer.SOCKET));
    }

    @Test
    void whatIsNoMessageIsRefused() throws IOException {
        assertLetGo(Reason.MALFORMED, new byte[] {1, 2, 3});
        assertLetGo(Reason.MALFORMED, new byte[Message.MAX_BYTES]);
        assertLetGo(Reason.MALFORMED, hello(), "GET / HTTP/1.1".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    }

    @Test
    void anotherVersionIsTold() throws IOException {
        byte[] later = hello();
        later[4] = 2;
        assertLetGo(Reason.WRONG_VERSION, later);
    }

    @Test
    void whatIsNotDueIsRefused() throws IOException {
        assertLetGo(Reason.MALFORMED, Message.encode(new Message.Map("weights", 0, NO_EVENT)));
        assertLetGo(Reason.MALFORMED, hello(), hello());
        assertLetGo(Reason.MALFORMED, hello(), Message.encode(new Message.Released()));
        assertLetGo(Reason.MALFORMED, hello(), Message.encode(new Message.Buffer(1, 1, NO_EVENT, NO_EVENT)));
    }

    @Test
    void absurdSizesAreRefused() throws IOException {
        assertLetGo(Reason.MALFORMED, hello(), Message.encode(new Message.Map("weights", Long.MIN_VALUE, NO_EVENT)));
        try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
            socket.send(new byte[Message.MAX_BYTES + 1]);
            assertEnds(socket);
        }
    }

    @Test
    void anEventThatIsNoneIsRefusedAndNothingIsMapped() throws IOException {
        try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
            socket.send(hello());
            next(socket).attached().ifPresent(Descriptor::close);
            socket.send(Message.encode(new Message.Map("weights", 0, NO_EVENT)));
            assertThat(Message.decode(next(socket).bytes()))
                    .isInstanceOfSatisfying(
                            Message.Refused.class,
                            refused -> assertThat(refused.reason()).isEqualTo(Reason.PEER_FAILED));
            assertThat(exported.importers()).isEmpty();
        }
    }

    @Test
    void whatSomebodyElseMappedCannotBeReleased() throws IOException {
        try (ImportedPool imported = gpus.connect();
                ImportedBuffer _ = imported.map("weights", 0, gpus.guestStream);
                LocalSocket socket = LocalSocket.connect(gpus.path)) {
            socket.send(hello());
            next(socket).attached().ifPresent(Descriptor::close);
            for (long id = 0; id < 3; id++) {
                socket.send(Message.encode(new Message.Release(id)));
                assertThat(Message.decode(next(socket).bytes())).isInstanceOf(Message.Refused.class);
            }
            assertThat(exported.importers()).hasSize(1);
        }
    }

    @Test
    void descriptorsThatNobodyAskedForAreClosed() throws IOException {
        try (LocalSocket socket = LocalSocket.connect(gpus.path);
                Descriptor memory = Descriptor.ofMemory("unasked")) {
            socket.send(hello(), memory);
            assertThat(Message.decode(next(socket).bytes())).isInstanceOf(Message.Pool.class);
        }
    }

    @Test
    void whoNeverReadsIsLetGoAndHoldsUpNobody() throws IOException {
        try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
            socket.send(hello());
            byte[] question = Message.encode(new Message.Map("nothing", 0, NO_EVENT));
            long deadline = System.nanoTime() + LONG.toNanos();
            boolean ended = false;
            while (!ended && System.nanoTime() < deadline) {
                try {
                    socket.send(question);
                } catch (IOException fullOrClosed) {
                    ended = String.valueOf(fullOrClosed.getMessage()).contains("gone");
                }
            }
            assertThat(ended).isTrue();
        }
    }

    /// Each message of a session is answered, or ends the session. The property `cistern.testkit.sessions` says how
    /// many sessions.
    @Test
    void damagedSessionsAreAnsweredOrEnd() throws IOException {
        SplittableRandom random = new SplittableRandom(Long.getLong("cistern.testkit.seed", 20_260_101L));
        List<byte[]> whole = List.of(
                hello(),
                Message.encode(new Message.Map("weights", 0, NO_EVENT)),
                Message.encode(new Message.Release(1)),
                Message.encode(new Message.Released()));
        for (int session = Integer.getInteger("cistern.testkit.sessions", 150); session > 0; session--) {
            try (LocalSocket socket = LocalSocket.connect(gpus.path)) {
                for (byte[] message : whole) {
                    socket.send(random.nextInt(3) == 0 ? damaged(message, random) : message);
                    next(socket).attached().ifPresent(Descriptor::close);
                }
            } catch (IOException ended) {
                assertThat(ended).isNotNull();
            }
        }
    }

    private static byte[] damaged(byte[] whole, SplittableRandom random) {
        byte[] copy = Arrays.copyOf(whole, random.nextInt(4) == 0 ? random.nextInt(whole.length) + 1 : whole.length);
        for (int flips = random.nextInt(4); flips >= 0; flips--) {
            copy[random.nextInt(copy.length)] = (byte) random.nextInt();
        }
        return copy;
    }

    @Test
    void whoOnlyConnectsHoldsUpNobody() throws IOException {
        List<LocalSocket> silent = new ArrayList<>();
        for (int i = 0; i < 30; i++) {
            silent.add(LocalSocket.connect(gpus.path));
        }
        assertThatCode(() -> gpus.connect().close()).doesNotThrowAnyException();
        silent.forEach(LocalSocket::close);
    }

    // --- Exporters that are none ---

    /// An exporter that answers with what a function makes of a real one's answer.
    private void withFakeExporter(Function<Message, Optional<byte[]>> answers, Runnable importer) throws Exception {
        try (LocalListener listener = LocalListener.open(fake)) {
            Thread server = Thread.ofPlatform().start(() -> serveOnce(listener, answers));
            importer.run();
            server.join();
        }
    }

    private static void serveOnce(LocalListener listener, Function<Message, Optional<byte[]>> answers) {
        try {
            Poll.readable(LONG, listener.descriptor().number());
            try (LocalSocket socket = listener.accept().orElseThrow();
                    Descriptor nothing = Descriptor.ofMemory("no pool")) {
                while (true) {
                    Optional<byte[]> answer =
                            answers.apply(Message.decode(next(socket).bytes()));
                    if (answer.isEmpty()) {
                        return;
                    }
                    socket.send(answer.get(), nothing);
                }
            }
        } catch (IOException ended) {
            assertThat(ended).isNotNull();
        }
    }

    private ImportedPool connectToFake() {
        return ImportedPool.builder(gpus.guest).patience(Duration.ofSeconds(5)).connect(fake);
    }

    @Test
    void anAnswerThatIsNoMessageIsRefused() throws Exception {
        withFakeExporter(
                asked -> Optional.of(new byte[] {9, 9}), () -> assertRefused(Reason.MALFORMED, this::connectToFake));
        withFakeExporter(
                asked -> Optional.of(Message.encode(new Message.Released())),
                () -> assertRefused(Reason.MALFORMED, this::connectToFake));
    }

    @Test
    void aDescriptorThatIsNoPoolIsRefusedByTheDriver() throws Exception {
        Message.Pool pool = new Message.Pool(gpus.owner.devices().uuid(0), 1, 3, NO_EVENT);
        withFakeExporter(
                asked -> Optional.of(Message.encode(pool)),
                () -> assertThat(org.assertj.core.api.Assertions.catchThrowable(this::connectToFake))
                        .isInstanceOf(io.cistern.cuda.CudaException.class));
    }

    @Test
    void anExporterThatEndsInsteadOfAnsweringIsLost() throws Exception {
        withFakeExporter(asked -> Optional.empty(), () -> assertRefused(Reason.PEER_LOST, this::connectToFake));
    }

    @Test
    void aPointerShorterThanTheExporterSaysIsUnmapped() throws Exception {
        long address = gpus.allocate(exported);
        byte[] pointer = gpus.owner.sharing().exportPointer(0, address);
        long event = gpus.owner.sharing().createEvent(0);
        DriverHandle handle = new DriverHandle(gpus.owner.sharing().exportEvent(0, event));
        Message.Buffer lie = new Message.Buffer(1, 2 * TwoGpus.BYTES, new DriverHandle(pointer), handle);
        try (Descriptor pool = new Descriptor(gpus.owner.sharing().exportPool(0, exported.handle()));
                LocalListener listener = LocalListener.open(fake)) {
            Thread server = Thread.ofPlatform().start(() -> serveLies(listener, pool, lie));
            try (ImportedPool imported = connectToFake()) {
                assertRefused(Reason.WRONG_SIZE, () -> imported.map("weights", 0, gpus.guestStream));
                assertRefused(Reason.MALFORMED, () -> imported.map("weights", 17, gpus.guestStream));
            }
            server.join();
        }
        assertThat(pointer).hasSize(Sharing.HANDLE_BYTES);
    }

    private void serveLies(LocalListener listener, Descriptor pool, Message.Buffer lie) {
        Message.Pool description = new Message.Pool(gpus.owner.devices().uuid(0), 1, 0, NO_EVENT);
        try {
            Poll.readable(LONG, listener.descriptor().number());
            try (LocalSocket socket = listener.accept().orElseThrow()) {
                while (true) {
                    switch (Message.decode(next(socket).bytes())) {
                        case Message.Hello _ -> socket.send(Message.encode(description), pool);
                        case Message.Map _ -> socket.send(Message.encode(lie));
                        default -> socket.send(Message.encode(new Message.Released()));
                    }
                }
            }
        } catch (IOException ended) {
            assertThat(ended).isNotNull();
        }
    }
}
