/// Physical memory under addresses: pages, the addresses at which each is mapped, and the arenas that hold
/// these addresses. [PageTable] knows where every page has its home, and knows a shard only as a [PageOwner].
/// The sources of memory are here too, limited and counted.
package io.cistern.caching.internal.page;
