package io.cistern.nccl;

import io.cistern.MemoryPool;
import java.util.List;

/// The memory of one pool, registered with one communicator: all segments that the pool has on the communicator's
/// device, those that it gets later too, each until it goes or until this is closed.
///
/// Registered memory lets NCCL read and write buffers where they are, without copying through its own. Nothing about
/// it is collective: ranks may register different pools at different times.
///
/// **Order of the end.** Pool, communicator and registration may be closed in any order.
///
/// **Threads.** Any.
public final class BufferRegistration implements AutoCloseable {
    private final Communicator communicator;
    private final MemoryPool pool;
    private final List<RegistrationBook> books;

    BufferRegistration(Communicator communicator, MemoryPool pool, List<RegistrationBook> books) {
        this.communicator = communicator;
        this.pool = pool;
        this.books = List.copyOf(books);
    }

    /// The pool.
    public MemoryPool pool() {
        return pool;
    }

    /// The communicator.
    public Communicator communicator() {
        return communicator;
    }

    /// Bytes registered now.
    public long registeredBytes() {
        return books.stream().mapToLong(RegistrationBook::byteSize).sum();
    }

    /// How many segments are registered now.
    public int registeredSegments() {
        return books.stream().mapToInt(RegistrationBook::segments).sum();
    }

    /// For each segment that NCCL would not register, why. Such memory works, only slower.
    public List<String> refusals() {
        return books.stream().flatMap(book -> book.refusals().stream()).toList();
    }

    List<RegistrationBook> books() {
        return books;
    }

    /// Deregisters everything, after a call that the communicator may be in. Closing twice does nothing.
    @Override
    public void close() {
        communicator.end(this);
    }
}
