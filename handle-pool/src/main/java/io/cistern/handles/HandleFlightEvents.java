package io.cistern.handles;

import io.cistern.Registration;
import jdk.jfr.FlightRecorder;
import jdk.jfr.FlightRecorderListener;

/// Writes the statistics of a pool into recordings of the flight recorder. Nothing of that is started by a
/// pool: a recording does it.
///
/// **Threads.** Any.
final class HandleFlightEvents implements FlightRecorderListener {
    private final Runnable writer;

    private HandleFlightEvents(Runnable writer) {
        this.writer = writer;
    }

    /// Has a recording call a writer of events, now or when one starts.
    ///
    /// @param writer writes an event a device
    /// @return a registration; closing it stops them
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
