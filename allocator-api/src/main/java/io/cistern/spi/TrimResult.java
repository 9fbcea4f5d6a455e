package io.cistern.spi;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/// The result of a trim: how much memory went back, and which memory stayed and why.
///
/// @param returnedBytes bytes that went back to the driver
/// @param reservedBytes bytes that are still reserved; empty if the allocator doesn't know
/// @param left the parts that are still reserved, with reasons; empty if the allocator does not report
///     them. If it does, and no other thread allocated during the trim, their bytes add up to
///     `reservedBytes`
public record TrimResult(long returnedBytes, OptionalLong reservedBytes, List<Left> left) {
    /// Copies the list.
    public TrimResult {
        left = List.copyOf(left);
    }

    /// Why memory stays.
    public enum Reason {
        /// In live blocks.
        IN_USE,
        /// Idle, but work on its stream has not finished.
        IN_FLIGHT,
        /// Freed, but another stream that used it may not have completed its uses.
        USED_BY_OTHER_STREAM,
        /// Idle, but in a page or a segment that also has a block in use.
        SHARED_WITH_USED,
        /// Registered, exported or captured, and so bound to its address.
        PINNED,
        /// Idle, but within the `keepBytes` that may stay.
        KEPT,
        /// Idle, but the driver refused to take it back. A later trim tries again.
        REFUSED
    }

    /// A part of the memory that stayed.
    ///
    /// @param reason why it stayed
    /// @param stream the stream that the memory belongs to; empty unless it belongs to one stream alone
    /// @param byteSize bytes of this part
    public record Left(Reason reason, OptionalLong stream, long byteSize) {}

    /// Returns the sum of several results.
    public static TrimResult sum(List<TrimResult> results) {
        long returned = 0;
        long reserved = 0;
        boolean known = true;
        List<Left> left = new ArrayList<>();
        for (TrimResult result : results) {
            returned += result.returnedBytes;
            reserved += result.reservedBytes.orElse(0);
            known &= result.reservedBytes.isPresent();
            left.addAll(result.left);
        }
        return new TrimResult(returned, known ? OptionalLong.of(reserved) : OptionalLong.empty(), left);
    }

    /// Returns the bytes that stayed for the given reason.
    public long leftBytes(Reason reason) {
        return left.stream()
                .filter(part -> part.reason == reason)
                .mapToLong(Left::byteSize)
                .sum();
    }
}
