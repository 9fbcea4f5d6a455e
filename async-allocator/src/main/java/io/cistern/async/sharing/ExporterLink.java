package io.cistern.async.sharing;

import io.cistern.cuda.process.Descriptor;
import io.cistern.cuda.process.LocalMessage;
import io.cistern.cuda.process.LocalSocket;
import io.cistern.cuda.process.Poll;
import io.cistern.cuda.process.ProcessDescriptor;
import io.cistern.errors.SharingException;
import io.cistern.errors.SharingException.Reason;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.function.LongPredicate;

/// An importer's connection, which asks one question at a time and waits for its answer. After a failure in
/// between, it asks nothing more. If an answer was only late, buffers are still [released][#release], and
/// one that was mapped by that answer is released at the end.
final class ExporterLink implements AutoCloseable {
    private final Path path;
    private final LocalSocket socket;
    private final LocalSocket.Peer exporter;
    private final Duration patience;
    private boolean lost;

    /// Whether the exporter may still read what is sent: an answer was late.
    private boolean isLate;

    private ExporterLink(Path path, LocalSocket socket, LocalSocket.Peer exporter, Duration patience) {
        this.path = path;
        this.socket = socket;
        this.exporter = exporter;
        this.patience = patience;
    }

    /// @throws IllegalArgumentException if it is negative
    static Duration checked(Duration patience) {
        if (patience.isNegative()) {
            throw new IllegalArgumentException("patience is negative: " + patience);
        }
        return patience;
    }

    /// Connects to the process that serves at a path.
    ///
    /// @param mayServe decides, by user number, which users may serve
    static ExporterLink connect(Path path, Duration patience, LongPredicate mayServe) {
        LocalSocket socket = null;
        try {
            socket = LocalSocket.connect(path);
            LocalSocket.Peer exporter = socket.peer();
            if (mayServe.test(exporter.userId())) {
                return new ExporterLink(path, socket, exporter, patience);
            }
            socket.close();
            throw new SharingException(
                    Reason.WRONG_USER,
                    path + " is served by user " + exporter.userId() + ", not by the user of this process");
        } catch (UnsupportedOperationException elsewhere) {
            throw new SharingException(Reason.NOT_SUPPORTED, "memory can be shared only on Linux", elsewhere);
        } catch (IOException refused) {
            if (socket != null) {
                socket.close();
            }
            throw new SharingException(
                    Reason.UNREACHABLE, "no pool is served at " + path + ": " + refused.getMessage(), refused);
        }
    }

    long pid() {
        return exporter.pid();
    }

    /// An answer and the descriptor that came with it; the caller closes the descriptor.
    record Answer<T extends Message>(T message, Optional<Descriptor> attached) {}

    /// Asks a question that has an answer of one kind.
    ///
    /// @throws SharingException if the exporter refuses, is lost, or answers wrongly
    synchronized <T extends Message> Answer<T> ask(Message question, Class<T> kind) {
        if (lost) {
            throw new SharingException(
                    Reason.PEER_LOST, "the exporter at " + path + ", process " + exporter.pid() + ", has exited");
        }
        LocalMessage received;
        try {
            send(question);
            received = receive();
        } catch (IOException broken) {
            lost = true;
            throw new SharingException(
                    Reason.PEER_LOST,
                    "the exporter at " + path + " no longer responds: " + broken.getMessage(),
                    broken);
        }
        return checked(received, kind);
    }

    /// Sends a question. An exporter that refused before it was asked has already closed; its refusal can still
    /// be read.
    private void send(Message question) throws IOException {
        try {
            socket.send(Message.encode(question));
        } catch (IOException closed) {
            if (Poll.readable(Duration.ZERO, socket.descriptor().number()).isEmpty()) {
                throw closed;
            }
        }
    }

    private LocalMessage receive() throws IOException {
        if (Poll.readable(patience, socket.descriptor().number()).isEmpty()) {
            lost = true;
            isLate = true;
            throw new SharingException(
                    Reason.UNREACHABLE,
                    "the exporter at " + path + " does not answer within " + patience.toMillis() + " ms");
        }
        return socket.receive(Message.MAX_BYTES).orElseThrow(() -> new IOException("no message could be read"));
    }

    private <T extends Message> Answer<T> checked(LocalMessage received, Class<T> kind) {
        try {
            Message message = Message.decode(received.bytes());
            if (kind.isInstance(message)) {
                return new Answer<>(kind.cast(message), received.attached());
            }
            if (message instanceof Message.Refused refused) {
                throw new SharingException(refused.reason(), "the exporter at " + path + " refused: " + refused.text());
            }
            throw unexpected("it answered with a " + message.getClass().getSimpleName());
        } catch (SharingException failure) {
            received.attached().ifPresent(Descriptor::close);
            if (failure.reason() == Reason.MALFORMED || failure.reason() == Reason.WRONG_VERSION) {
                lost = true;
            }
            throw failure;
        }
    }

    /// Notifies the exporter that a use has ended, unless the exporter is gone or has broken the protocol.
    ///
    /// @throws SharingException [Reason#PEER_FAILED] if the exporter's driver refuses
    synchronized void release(long use) {
        if (isLate) {
            releaseUnanswered(use);
            return;
        }
        try {
            ask(new Message.Release(use), Message.Released.class);
        } catch (SharingException failure) {
            if (failure.reason() == Reason.PEER_FAILED) {
                throw failure;
            }
        }
    }

    private void releaseUnanswered(long use) {
        try {
            socket.send(Message.encode(new Message.Release(use)));
        } catch (IOException gone) {
            isLate = false;
        }
    }

    /// Releases what late answers have mapped.
    private void releaseLate() {
        try {
            Optional<LocalMessage> answer = socket.receive(Message.MAX_BYTES);
            for (; answer.isPresent(); answer = socket.receive(Message.MAX_BYTES)) {
                answer.get().attached().ifPresent(Descriptor::close);
                if (Message.decode(answer.get().bytes()) instanceof Message.Buffer mapped) {
                    releaseUnanswered(mapped.id());
                }
            }
        } catch (IOException | SharingException gone) {
            isLate = false;
        }
    }

    /// Returns the failure of an exporter that breaks the protocol.
    SharingException unexpected(String what) {
        return new SharingException(Reason.MALFORMED, path + " is not the socket of an exporter: " + what);
    }

    /// Fetches a descriptor of the exporter's process.
    Descriptor fetch(int number) {
        try (ProcessDescriptor process = ProcessDescriptor.open(exporter.pid())) {
            return process.copyOf(number);
        } catch (IOException refused) {
            throw new SharingException(
                    Reason.NOT_SUPPORTED,
                    "descriptors of process " + exporter.pid() + " can't be fetched: " + refused.getMessage()
                            + "; gain the right to trace it, or use Transfer.SOCKET",
                    refused);
        }
    }

    /// Returns whether the exporter was connected a moment ago. It sends nothing unasked, so if there is
    /// anything to read, the connection has ended.
    synchronized boolean isPresent() {
        if (!lost) {
            try {
                lost = !Poll.readable(Duration.ZERO, socket.descriptor().number())
                        .isEmpty();
            } catch (IOException broken) {
                lost = true;
            }
        }
        return !lost;
    }

    @Override
    public synchronized void close() {
        if (isLate) {
            releaseLate();
        }
        lost = true;
        isLate = false;
        socket.close();
    }
}
