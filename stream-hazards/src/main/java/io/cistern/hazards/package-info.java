/// Finds uses of memory without the necessary stream order: [StreamHazards][io.cistern.hazards.StreamHazards].
package io.cistern.hazards;
