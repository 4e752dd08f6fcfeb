# SPDX-License-Identifier: Apache-2.0
"""A small export of Nsight Systems, made by hand after the schema that NVIDIA documents for SQLite exports: the tables and columns that are
read, and some that are not. `python3 made_nsys.py FOLDER` writes tests/data/made_nsys."""
import os
import sqlite3
import sys

PIDS = (111, 112)
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, smCount INTEGER, cuDevice INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER NOT NULL, timestampType INTEGER, source INTEGER, severity INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,
  registersPerThread INTEGER NOT NULL, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, graphId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER NOT NULL, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, nameId INTEGER NOT NULL);
"""
NAMES = ["cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020", "cudaMemsetAsync_v3020", "cudaGraphLaunch_v10000",
         "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)", "Kernel2", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)",
         "ncclDevKernel_AllReduce", "trainer", "Buffer flush", "checkpoint"]
IDS = {name: number for number, name in enumerate(NAMES, 100)}


def rows(steps=4):
    """{table: rows}; every process has a device, its correlations, and the same times but for 100 ns."""
    out = {"StringIds": [(number, name) for name, number in IDS.items()],
           "META_DATA_EXPORT": [("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"), ("EXPORT_PRODUCT_VERSION", "2026.1.1.204"), ("EXPORT_SCHEMA_VERSION", "3.24.14")],
           "TARGET_INFO_GPU": [(1, n, "NVIDIA A100-SXM4-80GB", 85_000_000_000, 108, n) for n in (0, 1)],
           "TARGET_INFO_SESSION_START_TIME": [(1_790_000_000_000_000_000, "2026-09-21T13:33:20")],
           "DIAGNOSTIC_EVENT": [(0, 1, 3, 1, "Profiling has started."), (9, 1, 3, 2, "Not all events were collected.")],
           "OSRT_API": [(0, 5, 109)]}
    for table in ("PROCESSES", "ThreadNames", "KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET", "SYNCHRONIZATION", "RUNTIME", "OVERHEAD", "NVTX_EVENTS"):
        out[table if table[0] in "PTN" else "CUPTI_ACTIVITY_KIND_" + table] = []
    for device, pid in enumerate(PIDS):
        process, thread = pid << 24, pid << 24 | pid
        out["PROCESSES"].append((process, pid, "python3"))
        out["ThreadNames"].append((IDS["trainer"], 20, thread))
        out["NVTX_EVENTS"].append((0, None, 33, None, "a category", thread, None, None, 0))
        out["NVTX_EVENTS"].append((500, 900, 60, 1, None, thread, thread, IDS["checkpoint"], 0))
        out["NVTX_EVENTS"].append((600, None, 34, None, "a mark", thread, None, None, 0))
        out["CUPTI_ACTIVITY_KIND_OVERHEAD"].append((100, 300, 103, thread, IDS["Buffer flush"]))
        for step in range(steps):
            add_step(out, device, process, thread, step)
    return out


def add_step(out, device, process, thread, step):
    at, number = 1000 + step * 100_000 + device * 100, 1 + 10 * step

    def ranges(start, end, text):
        out["NVTX_EVENTS"].append((at + start, at + end, 59, None, text, thread, None, None, 0))

    def call(start, end, name, correlation):
        out["CUPTI_ACTIVITY_KIND_RUNTIME"].append((at + start, at + end, 0, thread, correlation, IDS[name], 0, None))

    ranges(0, 95_000, f"step {step + 10}")
    ranges(5000, 20_000, f"aten::mm, seq = {step}, op_id = {step}, sizes = [[64, 64], [64, 64]]")
    call(1000, 3000, "cudaMemcpyAsync_v3020", number)
    out["CUPTI_ACTIVITY_KIND_MEMCPY"].append((at + 4000, at + 9000, device, 7, number, process, 1 << 20, 1, 1, 2))
    call(6000, 12_000, "cudaLaunchKernel_v7000", number + 1)
    out["CUPTI_ACTIVITY_KIND_KERNEL"].append((at + 14_000, at + 54_000, device, 1, 7, number + 1, process, 105, 106, 128, 216, 1, 1, 256, 1, 1, 1024, 2048, None))
    call(22_000, 24_000, "cudaLaunchKernel_v7000", number + 2)
    out["CUPTI_ACTIVITY_KIND_KERNEL"].append((at + 40_000, at + 60_000, device, 1, 20, number + 2, process, 107, 108, 96, 8, 1, 1, 512, 1, 1, 0, 0, None))
    call(26_000, 27_000, "cudaMemsetAsync_v3020", number + 3)
    out["CUPTI_ACTIVITY_KIND_MEMSET"].append((at + 61_000, at + 61_500, device, 7, number + 3, process, 0, 4096, 2))
    call(28_000, 30_000, "cudaGraphLaunch_v10000", number + 4)
    out["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"].append((at + 62_000, at + 70_000, device, 1, 7, number + 4, process, 3))
    call(31_000, 71_000, "cudaStreamSynchronize_v3020", number + 5)
    out["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"].append((at + 32_000, at + 70_500, device, 7, number + 5, process, 3))


def write(path, steps=4, without=(), more=""):
    if os.path.exists(path):
        os.unlink(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 1024")
    database.executescript(SCHEMA)
    for table, content in rows(steps).items():
        if content:
            database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(content[0]))})", content)
    for table in without:
        database.execute(f"DROP TABLE {table}")
    database.executescript(more)
    database.commit()
    database.execute("VACUUM")
    database.close()
    return path


if __name__ == "__main__":
    write(os.path.join(sys.argv[1], "train.sqlite"))
