package io.cistern.cli.report;

import com.fasterxml.jackson.core.JsonGenerator;
import io.cistern.cli.trace.Leaks;
import io.cistern.cli.trace.Leaks.Leak;
import io.cistern.cli.trace.Recording;
import java.io.IOException;
import java.util.List;

/// The sites that look like leaks on one device.
///
/// @param device the device's ordinal
public record ShownLeaks(int device, Leaks leaks) {
    /// Looks for leaks on each device of a program.
    static List<ShownLeaks> of(Recording recording) {
        return recording.byDevice().stream()
                .map(each -> new ShownLeaks((int) each.ordinals()[0], Leaks.of(each)))
                .toList();
    }

    /// Writes them as an array.
    static void write(List<ShownLeaks> devices, JsonGenerator json) throws IOException {
        json.writeStartArray();
        for (ShownLeaks each : devices) {
            json.writeStartObject();
            json.writeNumberField("device", each.device);
            json.writeStringField("unknown", each.leaks.unknown());
            json.writeArrayFieldStart("found");
            for (Leak leak : each.leaks.found()) {
                json.writeStartObject();
                json.writeStringField("site", leak.site());
                json.writeNumberField("byteSize", leak.byteSize());
                json.writeNumberField("rises", leak.rises());
                json.writeNumberField("allocated", leak.made());
                json.writeNumberField("freed", leak.freed());
                json.writeEndObject();
            }
            json.writeEndArray();
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
