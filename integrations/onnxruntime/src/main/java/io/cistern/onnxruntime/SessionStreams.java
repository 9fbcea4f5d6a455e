package io.cistern.onnxruntime;

/// Selects the streams on which a session works.
public enum SessionStreams {
    /// One stream of Cistern's for all requests of the session. Requests of several threads take turns on the
    /// device, so the session needs the least memory.
    ONE_OF_SESSION,
    /// ONNX Runtime's own streams, one for each thread and session. Requests of several threads run at the same
    /// time, and each of them holds memory. Tensors on the device must be closed before the session, which
    /// destroys the streams, or after the [SessionMemory] that [ran][SessionMemory#call] their requests.
    ONE_FOR_EACH_REQUEST
}
