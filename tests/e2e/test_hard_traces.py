# SPDX-License-Identifier: Apache-2.0
"""The catalogue of hard cases: each row of it has a test. Rows have letters: J text of a file, T times, I identity, N names, S sizes, M memory,
R invariants of any trace, D diagnoses. Names of rows are in test_hard_*.py, in tests/unit/importers/test_kineto_*.c and in ELSEWHERE."""
import re

from hard_tools import TESTS

# The files and tests of rows whose names are neither in test_hard_*.py nor in test_kineto_*.c.
ELSEWHERE = {
    "T12 T10 T13 clocks": "unit/output/test_validate.c",
    "I08 no steps are marked": "e2e/test_kineto_corpus.py: test_steps_that_are_not_marked",
    "I11 50,000 threads": "e2e/test_kineto_corpus.py: test_50000_threads; e2e/test_big_traces.py: test_fifty_thousand_threads",
    "J17 a value of 300 MB": "e2e/test_kineto_corpus.py: test_a_value_of_300_mb; e2e/test_big_traces.py: test_a_text_of_300_megabytes",
    "N01 long names": "e2e/test_kineto_corpus.py: test_a_name_of_a_megabyte; e2e/test_big_traces.py: test_names_of_kernels_of_a_mebibyte",
    "N02 mangled names": "unit/base/test_demangle.c: test_the_name_of_a_kernel_made_of_templates",
    "N03 hostile mangled names": "unit/base/test_demangle.c: test_hostile_names",
    "N09 secrets": "e2e/test_run_directory.py: test_N09_nothing_that_we_write_holds_a_secret test_secrets_are_not_written_down "
                   "test_secret_variables_are_not_written_down",
    "S01 gigabytes": "e2e/test_big_traces.py: test_little_memory_changes_no_answer test_the_kernel_holds_it_to_its_memory; ../bench/import_big",
    "S02 long lines and files": "e2e/test_big_traces.py: test_a_text_of_300_megabytes; ../bench/import_big",
    "S04 what viewers open": "unit/output/test_export_chrome.c: S04_more_than_viewers_open_is_said limit_of_bytes_leaves_out_whole_steps_from_the_end",
    "S07 disks": "e2e/test_run_failures.py: test_S07_directories_of_any_name test_S07_a_folder_for_temporary_files_where_nothing_runs "
                 "test_read_only_directory test_full_disk_from_the_start test_disk_that_fills_up test_directory_removed_meanwhile; "
                 "recorder/test_places.c",
    "S08 thousands of sessions": "recorder/test_startstop.c: ten_thousand_cycles_hold_nothing",
    "S09 64 threads": "recorder/test_threads.c: sixty_four_threads_that_never_pause_are_counted; recorder/test_budget.c: "
                      "training_threads_do_not_allocate_lock_or_fault",
    "M01 odd memory events": "e2e/test_snapshot.py: test_m01_double_frees_reuse_and_odd_sizes",
    "M02 pickles": "e2e/test_snapshot.py: test_m02_every_protocol_gives_the_same test_m02_nothing_hostile_is_run "
                   "test_m02_a_cut_file_keeps_what_was_complete; unit/base/test_pickle_read.c",
    "M03 a ring that wrapped": "e2e/test_snapshot.py: test_m03_levels_begin_with_what_the_ring_has_lost",
    "M04 segments": "e2e/test_snapshot.py: test_m04_segments_add_up",
    "R01 R02 R03 R04 R05 R06 R07 R08 R09 R10 of any trace": "e2e/test_metamorphic.py: test_whole_traces test_changed_traces",
    "R06 busy at most wall": "e2e/test_hard_spans.py: test_T06_a_kernel_that_covers_all_others",
    "R11 R12 our own format": "e2e/test_convert.py; fuzz/meson.build",
    "D01 a rank that computes longer": "torch/test_collectives.py: test_collectives_and_the_slow_rank; e2e/test_diagnose.py: test_a_fault_is_found_by_its_rule",
    "D02 D03 D10 loaders, checkpoints": "e2e/test_diagnose.py: test_a_fault_is_found_by_its_rule",
    "D04 healthy": "e2e/test_rules_steps.py: test_D04_nothing_is_invented_of_a_healthy_run",
    "D05 values, copies, kernels": "e2e/test_rules_devices.py: test_D05_values_copies_and_small_kernels_are_each_told test_D05_pinned_buffers_that_are_made_in_steps",
    "D06 busy and empty": "e2e/test_rules_devices.py: test_D06_a_device_that_is_busy_and_mostly_empty test_D06_nvidia_smi_calls_it_busy",
    "D07 memory": "e2e/test_rules_devices.py: test_D07_no_memory_problem_without_evidence; e2e/test_diagnose.py: test_a_fault_is_found_by_its_rule",
    "D08 a killed rank": "e2e/test_diagnose.py: test_D08_a_killed_rank_is_named_with_its_last_step_and_operation",
    "D09 two faults": "e2e/test_diagnose.py: test_D09_two_faults_are_both_found_the_larger_first",
    "D11 half the batch": "e2e/test_compare.py: test_d11_half_the_batch_is_compared_by_the_token",
}
ROWS = {"J": 24, "T": 20, "I": 11, "N": 9, "S": 9, "M": 5, "R": 12, "D": 11}


def test_every_row_has_its_test():
    """The name of each row is in a test's name here, in test_kineto_*.c or in the table above, whose tests exist."""
    cases = "".join(file.read_text() for file in (TESTS / "unit/importers").glob("test_kineto_*.c"))
    tests = [name for file in (TESTS / "e2e").glob("test_hard_*.py") for name in re.findall(r"^def test_(\w+)\(", file.read_text(), re.M)]
    shown = " ".join([*ELSEWHERE, cases, *tests])
    missing = [row for row in (f"{letter}{i:02}" for letter, count in ROWS.items() for i in range(1, count + 1))
               if not re.search(rf"(?<![A-Za-z0-9]){row}(?![0-9])", shown)]
    assert not missing
    for places in ELSEWHERE.values():
        for place in places.split("; "):
            file, _, names = place.partition(": ")
            text = (TESTS / file).read_text()
            for name in names.split():
                assert re.search(rf"(?:^def {name}\(|^static void {name}\(void)", text, re.M), (file, name)
