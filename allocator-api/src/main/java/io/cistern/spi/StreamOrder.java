package io.cistern.spi;

/// Order between streams, for allocators that move memory from one to another.
public interface StreamOrder {
    /// Marks the present end of a stream.
    ///
    /// @return a fence, to be given to [#release] in the end
    long record(int device, long stream);

    /// Whether the stream has got past the fence.
    boolean passed(int device, long fence);

    /// Makes later work of `stream` wait for the fence.
    void await(int device, long stream, long fence);

    /// Waits on the host until the stream has got past the fence.
    void synchronize(int device, long fence);

    /// Ends a fence; waits made for it stay.
    void release(int device, long fence);
}
