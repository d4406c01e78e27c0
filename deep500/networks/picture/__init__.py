"""Pictures of networks: vector graphics of the graph, in layers from the inputs down to the outputs."""
