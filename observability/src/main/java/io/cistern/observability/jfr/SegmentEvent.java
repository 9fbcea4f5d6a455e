package io.cistern.observability.jfr;

import jdk.jfr.DataAmount;
import jdk.jfr.Label;
import jdk.jfr.MemoryAddress;

/// Holds the fields that events about a range of addresses share.
abstract class SegmentEvent extends CisternEvent {
    @Label("Address")
    @MemoryAddress
    long address;

    @Label("Size")
    @DataAmount
    long byteSize;
}
