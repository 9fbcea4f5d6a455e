package io.cistern.observability.jfr;

import jdk.jfr.Description;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;
import jdk.jfr.Name;

@Name("cistern.PageMoved")
@Label("Page Moved")
@Description("An allocator uses a physical page at another address")
final class PageMovedEvent extends SegmentEvent {
    @Label("Former Address")
    @MemoryAddress
    long formerAddress;
}
