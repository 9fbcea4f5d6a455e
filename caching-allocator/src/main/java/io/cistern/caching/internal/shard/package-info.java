/// The blocks of one stream and one range of sizes, and the pages under them. [Shard] has a short lock over a heap
/// of blocks, defers frees of other streams until fences have passed, and gives idle memory to other shards
/// or the driver. [DeviceShards] finds the shard of a request or of a block, and gives shards of ended
/// streams to new ones.
package io.cistern.caching.internal.shard;
