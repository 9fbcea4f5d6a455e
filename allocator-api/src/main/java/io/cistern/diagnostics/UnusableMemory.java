package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import java.io.Serializable;

/// Memory that an allocator holds on a device and could not use for a request.
///
/// @param reason why the allocator could not use it
/// @param byteSize the bytes of this memory, above 0
/// @param holder a human-readable text that names the stream, allocator or pool that holds the memory;
///     empty if the name does not help
/// @param remedy a human-readable text that names a setting or a call that would make the memory usable;
///     empty if there is none
public record UnusableMemory(Reason reason, long byteSize, String holder, String remedy) implements Serializable {
    /// Why memory can't serve a request.
    public enum Reason {
        /// The memory is in a page or segment that also has a live block, so that page or segment can't be
        /// used elsewhere.
        BESIDE_LIVE_BLOCKS("idle next to live blocks"),
        /// The memory is in pieces smaller than the driver's smallest page.
        SMALLER_THAN_A_PAGE("idle in pieces smaller than a page"),
        /// Another stream keeps the idle memory.
        IDLE_ELSEWHERE("idle"),
        /// The memory is in freed blocks that work of a stream may still use.
        WAITING("freed, waiting for work that may use it"),
        /// The memory is idle but its addresses are in a captured graph, or it is in freed blocks that
        /// graphs keep.
        CAPTURED("idle, in a captured graph"),
        /// Another allocator or pool of the process holds the idle memory.
        OTHER_ALLOCATOR("idle"),
        /// The memory is the difference between requested and allocated sizes.
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
