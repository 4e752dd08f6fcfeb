-- SPDX-License-Identifier: Apache-2.0
-- id: SS213
-- title: Memory is taken from the kernel again in every step
-- severity: problem
-- needs: steps.page_faults
-- threshold: faults = 100 (page faults of the median step, ours)
-- threshold: share = 0.05 (of a step, ours)
-- threshold: fault_ns = 700 (that a fault takes, ours, low on purpose: 1240 to 1760 measured with pages of 4 KiB on a virtual machine)
-- advice: a malloc that keeps memory: LD_PRELOAD of jemalloc or tcmalloc, or with glibc
--   GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=33554432; buffers that are made
--   once and used in every step
-- wrong: the steps read other parts of a file that is mapped into memory, or the program grows; no malloc changes that
WITH known AS (SELECT page_faults, duration_ns, cpu_ns, row_number() OVER (ORDER BY page_faults) AS place, count(*) OVER () AS count
               FROM steps WHERE is_program AND page_faults IS NOT NULL),
     usual AS (SELECT max(count) AS count, max(page_faults) FILTER (WHERE place = (count + 1) / 2) AS faults, avg(duration_ns) AS step_ns,
                      avg(cpu_ns) AS cpu_ns
               FROM known),
     lost AS (SELECT *, min(faults * :fault_ns, cpu_ns) AS lost_ns FROM usual),
     saved AS (SELECT *, min(lost_ns, coalesce((SELECT sum(CASE WHEN part LIKE 'idle: %' THEN mean_ns ELSE 0 END) FROM step_breakdown), lost_ns))
                           AS saving_ns -- a device that works goes on
               FROM lost)
SELECT 'the thread that marks the steps' AS place,
       as_count(faults, 'page fault') || ' in the median step, ' || as_time(lost_ns) || ' or ' || as_share(lost_ns / step_ns) || ' of a step at '
         || as_time(:fault_ns) || ' each' AS evidence,
       saving_ns, CASE WHEN count >= 10 THEN 0.7 ELSE 0.5 END AS confidence
FROM saved WHERE faults >= :faults AND saving_ns >= :share * step_ns
