"""Campaigns: does this combination of framework, versions, device and ranks work on these machines?"""
