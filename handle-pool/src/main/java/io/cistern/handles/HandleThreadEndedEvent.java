package io.cistern.handles;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

@Name("cistern.HandleThreadEnded")
@Label("Thread With Library Handle Ended")
@Description("A thread that had a library handle has ended")
final class HandleThreadEndedEvent extends HandleEvent {
    @Label("Ended Thread")
    @Nullable
    String endedThread;

    @Label("Life Span")
    @Description("From the thread's first handle until its end was noticed")
    @Timespan(Timespan.NANOSECONDS)
    long lifeSpan;
}
