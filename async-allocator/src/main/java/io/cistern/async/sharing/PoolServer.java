package io.cistern.async.sharing;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.EventFd;
import io.cistern.cuda.process.LocalListener;
import io.cistern.cuda.process.LocalMessage;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.Poll;
import io.cistern.cuda.process.SystemCallException;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.io.EOFException;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.function.LongPredicate;

/// Answers the importers of a pool, on one thread that never waits for any of them. A message is received and
/// sent whole or not at all; an importer that does not take an answer is disconnected.
///
/// 1. A process that connects must belong to the same user, which the operating system reports.
/// 2. The first message is a [Message.Hello]; then maps and releases follow, each answered before the next is
///    read.
/// 3. A malformed or unexpected message is refused, and the connection ends.
/// 4. If a connection ends while its process still has a buffer mapped, the server waits for the process: only
///    its end shows that its work on the memory has ended too.
final class PoolServer implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(PoolServer.class.getName());
    private static final Duration A_WHILE = Duration.ofHours(1);
    private static final Duration BEFORE_TRYING_AGAIN = Duration.ofMillis(100);

    private final Publications publications;
    private final Path path;
    private final LongPredicate mayConnect;
    private final LocalListener listener;
    private final EventFd wake;
    private final Descriptor exported;
    private final Message.Pool description;
    private final List<Importer> importers = new ArrayList<>();
    private boolean refusesConnections;
    private volatile boolean closing;

    /// @param exported the pool's descriptor; the server closes it
    /// @param mayConnect decides, by user number, which users may connect
    PoolServer(
            Publications publications,
            Path path,
            Descriptor exported,
            Message.Pool description,
            LongPredicate mayConnect)
            throws IOException {
        this.publications = publications;
        this.path = path;
        this.exported = exported;
        this.description = description;
        this.mayConnect = mayConnect;
        listener = LocalListener.open(path);
        try {
            wake = new EventFd();
        } catch (IOException failure) {
            listener.close();
            throw failure;
        }
    }

    /// Serves until [#close].
    void serve() {
        try {
            while (!closing) {
                awaitAndAnswer();
            }
        } catch (IOException | RuntimeException failure) {
            LOG.log(Level.ERROR, "the pool at " + path + " is no longer served", failure);
        } finally {
            listener.close();
            List.copyOf(importers).forEach(this::forget);
            exported.close();
        }
    }

    private void awaitAndAnswer() throws IOException {
        List<Importer> present = List.copyOf(importers);
        int[] numbers = new int[present.size() + 2];
        numbers[0] = wake.descriptor().number();
        // If there is no room for another connection, it is not polled: the system would report it endlessly.
        numbers[1] = refusesConnections ? numbers[0] : listener.descriptor().number();
        for (int i = 0; i < present.size(); i++) {
            numbers[i + 2] = present.get(i).descriptor().number();
        }
        BitSet readable = Poll.readable(refusesConnections ? BEFORE_TRYING_AGAIN : A_WHILE, numbers);
        refusesConnections = false;
        if (closing) {
            return;
        }
        for (int i = 0; i < present.size(); i++) {
            if (readable.get(i + 2)) {
                attend(present.get(i));
            }
        }
        if (readable.get(1)) {
            accept();
        }
    }

    private void accept() {
        try {
            Optional<LocalSocket> accepted = listener.accept();
            if (accepted.isPresent()) {
                admit(accepted.get());
            }
        } catch (IOException noRoom) {
            refusesConnections = true;
            LOG.log(Level.WARNING, "the pool at {0} can''t take another importer now: {1}", path, noRoom.getMessage());
        }
    }

    private void admit(LocalSocket socket) throws SystemCallException {
        boolean isAdmitted = false;
        try {
            long user = socket.peer().userId();
            if (mayConnect.test(user)) {
                importers.add(new Importer(socket));
                isAdmitted = true;
            } else {
                turnAway(
                        socket,
                        Reason.WRONG_USER,
                        "this pool is served to the user that exports it, not to user " + user);
            }
        } catch (RuntimeException failure) {
            LOG.log(Level.WARNING, "the pool at " + path + " turns a process away", failure);
            turnAway(socket, Reason.PEER_FAILED, "the exporter failed: " + failure.getMessage());
        } finally {
            if (!isAdmitted) {
                socket.close();
            }
        }
    }

    private void turnAway(LocalSocket socket, Reason reason, String text) {
        try {
            refuse(socket, reason, text);
        } catch (IOException gone) {
            LOG.log(Level.DEBUG, "a process that connected to {0} has gone: {1}", path, gone.getMessage());
        }
    }

    private static void refuse(LocalSocket socket, Reason reason, String text) throws IOException {
        socket.send(Message.encode(new Message.Refused(reason, text)));
    }

    /// Handles the next message of an importer, or its end.
    private void attend(Importer importer) {
        if (importer.isLost()) {
            forget(importer);
            return;
        }
        try {
            Optional<LocalMessage> received = importer.socket().receive(Message.MAX_BYTES);
            if (received.isPresent()) {
                // Importers have no descriptor to give.
                received.get().attached().ifPresent(Descriptor::close);
                answer(importer, received.get().bytes());
            }
        } catch (EOFException ended) {
            end(importer);
        } catch (IOException | RuntimeException broken) {
            LOG.log(Level.WARNING, "the pool at {0} disconnects {1}: {2}", path, importer, broken.getMessage());
            end(importer);
        }
    }

    private void answer(Importer importer, byte[] question) throws IOException {
        Message asked;
        try {
            asked = Message.decode(question);
            requireDue(importer, asked);
        } catch (SharingException refused) {
            refuse(importer.socket(), refused.reason(), String.valueOf(refused.getMessage()));
            throw new IOException(refused.getMessage(), refused);
        }
        try {
            reply(importer, asked);
        } catch (SharingException refused) {
            refuse(importer.socket(), refused.reason(), String.valueOf(refused.getMessage()));
        } catch (CudaException failure) {
            refuse(importer.socket(), Reason.PEER_FAILED, "the exporter failed: " + failure.getMessage());
        }
    }

    private static void requireDue(Importer importer, Message asked) {
        boolean due = asked instanceof Message.Hello
                ? !importer.hasGreeted()
                : importer.hasGreeted() && (asked instanceof Message.Map || asked instanceof Message.Release);
        if (!due) {
            throw new SharingException(
                    Reason.MALFORMED, "a " + asked.getClass().getSimpleName() + " is not expected here");
        }
    }

    private void reply(Importer importer, Message asked) throws IOException {
        switch (asked) {
            case Message.Hello hello -> {
                importer.greeted();
                byte[] answer = Message.encode(description);
                if (hello.transfer() == Transfer.SOCKET) {
                    importer.socket().send(answer, exported);
                } else {
                    importer.socket().send(answer);
                }
            }
            case Message.Map map -> importer.socket().send(Message.encode(publications.map(importer, map)));
            case Message.Release release -> {
                publications.release(importer, release.id());
                importer.socket().send(Message.encode(new Message.Released()));
            }
            default -> throw new IllegalStateException("not expected here: " + asked);
        }
    }

    /// Handles the end of a connection. Buffers that its process still uses are kept until the process is gone.
    private void end(Importer importer) {
        importer.lose();
        if (!publications.isUsedBy(importer) || !importer.canBeWatched()) {
            forget(importer);
        }
    }

    private void forget(Importer importer) {
        importers.remove(importer);
        importer.lose();
        importer.close();
        publications.drop(importer);
    }

    /// Makes [#serve] return.
    @Override
    public void close() {
        closing = true;
        wake.wake();
    }

    /// Closes the thread's resources, once it has ended or if it was never started.
    void free() {
        wake.close();
        listener.close();
        exported.close();
    }
}
