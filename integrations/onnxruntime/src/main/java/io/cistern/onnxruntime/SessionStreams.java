package io.cistern.onnxruntime;

/// Whose streams a session works on.
public enum SessionStreams {
    /// One stream of Cistern's, for all requests of the session. Requests of several threads take turns on the
    /// device, and the session needs the least memory.
    ONE_OF_SESSION,
    /// ONNX Runtime's own streams, one for each thread and session. Requests of several threads run beside each
    /// other, and each of them holds memory.
    ONE_FOR_EACH_REQUEST
}
