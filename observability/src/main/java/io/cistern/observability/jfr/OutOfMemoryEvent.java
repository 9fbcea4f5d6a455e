package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

@Name("cistern.OutOfMemory")
@Label("Device Out of Memory")
@Description("A request failed: memory ran out, or a limit refused it")
@StackTrace(true)
final class OutOfMemoryEvent extends CisternEvent {
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
    @Description("What the allocator holds from the driver")
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
