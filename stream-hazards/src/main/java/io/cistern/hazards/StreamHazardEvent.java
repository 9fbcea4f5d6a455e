package io.cistern.hazards;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;
import jdk.jfr.Name;

/// A hazard as an event of Flight Recorder.
@Name("cistern.StreamHazard")
@Label("Stream Hazard")
@Category({"Cistern", "Device Memory"})
@Description("Memory was used without the necessary stream order")
final class StreamHazardEvent extends Event {
    @Label("Kind")
    String kind = "";

    @Label("Address")
    @MemoryAddress
    long address;

    @Label("First Call")
    String first = "";

    @Label("Second Call")
    String second = "";

    @Label("Advice")
    String advice = "";

    static void commit(StreamHazard hazard) {
        StreamHazardEvent event = new StreamHazardEvent();
        if (event.isEnabled()) {
            event.kind = hazard.kind().toString();
            event.address = hazard.address();
            event.first = hazard.first().toString();
            event.second = hazard.second().toString();
            event.advice = hazard.advice();
            event.commit();
        }
    }
}
