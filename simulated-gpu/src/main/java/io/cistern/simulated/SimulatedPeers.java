package io.cistern.simulated;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Peers;
import io.cistern.simulated.internal.memory.DriverFailure;

/// [Peers] over the model: all devices can reach each other, as over NVLink.
final class SimulatedPeers implements Peers {
    private final Machine machine;

    SimulatedPeers(Machine machine) {
        this.machine = machine;
    }

    @Override
    public boolean canAccess(int device, int peer) {
        return machine.call(DriverCall.DEVICE_CAN_ACCESS_PEER, device, () -> describe(device, peer), () -> {
            checked(peer);
            return device != peer;
        });
    }

    @Override
    public void enable(int device, int peer) {
        machine.run(DriverCall.CONTEXT_ENABLE_PEER_ACCESS, device, () -> describe(device, peer), () -> {
            checked(peer);
            if (device == peer) {
                throw new DriverFailure(CudaResult.INVALID_DEVICE);
            }
            if (machine.device(peer).reachableBy.get(device)) {
                throw new DriverFailure(CudaResult.PEER_ACCESS_ALREADY_ENABLED);
            }
            machine.device(peer).reachableBy.set(device);
        });
    }

    @Override
    public void disable(int device, int peer) {
        machine.run(DriverCall.CONTEXT_DISABLE_PEER_ACCESS, device, () -> describe(device, peer), () -> {
            checked(peer);
            if (!machine.device(peer).reachableBy.get(device)) {
                throw new DriverFailure(CudaResult.PEER_ACCESS_NOT_ENABLED);
            }
            machine.device(peer).reachableBy.clear(device);
        });
    }

    private void checked(int peer) {
        if (peer < 0 || peer >= machine.deviceCount()) {
            throw new DriverFailure(CudaResult.INVALID_DEVICE);
        }
    }

    private static String describe(int device, int peer) {
        return "device=" + device + ", peer=" + peer;
    }
}
