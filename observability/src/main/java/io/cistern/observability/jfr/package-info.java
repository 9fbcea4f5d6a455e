/// Device memory in recordings of Java Flight Recorder.
package io.cistern.observability.jfr;
