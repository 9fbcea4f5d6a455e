/// Finds memory that is used where no stream orders it: [StreamHazards][io.cistern.hazards.StreamHazards].
package io.cistern.hazards;
