"""What runs on a node: log grammar, the reference evaluator of conditions. Standard library only."""
