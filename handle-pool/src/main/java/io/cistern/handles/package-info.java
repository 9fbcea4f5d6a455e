/// Gives each thread its own handles of libraries: [HandlePool][io.cistern.handles.HandlePool] returns the handle
/// of the calling thread.
package io.cistern.handles;
