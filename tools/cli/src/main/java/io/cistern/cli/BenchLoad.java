package io.cistern.cli;

/// What one thread of a case does over and over. One thread at a time calls it, the same for all rounds.
interface BenchLoad {
    /// Allocates what stays alive while it is measured.
    default void begin() {}

    /// Whether it gets on without the loads of other threads.
    default boolean standsAlone() {
        return true;
    }

    /// Makes so many pairs and nothing else.
    void run(int pairs);

    /// Makes as many pairs as there are elements, and writes what each took.
    void time(long[] nanos);

    /// Frees what [#begin] allocated, or what it has become.
    default void end() {}
}
