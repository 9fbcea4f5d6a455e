package io.cistern.handles;

import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.Timespan;

@Name("cistern.HandlePoolStatistics")
@Label("Library Handle Statistics")
@Description("The handles of a library on a device")
@Period("1 s")
final class HandlePoolStatisticsEvent extends HandleEvent {
    @Label("Threads")
    @Description("Platform threads that had a handle")
    long threads;

    @Label("Threads Ended")
    long threadsEnded;

    @Label("Mean Life Span")
    @Description("Of the threads that ended")
    @Timespan(Timespan.NANOSECONDS)
    long meanLifeSpan;

    @Label("Leases")
    long leases;

    @Label("Created")
    long created;

    @Label("Reused")
    long reused;

    @Label("Shared")
    @Description("How often a thread took a handle that had been another thread's")
    long shared;

    @Label("Alive")
    long alive;

    @Label("Idle")
    long idle;

    @Label("Waits")
    long waits;

    @Label("Wait Time")
    @Timespan(Timespan.NANOSECONDS)
    long waitTime;

    @Label("Workspaces")
    @DataAmount
    long workspaceBytes;

    static HandlePoolStatisticsEvent of(String library, int device, HandlePoolStatistics counted) {
        var event = new HandlePoolStatisticsEvent();
        event.library = library;
        event.device = device;
        event.threads = counted.threads();
        event.threadsEnded = counted.lifeSpans().count();
        event.meanLifeSpan = counted.lifeSpans().meanNanos();
        event.leases = counted.leases();
        event.created = counted.created();
        event.reused = counted.reused();
        event.shared = counted.shared();
        event.alive = counted.alive();
        event.idle = counted.idle();
        event.waits = counted.waits();
        event.waitTime = counted.waitNanos();
        event.workspaceBytes = counted.workspaceBytes();
        return event;
    }
}
