/// The blocks of one stream and one range of sizes. [StreamShard] has a short lock over a heap of blocks, keeps
/// frees of other streams behind fences, and gives idle memory back; [DeviceShards] finds the shard of a request or
/// of a block, and passes shards of ended streams on to new ones.
package io.cistern.caching.internal.shard;
