package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;

/// What the events of ranges have in common.
abstract class SegmentEvent extends CisternEvent {
    @Label("Address")
    @MemoryAddress
    long address;

    @Label("Size")
    @DataAmount
    long byteSize;
}
