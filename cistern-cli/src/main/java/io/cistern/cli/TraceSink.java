package io.cistern.cli;

/// Takes the rows of a trace as they are made.
interface TraceSink {
    /// A block is allocated.
    void allocate(long id, long byteSize, long stream);

    /// A block is freed.
    ///
    /// @param stream the stream of the last use
    void free(long id, long stream);

    /// A stream ends.
    void end(long stream);
}
