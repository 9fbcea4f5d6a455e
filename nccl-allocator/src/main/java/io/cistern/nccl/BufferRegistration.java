package io.cistern.nccl;

import io.cistern.MemoryPool;
import java.util.List;

/// The registration of one pool's memory with one communicator. It covers all segments that the pool
/// has on the communicator's device, and those that the pool obtains later. A segment stays registered
/// until the pool releases it or the registration is closed.
///
/// With registered memory, NCCL reads and writes buffers in place, without copying through buffers of
/// its own. Registration is not collective.
///
/// **Order of closing.** Pool, communicator and registration may be closed in any order.
///
/// **Threads.** Any thread may call any method at any time.
public final class BufferRegistration implements AutoCloseable {
    private final Communicator communicator;
    private final MemoryPool pool;
    private final List<RegistrationBook> books;

    BufferRegistration(Communicator communicator, MemoryPool pool, List<RegistrationBook> books) {
        this.communicator = communicator;
        this.pool = pool;
        this.books = List.copyOf(books);
    }

    /// Returns the pool whose memory is registered.
    public MemoryPool pool() {
        return pool;
    }

    /// Returns the communicator with which the memory is registered.
    public Communicator communicator() {
        return communicator;
    }

    /// Returns the number of bytes registered now.
    public long registeredBytes() {
        return books.stream().mapToLong(RegistrationBook::byteSize).sum();
    }

    /// Returns the number of segments registered now.
    public int registeredSegments() {
        return books.stream().mapToInt(RegistrationBook::segments).sum();
    }

    /// Returns one reason for each segment that NCCL did not register. NCCL can still use the memory of such a
    /// segment, but more slowly.
    public List<String> refusals() {
        return books.stream().flatMap(book -> book.refusals().stream()).toList();
    }

    List<RegistrationBook> books() {
        return books;
    }

    /// Returns whether the pool has ended, with all its memory.
    boolean isOver() {
        return books.stream().allMatch(RegistrationBook::isOver);
    }

    /// Deregisters all segments. If the communicator is in a call, this method first waits until that
    /// call returns. Closing twice does nothing.
    @Override
    public void close() {
        communicator.end(this);
    }
}
