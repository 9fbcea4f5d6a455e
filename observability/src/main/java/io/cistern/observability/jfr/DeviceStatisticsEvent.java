package io.cistern.observability.jfr;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

@Name("cistern.DeviceStatistics")
@Label("Device Statistics")
@Description("The memory of a device and of all allocators on it")
@Category({"Cistern", "Device Memory"})
@Period("1 s")
@StackTrace(false)
final class DeviceStatisticsEvent extends Event {
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
    @Description("What the allocators hold from the driver, if they report it")
    @DataAmount
    long reservedBytes;

    @Label("Requested")
    @Description("Bytes requested for live blocks")
    @DataAmount
    long requestedBytes;

    @Label("Live Blocks")
    long liveBlocks;
}
