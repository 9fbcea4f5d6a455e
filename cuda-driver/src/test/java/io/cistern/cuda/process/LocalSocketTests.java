package io.cistern.cuda.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.EOFException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LocalSocketTests {
    private static final Duration LONG = Duration.ofSeconds(20);

    @TempDir
    private Path folder;

    private Path path;
    private LocalListener listener;
    private LocalSocket client;
    private LocalSocket server;

    @BeforeEach
    void connect() throws IOException {
        assumeTrue(SystemCall.isLinux(), "Linux alone");
        path = folder.resolve("socket");
        listener = LocalListener.open(path);
        client = LocalSocket.connect(path);
        server = listener.accept().orElseThrow();
    }

    @AfterEach
    void close() {
        server.close();
        client.close();
        listener.close();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static LocalMessage next(LocalSocket socket) throws IOException {
        assertThat(Poll.readable(LONG, socket.descriptor().number()).isEmpty()).isFalse();
        return socket.receive(1000).orElseThrow();
    }

    @Test
    void messagesKeepTheirBounds() throws IOException {
        client.send(bytes("one"));
        client.send(bytes("another"));
        assertThat(next(server).bytes()).isEqualTo(bytes("one"));
        assertThat(next(server).bytes()).isEqualTo(bytes("another"));
        assertThat(server.receive(1000)).isEmpty();
    }

    @Test
    void aDescriptorArrivesAsOneOfTheReceiversOwn() throws IOException {
        try (Descriptor memory = memoryWith("shared")) {
            server.send(bytes("here"), memory);
            LocalMessage message = next(client);
            try (Descriptor received = message.attached().orElseThrow()) {
                assertThat(received.number()).isNotEqualTo(memory.number());
                assertThat(content(received)).isEqualTo("shared");
                assertThat(isClosedOnExec(received)).isTrue();
            }
        }
    }

    private static Descriptor memoryWith(String text) throws IOException {
        Descriptor memory = Descriptor.ofMemory("a test");
        try (FileChannel channel = FileChannel.open(file(memory), StandardOpenOption.WRITE)) {
            channel.write(StandardCharsets.UTF_8.encode(text));
        }
        return memory;
    }

    private static Path file(Descriptor descriptor) {
        return Path.of("/proc/self/fd/" + descriptor.number());
    }

    private static String content(Descriptor descriptor) throws IOException {
        return Files.readString(file(descriptor));
    }

    private static boolean isClosedOnExec(Descriptor descriptor) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/fdinfo/" + descriptor.number())).stream()
                .filter(line -> line.startsWith("flags:"))
                .anyMatch(line -> (Long.parseLong(line.substring(6).strip(), 8) & 0x80000) != 0);
    }

    @Test
    void allThatIsMadeHereIsClosedOnExec() throws IOException {
        try (Descriptor memory = Descriptor.ofMemory("a test");
                Descriptor duplicate = memory.duplicate();
                EventFd wake = new EventFd();
                ProcessDescriptor self =
                        ProcessDescriptor.open(ProcessHandle.current().pid())) {
            for (Descriptor each : new Descriptor[] {
                memory,
                duplicate,
                wake.descriptor(),
                self.descriptor(),
                listener.descriptor(),
                client.descriptor(),
                server.descriptor()
            }) {
                assertThat(isClosedOnExec(each)).isTrue();
            }
        }
    }

    @Test
    void theSystemSaysWhoIsThere() throws IOException {
        LocalSocket.Peer here = new LocalSocket.Peer(ProcessHandle.current().pid(), LocalSocket.ownUserId());
        assertThat(server.peer()).isEqualTo(here);
        assertThat(client.peer()).isEqualTo(here);
    }

    @Test
    void onlyTheUserMayConnect() throws IOException {
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
                .isEqualTo("rw-------");
    }

    @Test
    void aMessageThatIsTooLongIsAnErrorAndItsDescriptorIsClosed() throws IOException {
        long before = openDescriptors();
        try (Descriptor memory = memoryWith("shared")) {
            client.send(new byte[1001], memory);
        }
        assertThatThrownBy(() -> server.receive(1000)).hasMessageContaining("more than 1000 bytes");
        assertThat(openDescriptors()).isEqualTo(before);
    }

    private static long openDescriptors() throws IOException {
        try (var numbers = Files.list(Path.of("/proc/self/fd"))) {
            return numbers.count();
        }
    }

    @Test
    void theEndOfTheOtherSideIsSeenBehindWhatItSent() throws IOException {
        client.send(bytes("last"));
        client.close();
        assertThat(next(server).bytes()).isEqualTo(bytes("last"));
        assertThatThrownBy(() -> server.receive(1000)).isInstanceOf(EOFException.class);
        assertThatThrownBy(() -> server.send(bytes("too late")))
                .isInstanceOf(SystemCallException.class)
                .hasMessageContaining("EPIPE");
    }

    @Test
    void whatWasSentBeforeAnEndThatLeftMessagesUnreadIsRead() throws IOException {
        client.send(bytes("never read"));
        server.send(bytes("no"));
        server.close();
        assertThat(next(client).bytes()).isEqualTo(bytes("no"));
        assertThatThrownBy(() -> client.receive(1000)).isInstanceOf(EOFException.class);
    }

    @Test
    void whoNeverReadsIsNotWaitedFor() {
        assertThatThrownBy(() -> {
                    for (int i = 0; i < 100_000; i++) {
                        server.send(new byte[1000]);
                    }
                })
                .isInstanceOf(SystemCallException.class)
                .hasMessageContaining("EAGAIN");
    }

    @Test
    void aPathWhereSomebodyListensIsRefused() {
        assertThatThrownBy(() -> LocalListener.open(path)).hasMessageContaining("EADDRINUSE");
    }

    @Test
    void aSocketThatADeadProcessLeftIsReplaced() throws IOException {
        Path left = leftOver();
        LocalListener.open(left).close();
        assertThat(left).doesNotExist();
    }

    private Path leftOver() throws IOException {
        Path left = folder.resolve("left");
        try (Descriptor dead = LocalSocket.newSocket();
                var arena = java.lang.foreign.Arena.ofConfined()) {
            var address = LocalSocket.address(arena, left);
            SystemCall.BIND.call(dead.number(), address.address(), address.byteSize());
        }
        assertThat(left).exists();
        return left;
    }

    @Test
    void ofThoseThatBeginAtOnceOneListens() throws Exception {
        for (int round = 0; round < 200; round++) {
            Path left = leftOver();
            Queue<LocalListener> listeners = new ConcurrentLinkedQueue<>();
            CyclicBarrier start = new CyclicBarrier(4);
            try (ExecutorService threads = Executors.newFixedThreadPool(start.getParties())) {
                for (int thread = 0; thread < start.getParties(); thread++) {
                    threads.submit(() -> {
                        start.await();
                        return listeners.add(LocalListener.open(left));
                    });
                }
            }
            assertThat(listeners).as("round %s", round).hasSize(1);
            try (LocalListener only = listeners.remove();
                    LocalSocket _ = LocalSocket.connect(left)) {
                only.accept().orElseThrow().close();
            }
        }
    }

    @Test
    void whoBeginsWhileAnotherClosesListens() throws Exception {
        Path next = folder.resolve("next");
        for (int round = 0; round < 500; round++) {
            LocalListener former = LocalListener.open(next);
            Thread closing = Thread.ofPlatform().start(former::close);
            try (LocalListener _ = whenClosed(next);
                    LocalSocket _ = connectedAfter(closing, next)) {
                assertThat(next).exists();
            }
        }
    }

    private static LocalListener whenClosed(Path path) throws IOException {
        while (true) {
            try {
                return LocalListener.open(path);
            } catch (SystemCallException inUse) {
                assertThat(inUse).hasMessageContaining("EADDRINUSE");
            }
        }
    }

    private static LocalSocket connectedAfter(Thread closing, Path path) throws Exception {
        closing.join();
        return LocalSocket.connect(path);
    }

    @Test
    void aFileThatIsNoSocketStays() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "mine");
        assertThatThrownBy(() -> LocalListener.open(file)).hasMessageContaining("EADDRINUSE");
        assertThat(file).hasContent("mine");
    }

    @Test
    void whatStandsAtThePathByNowIsNotTakenAway() throws IOException {
        Files.delete(path);
        try (LocalListener _ = LocalListener.open(path)) {
            listener.close();
            assertThat(path).exists();
            LocalSocket.connect(path).close();
        }
    }

    @Test
    void aPathThatIsTooLongIsRefusedWithTheLimit() {
        Path tooLong = folder.resolve("x".repeat(120));
        assertThatThrownBy(() -> LocalSocket.connect(tooLong))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("at most 107");
    }

    @Test
    void aProcessIsHeldUntilItEnds() throws Exception {
        Process sleeper = new ProcessBuilder("sleep", "100").start();
        try (ProcessDescriptor held = ProcessDescriptor.open(sleeper.pid())) {
            assertThat(held.hasEnded()).isFalse();
            sleeper.destroyForcibly();
            assertThat(Poll.readable(LONG, held.descriptor().number()).get(0)).isTrue();
            assertThat(held.hasEnded()).isTrue();
        }
    }

    @Test
    void aDescriptorIsFetchedByItsNumberWhereThatIsAllowed() throws IOException {
        try (Descriptor memory = memoryWith("shared");
                ProcessDescriptor self =
                        ProcessDescriptor.open(ProcessHandle.current().pid());
                Descriptor fetched = self.copyOf(memory.number())) {
            assertThat(content(fetched)).isEqualTo("shared");
            assertThat(isClosedOnExec(fetched)).isTrue();
            assertThatThrownBy(() -> self.copyOf(100_000)).hasMessageContaining("EBADF");
        }
    }

    @Test
    void awakenedIsAwake() throws IOException {
        try (EventFd wake = new EventFd()) {
            assertThat(Poll.readable(Duration.ZERO, wake.descriptor().number()).isEmpty())
                    .isTrue();
            wake.wake();
            wake.wake();
            assertThat(Poll.readable(LONG, wake.descriptor().number()).get(0)).isTrue();
        }
    }
}
