package io.cistern.benchmarks.programs;

/// A row of a generated program.
///
/// @param op the operation, as in the trace format
/// @param id the block; of a wait, the stream that is awaited
/// @param byteSize the block's bytes, if the row allocates it
/// @param stream the stream that the row names
record ProgramRow(char op, long id, long byteSize, long stream) {}
