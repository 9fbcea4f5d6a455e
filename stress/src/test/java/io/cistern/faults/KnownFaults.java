package io.cistern.faults;

import java.util.Set;

/// Methods whose allocations still leave something wrong when they fail. Shrinks to nothing.
final class KnownFaults {
    private static final String ROUTING = """
            io.cistern.internal.context.EventOrder.keep
            io.cistern.internal.routing.Budget.charge
            io.cistern.internal.routing.Budgets.<init>
            io.cistern.internal.routing.Budgets.detach
            io.cistern.internal.routing.Budgets.lambda$new$0
            io.cistern.internal.routing.Budgets.of
            io.cistern.internal.routing.Lanes.sum
            io.cistern.internal.routing.Router.adopt
            io.cistern.internal.routing.Routes.retire
            """;

    private static final String CACHING = """
            io.cistern.caching.BlockHeap.claimIdle
            io.cistern.caching.Blocks.enlarge
            io.cistern.caching.CacheSleep$Decision.decide
            io.cistern.caching.CacheSleep.wake
            io.cistern.caching.EndedStreams.close
            io.cistern.caching.FencedFrees.close
            io.cistern.caching.FencedFrees.open
            io.cistern.caching.LaneBins.<init>
            io.cistern.caching.LaneBins.learn
            io.cistern.caching.LaneStreams.add
            io.cistern.caching.LaneStreams.lambda$without$1
            io.cistern.caching.LaneStreams.without
            io.cistern.caching.LentMappings.streamsOfOld
            io.cistern.caching.LentMappings.unmap
            io.cistern.caching.LiveIndex.chunk
            io.cistern.caching.Page.<init>
            io.cistern.caching.Page.add
            io.cistern.caching.PageArena.enter
            io.cistern.caching.PageGrowth.plan
            io.cistern.caching.PageSleep.claim
            io.cistern.caching.PageSleep.deregistered
            io.cistern.caching.PageSleep.settle
            io.cistern.caching.PageSleep.sleep
            io.cistern.caching.PageTable.comesHome
            io.cistern.caching.PageTable.lambda$setPinned$0
            io.cistern.caching.PageTable.setPinned
            io.cistern.caching.PhysicalPages.release
            io.cistern.caching.PhysicalPages.releaseRefused
            io.cistern.caching.RecordedUses.contains
            io.cistern.caching.RecordedUses.take
            io.cistern.caching.RecordedUses.without
            io.cistern.caching.RegionMap.leaf
            io.cistern.caching.ShardPages.fillAndAllocate
            io.cistern.caching.ShardTable.replace
            io.cistern.caching.Shards.removeTimeline
            io.cistern.caching.SizeBins.markOccupied
            io.cistern.caching.SizeStacks.<init>
            io.cistern.caching.SizeStacks.move
            io.cistern.caching.SleepingPages.<init>
            io.cistern.caching.WindowFill.map
            io.cistern.caching.WindowFill.mapNew
            io.cistern.caching.WindowFill.mapTaken
            io.cistern.caching.WindowFill.noteForeign
            io.cistern.caching.WindowFill.piece
            io.cistern.caching.WindowFill.planHole
            io.cistern.caching.WindowFill.publish
            """;

    private static final String ASYNC = """
            io.cistern.async.FencedBatch.<init>
            io.cistern.async.FencedBatch.add
            io.cistern.async.GraphAllocations.free
            io.cistern.async.LaterFrees.add
            io.cistern.async.LaterFrees.join
            io.cistern.async.LaterFrees.lambda$queue$0
            io.cistern.async.LaterFrees.pass
            io.cistern.async.LaterFrees.queue
            io.cistern.async.LaterFrees.takeOut
            io.cistern.async.RecordedUses.take
            io.cistern.async.RefusedFrees.free
            """;

    static final Set<String> METHODS = Set.of((ROUTING + CACHING + ASYNC).split("\n"));

    private KnownFaults() {}
}
