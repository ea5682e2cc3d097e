"""The error of a run in space, from the same run on a coarser grid."""
