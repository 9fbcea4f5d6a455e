package io.cistern.benchmarks.programs;

/// A row of a generated program.
///
/// @param op as in the trace format
/// @param id the block; of a wait, the stream that is awaited
/// @param byteSize of the block, if the row allocates it
/// @param stream that the row is about
record ProgramRow(char op, long id, long byteSize, long stream) {}
