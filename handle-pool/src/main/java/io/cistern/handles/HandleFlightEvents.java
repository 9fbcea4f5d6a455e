package io.cistern.handles;

import io.cistern.Registration;
import jdk.jfr.FlightRecorder;
import jdk.jfr.FlightRecorderListener;

/// Writes the statistics of a pool into recordings of the flight recorder. A pool never starts the recorder;
/// only a recording does.
///
/// **Threads.** Any.
final class HandleFlightEvents implements FlightRecorderListener {
    private final Runnable writer;

    private HandleFlightEvents(Runnable writer) {
        this.writer = writer;
    }

    /// Makes recordings call a writer of events, now or when one starts.
    ///
    /// @param writer writes one event for each device
    /// @return a registration; closing it removes the writer
    static Registration register(Runnable writer) {
        var events = new HandleFlightEvents(writer);
        FlightRecorder.addListener(events);
        return () -> {
            FlightRecorder.removeListener(events);
            if (FlightRecorder.isInitialized()) {
                FlightRecorder.removePeriodicEvent(writer);
            }
        };
    }

    @Override
    public void recorderInitialized(FlightRecorder recorder) {
        FlightRecorder.addPeriodicEvent(HandlePoolStatisticsEvent.class, writer);
    }
}
