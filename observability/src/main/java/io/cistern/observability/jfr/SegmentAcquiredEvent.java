package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

@Name("cistern.SegmentAcquired")
@Label("Segment Acquired")
@Description("An allocator obtained memory from the driver, or mapped pages")
@StackTrace(true)
final class SegmentAcquiredEvent extends SegmentEvent {}
