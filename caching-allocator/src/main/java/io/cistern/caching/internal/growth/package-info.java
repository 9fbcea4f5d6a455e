/// Obtains memory when no free block fits. [PageGrowth] searches a shard's arenas for the smallest free run
/// with a window, and fills it with idle pages of other places or with new pages. [SegmentGrowth] asks the
/// source for a plain segment.
package io.cistern.caching.internal.growth;
