/// Library handles: [HandlePool][io.cistern.handles.HandlePool] gives the handle of the calling thread.
package io.cistern.handles;
