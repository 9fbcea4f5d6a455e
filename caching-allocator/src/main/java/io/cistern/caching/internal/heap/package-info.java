/// Best fit over ranges of addresses. [BlockHeap] cuts ranges into blocks, finds the best free one for a request
/// and joins what is freed with its neighbours. Plain data without locks: it neither knows what lies under the
/// addresses nor makes a driver call; an observer hears what becomes free and what is taken.
package io.cistern.caching.internal.heap;
