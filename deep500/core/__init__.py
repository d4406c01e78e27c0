"""Words that every level uses: tensor descriptors, devices, events, random streams, the registry, errors."""
