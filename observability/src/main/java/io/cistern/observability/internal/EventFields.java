package io.cistern.observability.internal;

import io.cistern.diagnostics.MemoryEvent;
import java.util.LinkedHashMap;
import java.util.Map;

/// Lists the fields of an event under their names in a snapshot's JSON. The field `event` names the kind.
final class EventFields {
    private EventFields() {}

    /// Returns the fields in their order; values are strings, numbers and booleans.
    static Map<String, Object> of(MemoryEvent event) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("event", name(event));
        if (event.device() >= 0) {
            fields.put("device", event.device());
        }
        switch (event) {
            case MemoryEvent.Allocated e -> {
                range(fields, e.allocator(), e.address(), e.byteSize());
                fields.put("stream", e.stream());
                fields.put("tookNanos", e.nanos());
            }
            case MemoryEvent.Freed e -> {
                range(fields, e.allocator(), e.address(), e.byteSize());
                fields.put("stream", e.stream());
            }
            case MemoryEvent.UseRecorded e -> {
                fields.put("address", e.address());
                fields.put("stream", e.stream());
            }
            case MemoryEvent.FreeDeferred e -> range(fields, e.allocator(), e.address(), e.byteSize());
            case MemoryEvent.FreeCompleted e -> range(fields, e.allocator(), e.address(), e.byteSize());
            case MemoryEvent.SegmentAcquired e -> range(fields, e.allocator(), e.address(), e.byteSize());
            case MemoryEvent.SegmentReleased e -> range(fields, e.allocator(), e.address(), e.byteSize());
            case MemoryEvent.PageMoved e -> {
                range(fields, e.allocator(), e.address(), e.byteSize());
                fields.put("formerAddress", e.formerAddress());
            }
            case MemoryEvent.Trimmed e -> {
                fields.put("allocator", e.allocator());
                fields.put("keepBytes", e.keepBytes());
                fields.put("waited", e.waited());
                fields.put("returnedBytes", e.returnedBytes());
                fields.put("tookNanos", e.nanos());
            }
            case MemoryEvent.CurrentChanged e -> {
                fields.put("former", e.former());
                fields.put("allocator", e.allocator());
            }
            case MemoryEvent.ScopeEntered e -> fields.put("allocator", e.allocator());
            case MemoryEvent.ScopeLeft e -> fields.put("allocator", e.allocator());
            case MemoryEvent.Reclaimed e -> {
                fields.put("byteSize", e.byteSize());
                fields.put("step", e.step().step().text());
                fields.put("gaveBytes", e.step().byteSize());
                fields.put("tookNanos", e.step().nanos());
            }
            case MemoryEvent.OutOfMemory e -> {
                fields.put("byteSize", e.report().byteSize());
                fields.put("stream", e.report().stream());
            }
            case MemoryEvent.StreamWaited e -> {
                fields.put("stream", e.stream());
                fields.put("awaited", e.awaited());
            }
            case MemoryEvent.StreamClosed e -> fields.put("stream", e.stream());
            case MemoryEvent.Annotated e -> fields.put("text", e.text());
        }
        return fields;
    }

    private static void range(Map<String, Object> fields, String allocator, long address, long byteSize) {
        fields.put("allocator", allocator);
        fields.put("address", address);
        fields.put("byteSize", byteSize);
    }

    /// Returns `freeDeferred` for `FreeDeferred`.
    private static String name(MemoryEvent event) {
        String name = event.getClass().getSimpleName();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }
}
