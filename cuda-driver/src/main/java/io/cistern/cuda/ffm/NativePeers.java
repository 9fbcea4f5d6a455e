package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Peers;

/// Access between devices through the real driver.
final class NativePeers extends NativeFacet implements Peers {
    private final DriverFunction canAccess = bind(DriverCall.DEVICE_CAN_ACCESS_PEER, "LII");
    private final DriverFunction enable = bind(DriverCall.CONTEXT_ENABLE_PEER_ACCESS, "LI");
    private final DriverFunction disable = bind(DriverCall.CONTEXT_DISABLE_PEER_ACCESS, "L");

    NativePeers(DriverLibrary library, Contexts contexts) {
        super(library, contexts);
    }

    @Override
    public boolean canAccess(int device, int peer) {
        int handle = contexts.handle(canAccess, device);
        int peerHandle = contexts.handle(canAccess, peer);
        try (Frame frame = Frame.acquire()) {
            canAccess.check(canAccess.call(frame, frame.out(), handle, peerHandle), "device, peer", device, peer);
            return frame.outInt() != 0;
        }
    }

    @Override
    public void enable(int device, int peer) {
        long peerContext = contexts.primary(enable, peer);
        try (Frame frame = contexts.enter(enable, device)) {
            enable.check(enable.call(frame, peerContext, 0), "device, peer", device, peer);
        }
    }

    @Override
    public void disable(int device, int peer) {
        long peerContext = contexts.primary(disable, peer);
        try (Frame frame = contexts.enter(disable, device)) {
            disable.check(disable.call(frame, peerContext), "device, peer", device, peer);
        }
    }
}
