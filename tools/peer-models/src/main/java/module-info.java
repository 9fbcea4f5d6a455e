/// Models of other projects' allocators, to compare with in replays on the simulated GPU.
@org.jspecify.annotations.NullMarked
module io.cistern.peers {
    requires static org.jspecify;
    requires io.cistern.api;
    requires io.cistern.cuda;

    provides io.cistern.spi.AllocatorProvider with
            io.cistern.peers.TorchNativeProvider,
            io.cistern.peers.TorchExpandableProvider;
}
