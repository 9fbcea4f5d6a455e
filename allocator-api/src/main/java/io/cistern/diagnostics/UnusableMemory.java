package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import java.io.Serializable;

/// Memory that an allocator holds on a device and could not use for a request.
///
/// @param reason why it could not
/// @param byteSize bytes, above 0
/// @param holder the stream, allocator or pool that holds it, for people; empty if naming it does not help
/// @param remedy a setting or a call that would make it usable, as a sentence for people; empty if there is none
public record UnusableMemory(Reason reason, long byteSize, String holder, String remedy) implements Serializable {
    /// Why memory can't serve a request.
    public enum Reason {
        /// A page or segment has a live block too, so it can't go elsewhere as a whole.
        BESIDE_LIVE_BLOCKS("idle next to live blocks"),
        /// The pieces are smaller than the smallest page of the driver.
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

    /// Returns this as one line for people.
    public String text() {
        return ByteSizes.count(byteSize) + " " + reason.text() + (holder.isEmpty() ? "" : ", " + holder)
                + (remedy.isEmpty() ? "" : ": " + remedy);
    }
}
