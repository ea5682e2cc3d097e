"""Observers: what happens at due steps and between batches of steps. One file each."""
