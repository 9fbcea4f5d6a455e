package io.cistern.simulated;

import static io.cistern.simulated.internal.memory.DriverFailure.failIf;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Peers;

/// [Peers] over the model: all devices can reach each other, as over NVLink.
final class SimulatedPeers implements Peers {
    private final Machine machine;

    SimulatedPeers(Machine machine) {
        this.machine = machine;
    }

    @Override
    public boolean canAccess(int device, int peer) {
        return machine.call(DriverCall.DEVICE_CAN_ACCESS_PEER, device, () -> describe(device, peer), () -> {
            machine.requireDevice(peer);
            return device != peer;
        });
    }

    @Override
    public void enable(int device, int peer) {
        machine.run(DriverCall.CONTEXT_ENABLE_PEER_ACCESS, device, () -> describe(device, peer), () -> {
            machine.requireDevice(peer);
            failIf(device == peer, CudaResult.INVALID_DEVICE);
            failIf(machine.device(peer).reachableBy.get(device), CudaResult.PEER_ACCESS_ALREADY_ENABLED);
            machine.device(peer).reachableBy.set(device);
        });
    }

    @Override
    public void disable(int device, int peer) {
        machine.run(DriverCall.CONTEXT_DISABLE_PEER_ACCESS, device, () -> describe(device, peer), () -> {
            machine.requireDevice(peer);
            failIf(!machine.device(peer).reachableBy.get(device), CudaResult.PEER_ACCESS_NOT_ENABLED);
            machine.device(peer).reachableBy.clear(device);
        });
    }

    private static String describe(int device, int peer) {
        return "device=" + device + ", peer=" + peer;
    }
}
