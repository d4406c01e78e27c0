"""Transports between ranks, one file each; found by name through ``deep500.distributed.catalogue.COMMUNICATORS``."""
