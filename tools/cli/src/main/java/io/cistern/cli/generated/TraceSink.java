package io.cistern.cli.generated;

/// Takes the rows of a trace as they are made.
public interface TraceSink {
    /// A block is allocated.
    void allocate(long id, long byteSize, long stream);

    /// A block is freed.
    ///
    /// @param stream the stream of the last use
    void free(long id, long stream);

    /// A block is used on another stream than its own.
    void use(long id, long stream);

    /// A stream waits for all that another one has been given so far.
    void await(long stream, long awaited);

    /// A stream ends.
    void end(long stream);
}
