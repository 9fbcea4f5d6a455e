/// Physical memory under addresses: pages, the addresses at which each is mapped, and the arenas that hold
/// these addresses. [PageTable] records where every page has its home, and sees a shard only as a
/// [PageOwner]. This package also limits and counts what the sources of memory give.
package io.cistern.caching.internal.page;
