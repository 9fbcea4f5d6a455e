package io.cistern.benchmarks.generated;

/// Receives the rows of a trace one by one.
interface TraceSink {
    /// Records the allocation of a block.
    void allocate(long id, long byteSize, long stream);

    /// Records the free of a block.
    ///
    /// @param stream the stream of the last use
    void free(long id, long stream);

    /// Records the use of a block on a stream other than its own.
    void use(long id, long stream);

    /// Records that a stream waits for all work that another stream has been given so far.
    void await(long stream, long awaited);

    /// Records the end of a stream.
    void end(long stream);
}
