package io.cistern.cli.bench;

import io.cistern.cli.common.ByteSize;
import java.util.Locale;

/// One thing that is measured.
///
/// @param scenario the kind of load
/// @param variant what is done over and over
/// @param threads how many threads do it
/// @param byteSize the largest block
/// @param liveBlocks how many blocks stay alive meanwhile
record BenchCase(BenchScenario scenario, Variant variant, int threads, long byteSize, int liveBlocks) {
    /// What a thread does over and over; each is one allocation and one free.
    enum Variant {
        /// Allocates a block and frees it.
        PAIR,
        /// Frees a live block chosen at random and allocates one in its place.
        EXCHANGE,
        /// Pairs on a stream of the thread's own.
        OWN_STREAMS,
        /// Pairs on a stream that all threads share.
        ONE_STREAM,
        /// One thread allocates, the other one frees.
        HANDOFF;

        /// As results name it.
        String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    /// For people: `threads own streams, 2 threads, up to 4.00 KiB`.
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

    /// How many of the threads make a pair: the two of a hand-off make one together.
    int pairMakers() {
        return variant == Variant.HANDOFF ? 1 : threads;
    }
}
