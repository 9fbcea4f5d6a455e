package io.cistern.cli.bench;

import io.cistern.cli.common.ByteSize;
import java.util.Locale;

/// One case that `cistern bench` measures: a load, its threads and its sizes.
///
/// @param scenario the kind of load
/// @param variant the operation that each thread repeats
/// @param threads how many threads do it
/// @param byteSize the largest block
/// @param liveBlocks how many blocks stay alive during the measurement
record BenchCase(BenchScenario scenario, Variant variant, int threads, long byteSize, int liveBlocks) {
    /// The operation that a thread repeats: one allocation and one free.
    enum Variant {
        /// Allocates a block and frees it.
        PAIR,
        /// Frees a live block chosen at random and allocates one in its place.
        EXCHANGE,
        /// Pairs on a stream of the thread's own.
        OWN_STREAMS,
        /// Pairs on a stream that all threads share.
        ONE_STREAM,
        /// One thread allocates blocks, a second thread frees them.
        HANDOFF;

        /// Returns the name in results.
        String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    /// Returns a name for people: `threads own streams, 2 threads, up to 4.00 KiB`.
    String label() {
        StringBuilder text = new StringBuilder(scenario.label());
        if (!variant.label().equals(scenario.label())) {
            text.append(' ').append(variant.label());
        }
        text.append(", ").append(threads).append(threads == 1 ? " thread" : " threads");
        text.append(", up to ").append(ByteSize.format(byteSize));
        return text.append(liveBlocks == 0 ? "" : ", " + liveBlocks + " blocks alive")
                .toString();
    }

    /// Returns how many pairs are under way at once: the two threads of a hand-off make one pair together.
    int pairMakers() {
        return variant == Variant.HANDOFF ? 1 : threads;
    }
}
