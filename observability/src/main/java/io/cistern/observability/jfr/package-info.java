/// Writes the events of device memory into recordings of Java Flight Recorder.
package io.cistern.observability.jfr;
