/// Finds memory that is used where no stream orders it: [StreamHazards][io.cistern.observability.hazards.StreamHazards].
package io.cistern.observability.hazards;
