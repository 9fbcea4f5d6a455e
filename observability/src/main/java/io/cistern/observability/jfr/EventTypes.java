package io.cistern.observability.jfr;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.SettingDefinition;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

/// The events that [FlightEvents] writes.
final class EventTypes {
    private EventTypes() {}

    /// Holds the fields that all events of allocators share.
    @Category({"Cistern", "Device Memory"})
    @StackTrace(false)
    abstract static class OfAllocator extends Event {
        @Label("Allocator")
        @Description("The allocator's spec, or the pool's name")
        @Nullable
        String allocator;

        @Label("Device")
        @Description("The device's ordinal")
        int device;
    }

    /// Holds the fields that events about a range of addresses share.
    abstract static class OfAddresses extends OfAllocator {
        @Label("Address")
        @MemoryAddress
        long address;

        @Label("Size")
        @DataAmount
        long byteSize;

        final void set(String allocator, int device, long address, long byteSize) {
            this.allocator = allocator;
            this.device = device;
            this.address = address;
            this.byteSize = byteSize;
        }
    }

    @Name("cistern.SegmentAcquired")
    @Label("Segment Acquired")
    @Description("An allocator obtained memory from the driver, or mapped pages")
    @StackTrace(true)
    static final class SegmentAcquired extends OfAddresses {}

    @Name("cistern.SegmentReleased")
    @Label("Segment Released")
    @Description("An allocator released memory to the driver, or unmapped pages")
    @StackTrace(true)
    static final class SegmentReleased extends OfAddresses {}

    @Name("cistern.PageMoved")
    @Label("Page Moved")
    @Description("An allocator uses a physical page at another address")
    static final class PageMoved extends OfAddresses {
        @Label("Former Address")
        @MemoryAddress
        long formerAddress;
    }

    @Name("cistern.Trim")
    @Label("Trim")
    @Description("An allocator released idle memory to the driver on request")
    @StackTrace(true)
    static final class Trim extends OfAllocator {
        @Label("Bytes to Keep")
        @DataAmount
        long keepBytes;

        @Label("Waited")
        @Description("Whether it waited for running work")
        boolean waited;

        @Label("Bytes Returned")
        @DataAmount
        long returnedBytes;

        @Label("Took")
        @Timespan
        long took;
    }

    @Name("cistern.ReclaimStep")
    @Label("Reclaim Step")
    @Description("A request found no memory, and Cistern tried a step to free some")
    static final class ReclaimStep extends OfAllocator {
        @Label("Requested Size")
        @DataAmount
        long byteSize;

        @Label("Step")
        @Nullable
        String step;

        @Label("Bytes Reclaimed")
        @Description("If known to the step")
        @DataAmount
        long reclaimedBytes;

        @Label("Took")
        @Timespan
        long took;
    }

    @Name("cistern.OutOfMemory")
    @Label("Device Out of Memory")
    @Description("A request failed: memory ran out, or a limit refused it")
    @StackTrace(true)
    static final class OutOfMemory extends OfAllocator {
        @Label("Requested Size")
        @DataAmount
        long byteSize;

        @Label("Stream")
        @MemoryAddress
        long stream;

        @Label("Free on Device")
        @Description("Reported by the driver, for all processes")
        @DataAmount
        long freeBytes;

        @Label("Total of Device")
        @DataAmount
        long totalBytes;

        @Label("Reserved")
        @Description("Bytes that the allocator holds from the driver")
        @DataAmount
        long reservedBytes;

        @Label("Requested")
        @Description("Bytes requested for the allocator's live blocks")
        @DataAmount
        long requestedBytes;

        @Label("Largest Free Block")
        @DataAmount
        long largestFreeBytes;

        @Label("Steps Tried")
        @Nullable
        String steps;
    }

    @Name("cistern.SlowAllocation")
    @Label("Slow Allocation")
    @Description("An allocation took at least as long as the threshold")
    @StackTrace(true)
    static final class SlowAllocation extends OfAddresses {
        @Label("Stream")
        @MemoryAddress
        long stream;

        @Label("Took")
        @Timespan
        long took;

        /// Only declares the setting: the writer of events reads its value directly.
        @SettingDefinition
        @Name("slowerThan")
        @Label("Slower Than")
        @Description("Allocations that took at least this long are recorded")
        boolean isSlower(LeastSetting.SlowerThan least) {
            return least.isKnown();
        }
    }

    @Name("cistern.AllocationSample")
    @Label("Allocation Sample")
    @Description("An allocation that represents all that its thread allocated since the previous sample")
    @StackTrace(true)
    static final class AllocationSample extends OfAddresses {
        @Label("Stream")
        @MemoryAddress
        long stream;

        @Label("Weight")
        @Description("Bytes since the previous sample; the weights of all samples add up to about the bytes allocated")
        @DataAmount
        long weight;

        /// Only declares the setting: the writer of events reads its value directly.
        @SettingDefinition
        @Name("interval")
        @Label("Interval")
        @Description("Bytes between two samples of a thread")
        boolean isDue(LeastSetting.SampleInterval interval) {
            return interval.isKnown();
        }
    }

    @Name("cistern.Scope")
    @Label("Scope")
    @Description("A thread allocated from an allocator or a pool through a scope")
    static final class Scope extends OfAllocator {}

    @Name("cistern.CurrentChanged")
    @Label("Current Allocator Changed")
    @Description("Another allocator became current on a device")
    @StackTrace(true)
    static final class CurrentChanged extends OfAllocator {
        @Label("Former Allocator")
        @Nullable
        String former;
    }

    @Name("cistern.Annotation")
    @Label("Annotation")
    @Description("The program marked a moment")
    static final class Annotation extends OfAllocator {
        @Label("Text")
        @Nullable
        String text;
    }

    @Name("cistern.DeviceStatistics")
    @Label("Device Statistics")
    @Description("The memory of a device and of all allocators on it")
    @Category({"Cistern", "Device Memory"})
    @Period("1 s")
    @StackTrace(false)
    static final class DeviceStatistics extends Event {
        @Label("Device")
        @Description("The device's ordinal")
        int device;

        @Label("Name")
        @Nullable
        String name;

        @Label("Total")
        @DataAmount
        long totalBytes;

        @Label("Free")
        @Description("Reported by the driver, for all processes")
        @DataAmount
        long freeBytes;

        @Label("Reserved")
        @Description("Bytes that the allocators hold from the driver, if they report it")
        @DataAmount
        long reservedBytes;

        @Label("Requested")
        @Description("Bytes requested for live blocks")
        @DataAmount
        long requestedBytes;

        @Label("Live Blocks")
        long liveBlocks;
    }

    @Name("cistern.AllocatorStatistics")
    @Label("Allocator Statistics")
    @Description("The memory of an allocator on a device")
    @Period("1 s")
    static final class AllocatorStatistics extends OfAllocator {
        @Label("Pool")
        @Description("The tag of the pool that it belongs to")
        @Nullable
        String pool;

        @Label("Requested")
        @DataAmount
        long requestedBytes;

        @Label("Requested, Peak")
        @DataAmount
        long requestedPeakBytes;

        @Label("Reserved")
        @DataAmount
        long reservedBytes;

        @Label("Largest Free Block")
        @DataAmount
        long largestFreeBytes;

        @Label("Stranded")
        @Description("Idle or waiting bytes kept for the stream that used them")
        @DataAmount
        long strandedBytes;

        @Label("Live Blocks")
        long liveBlocks;

        @Label("Allocations")
        long allocations;

        @Label("Frees")
        long frees;
    }

    @Name("cistern.Leak")
    @Label("Leak")
    @Description("Blocks that one place in the program allocated and that are still live")
    static final class Leak extends OfAllocator {
        @Label("Site")
        @Description(
                "The frames that allocated them, the innermost first; empty if the leak level does not record them")
        @Nullable
        String site;

        @Label("Blocks")
        long blocks;

        @Label("Size")
        @DataAmount
        long byteSize;

        @Label("Oldest Age")
        @Timespan(Timespan.MILLISECONDS)
        long oldestAge;
    }
}
