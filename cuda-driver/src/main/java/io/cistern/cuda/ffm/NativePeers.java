package io.cistern.cuda.ffm;

import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Peers;

/// Access between devices through the real driver.
final class NativePeers implements Peers {
    private final Contexts contexts;
    private final DriverFunction canAccess;
    private final DriverFunction enable;
    private final DriverFunction disable;

    NativePeers(DriverLibrary library, Contexts contexts) {
        this.contexts = contexts;
        canAccess = library.function(DriverCall.DEVICE_CAN_ACCESS_PEER, "LII");
        enable = library.function(DriverCall.CONTEXT_ENABLE_PEER_ACCESS, "LI");
        disable = library.function(DriverCall.CONTEXT_DISABLE_PEER_ACCESS, "L");
    }

    @Override
    public boolean canAccess(int device, int peer) {
        int handle = contexts.handle(canAccess, device);
        int peerHandle = contexts.handle(canAccess, peer);
        try (Frame frame = Frame.acquire()) {
            canAccess.check(canAccess.call(frame.out(), handle, peerHandle), "device, peer", device, peer);
            return frame.outInt() != 0;
        }
    }

    @Override
    public void enable(int device, int peer) {
        long peerContext = contexts.primary(enable, peer);
        try (Frame _ = contexts.enter(enable, device)) {
            enable.check(enable.call(peerContext, 0), "device, peer", device, peer);
        }
    }

    @Override
    public void disable(int device, int peer) {
        long peerContext = contexts.primary(disable, peer);
        try (Frame _ = contexts.enter(disable, device)) {
            disable.check(disable.call(peerContext), "device, peer", device, peer);
        }
    }
}
