package io.cistern.benchmarks.jcuda;

/// A program as JCuda's users write them, once with JCuda's memory and once with Cistern's.
interface JCudaProgram {
    /// What it is called in results.
    String name();

    /// One run, which allocates what it needs and frees it.
    void run(DeviceMalloc memory);

    /// Whether the results of the last run are right.
    boolean isRight();
}
