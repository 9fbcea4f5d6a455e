package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

@Name("cistern.SegmentReleased")
@Label("Segment Released")
@Description("An allocator gave memory back to the driver, or unmapped pages")
@StackTrace(true)
final class SegmentReleasedEvent extends SegmentEvent {}
