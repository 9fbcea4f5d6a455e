/// Physical memory under addresses: pages, the places where each is mapped, and the arenas that they are mapped
/// into. [PageTable] knows where every page is at home; whose blocks lie there it knows only as a [PageOwner]. Here
/// too is what memory comes from: sources, capped and counted.
package io.cistern.caching.internal.page;
