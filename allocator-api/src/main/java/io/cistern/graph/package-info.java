/// CUDA graphs and their memory: [GraphCapture][io.cistern.graph.GraphCapture] captures a graph,
/// [CudaGraph][io.cistern.graph.CudaGraph] launches it, and [GraphMemory][io.cistern.graph.GraphMemory] is its
/// memory.
package io.cistern.graph;
