package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import java.io.Serializable;

/// Memory that an allocator holds on a device and could not use for a request.
///
/// @param reason why the allocator could not use it
/// @param byteSize bytes, above 0
/// @param holder the stream, allocator or pool that holds it, in words; empty if naming it does not help
/// @param remedy a setting or a call that would make it usable, as a human-readable text; empty if there is
///     none
public record UnusableMemory(Reason reason, long byteSize, String holder, String remedy) implements Serializable {
    /// Why memory can't serve a request.
    public enum Reason {
        /// It lies in a page or segment that also has a live block, so that page or segment can't be used
        /// elsewhere.
        BESIDE_LIVE_BLOCKS("idle next to live blocks"),
        /// It lies in pieces smaller than the driver's smallest page.
        SMALLER_THAN_A_PAGE("idle in pieces smaller than a page"),
        /// Another stream keeps the idle memory.
        IDLE_ELSEWHERE("idle"),
        /// Freed blocks that work of a stream may still use.
        WAITING("freed, waiting for work that may use it"),
        /// Idle memory whose addresses are in a captured graph, and freed blocks that graphs keep.
        CAPTURED("idle, in a captured graph"),
        /// Another allocator or pool of the process holds it.
        OTHER_ALLOCATOR("idle"),
        /// The difference between sizes as requested and as allocated.
        ROUNDING("lost to rounding");

        private final String text;

        Reason(String text) {
            this.text = text;
        }

        /// Returns the reason in words.
        public String text() {
            return text;
        }
    }

    /// Returns this as one human-readable line.
    public String text() {
        return ByteSizes.count(byteSize) + " " + reason.text() + (holder.isEmpty() ? "" : ", " + holder)
                + (remedy.isEmpty() ? "" : ": " + remedy);
    }
}
