"""File formats that data sets come in, one file each; what the numbers mean is the task's business."""
