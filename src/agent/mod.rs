//! The far end of a raw TCP transfer, without a display: started by ssh, serves one job, ends with it.
