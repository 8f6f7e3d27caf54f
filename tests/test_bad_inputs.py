"""Which test shows what each kind of bad input gets, and which holds each promise: complete, and every name is real.

A path of tests/ and one or more names of test functions in it, separated by spaces.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
FILES, FOLDER, FUZZ = "model/checkpoint/test_bad_files.py", "model/checkpoint/test_folder.py", "fuzz/test_parsers.py"
RUN, CONFIG, WRITING = "model/test_run.py", "model/test_config.py", "model/test_file_writing.py"
FAULTS, WINDOW_FAULTS, RUNS = "model/test_faults.py", "app/test_faults.py", "model/test_nothing_runs.py"
TOKENIZER, HUB, GGUF = "model/test_tokenizer.py", "model/checkpoint/test_hub.py", "model/checkpoint/test_gguf.py"
RUN_FILES, COMMANDS = "model/export/test_run_file.py", "model/export/test_cli_export.py"
DAMAGED = f"{FUZZ} test_a_few_damaged_inputs_are_read_or_refused test_ten_thousand_damaged_inputs_are_read_or_refused"

BAD_INPUTS: dict[str, tuple[str, ...]] = {
    "an empty or tiny .safetensors": (f"{FILES} test_unfinished_downloads_and_tiny_files",),
    "a header length past the end or over the limit": (
        f"{FILES} test_a_header_length_past_the_end_allocates_nothing test_a_huge_header_is_refused_by_its_size",
    ),
    "a header that is no JSON object": (f"{FILES} test_bad_safetensors_headers", DAMAGED),
    "bytes that overlap, leave gaps, trail": (f"{FILES} test_bad_safetensors_headers",),
    "a shape that does not fill its bytes": (f"{FILES} test_bad_safetensors_headers",),
    "a tensor named twice": (f"{FILES} test_bad_safetensors_headers",),
    "an unknown or quantised dtype": (
        f"{FILES} test_bad_safetensors_headers", f"{FOLDER} test_one_report_names_all_that_does_not_fit",
    ),
    "a hundred thousand tensors, a header of 90 MB": (
        f"{FILES} test_thousands_of_tensors_are_fine test_a_huge_header_is_refused_by_its_size",
    ),
    "a Git LFS pointer": (f"{FILES} test_files_of_another_kind_are_called_by_their_name",),
    "a web page, an unfinished download": (
        f"{FILES} test_files_of_another_kind_are_called_by_their_name test_unfinished_downloads_and_tiny_files",
    ),
    "a pickle or a zip under another name": (
        f"{FILES} test_files_of_another_kind_are_called_by_their_name",
        f"{RUNS} test_opening_executes_nothing_and_touches_nothing_outside",
    ),
    "a folder of pickles": (f"{FOLDER} test_a_folder_without_safetensors_says_what_it_holds",),
    "a file truncated or replaced while it is used": (
        f"{FOLDER} test_a_file_truncated_or_changed_while_it_is_read_is_an_error",
        f"{FAULTS} test_a_model_whose_files_change_goes_on_and_opening_it_again_is_refused",
        f"{FAULTS} test_a_prepared_copy_that_is_damaged_is_made_again",
    ),
    "an index or a link that leads out of the folder": (
        f"{FOLDER} test_an_index_that_leads_elsewhere_is_refused",
        f"{FOLDER} test_a_shard_that_links_out_is_refused_but_the_hub_caches_links_are_fine",
        f"{RUNS} test_opening_executes_nothing_and_touches_nothing_outside",
    ),
    "an index that does not fit its shards": (
        f"{FOLDER} test_an_index_that_does_not_fit_its_shards_is_refused", DAMAGED,
    ),
    "a tensor that is missing": (f"{FOLDER} test_one_report_names_all_that_does_not_fit",),
    "a head that is missing, tied or not": (f"{FOLDER} test_ties_are_kept_followed_or_refused",),
    "tensors that do not belong": (
        f"{FOLDER} test_what_lies_beside_the_decoder_is_left_out_with_a_warning",
        f"{FOLDER} test_one_report_names_all_that_does_not_fit",
    ),
    "a wrong shape": (f"{FOLDER} test_one_report_names_all_that_does_not_fit",),
    "weights and logits that are NaN or infinite": (
        f"{FOLDER} test_damaged_weights_are_counted_and_named",
        f"{RUN} test_logits_that_are_no_numbers_stop_the_run_and_say_so",
        f"{WINDOW_FAULTS} test_weights_and_logits_that_are_no_numbers_are_told_in_red_and_sampling_stops",
    ),
    "a config.json that is missing, huge, no JSON": (
        f"{FILES} test_bad_configurations test_a_missing_or_huge_config_is_refused_and_a_bom_is_read", DAMAGED,
    ),
    "sizes out of range": (
        f"{FILES} test_configurations_out_of_range_allocate_nothing",
        (f"{CONFIG} test_a_bad_field_is_named test_kinds_of_layers_that_are_no_words_are_refused_by_name "
        "test_a_config_checks_itself "
        "test_gguf_numbers_are_checked_before_anything_is_computed_of_them"),
    ),
    "heads that do not divide": (f"{CONFIG} test_a_bad_field_is_named test_a_config_checks_itself",),
    "rotary parameters that are none": (
        f"{CONFIG} test_a_bad_field_is_named",
        ("model/test_rope.py test_a_spec_that_makes_no_sense_is_refused "
        "test_frequencies_at_the_edges_of_every_range_are_numbers_or_a_refusal"),
    ),
    "a run file that is damaged, contradicts itself or would take all time and memory": (
        (f"{RUN_FILES} test_damaged_files_are_refused_with_a_reason test_other_files_are_refused_with_a_reason "
        "test_no_message_about_a_run_file_is_as_long_as_what_is_in_it test_flipped_bytes_never_crash_it "
        "test_a_recorded_run_makes_no_experts_and_can_be_cancelled"),
        (f"{COMMANDS} test_a_run_file_given_as_a_model_is_called_by_its_name "
        "test_a_record_of_long_and_odd_texts_is_told_in_short_lines"),
    ),
    "a kind of model we do not know": (
        f"{CONFIG} test_an_unsupported_kind_is_refused_with_those_supported", f"{FILES} test_bad_configurations",
    ),
    "code that a config points to": (
        f"{FILES} test_code_that_a_config_points_to_is_never_looked_at",
        f"{RUNS} test_opening_executes_nothing_and_touches_nothing_outside",
    ),
    "quantised by a method": (f"{FOLDER} test_quantised_models_are_named",),
    "no tokenizer": (f"{TOKENIZER} test_a_model_without_a_tokenizer_takes_ids",),
    "ids beyond the embedding, twice, or huge": (
        (f"{TOKENIZER} test_ids_beyond_the_embedding_are_refused_when_a_text_needs_them "
        "test_duplicate_ids_are_refused_and_extra_ones_named test_huge_ids_in_a_tokenizer_file_are_named"),
    ),
    "a tokenizer that hangs or panics": (
        (f"{TOKENIZER} test_patterns_nobody_knows_run_under_a_time_limit "
        "test_a_panic_in_the_library_is_an_error_and_the_next_text_works "
        "test_a_panic_is_one_line_of_a_command_and_all_of_it_when_asked_for "
        "test_steps_with_far_too_long_texts_are_refused test_a_token_that_is_far_too_long_is_refused "
        "test_a_normalizer_that_grows_texts_runs_under_a_limit"),
    ),
    "a hostile chat template": ("model/checkpoint/test_chat.py test_hostile_and_broken_templates_are_one_error",),
    "a GGUF of another version or byte order": (f"{FILES} test_bad_gguf_headers",),
    "a GGUF with impossible counts": (f"{FILES} test_bad_gguf_headers", DAMAGED),
    "a GGUF with impossible tensors": (f"{FILES} test_bad_gguf_headers", DAMAGED),
    "a part of a split GGUF": (
        f"{GGUF} test_every_part_of_a_split_file_opens_the_whole test_a_part_under_another_name_is_refused",
    ),
    "a model or a run larger than memory": (
        f"{FOLDER} test_a_model_larger_than_memory_is_refused_unread",
        f"{FAULTS} test_with_little_memory_a_prompt_is_refused_or_the_engine_ends_and_the_next_one_restores",
        "model/test_store.py test_memory_that_runs_out_while_growing_leaves_a_usable_run",
        "model/test_server.py test_an_error_ends_its_request_and_the_next_one_works",
    ),
    "a prompt that is empty, a megabyte, too long, and a full context": (
        f"{RUN} test_prompts_that_cannot_be_run_are_refused test_a_full_context_ends_with_the_reason",
        f"{FAULTS} test_a_megabyte_is_tokenised_refused_and_cut_when_asked",
        "app/widgets/test_prompt_edit.py test_a_text_too_long_to_edit_is_kept_whole_and_shown_by_its_ends",
    ),
    "odd characters": (
        (f"{TOKENIZER} test_odd_texts_come_back test_lone_surrogates_become_replacement_characters "
        "test_a_hundred_thousand_characters_are_quick"),
        "app/test_untrusted_text.py test_no_label_and_no_tip_takes_tokens_for_markup",
        "app/test_window.py test_hundred_thousand_letters_stay_smooth",
        "app/widgets/test_prompt_edit.py test_no_character_changes_when_another_is_typed",
    ),
    "sampler settings at every edge": (
        "model/test_sampling.py test_extremes_have_a_defined_meaning test_any_logits_give_a_kept_token_or_a_refusal",
        "model/test_protocol.py test_sampler_settings_name_the_field_they_refuse",
    ),
    "a seed that is none": (
        "model/test_protocol.py test_sampler_settings_name_the_field_they_refuse",
        "app/widgets/test_controls.py test_a_seed_keeps_all_its_64_bits",
    ),
    "attention too large to keep": (
        "model/test_store.py test_a_budget_too_small_is_refused_before_anything_is_allocated",
        "model/export/test_attention_export.py test_large_matrices_are_written_block_by_block",
    ),
    "an export onto a full disk, a bad place, a bad name, too many pixels": (
        (f"{WRITING} test_a_full_disk_leaves_the_old_file test_a_read_only_folder_has_a_sentence "
        "test_a_missing_folder_has_a_sentence test_an_existing_file_is_kept_unless_overwriting_is_allowed "
        "test_any_name_is_one_that_can_be_written"),
        f"{COMMANDS} test_a_place_nothing_can_be_saved_at_is_refused_before_the_model_is_opened",
        "model/test_cli.py test_an_output_that_is_full_is_named test_a_signal_leaves_nothing_half_written",
        "model/export/test_figures.py test_30000_pixels_are_refused_before_anything_is_drawn",
        ("app/test_export_dialog.py test_a_name_that_is_changed_is_told_and_is_the_one_asked_about "
        "test_a_folder_of_no_user_is_refused_while_it_is_typed test_a_folder_that_no_system_takes_is_refused"),
        "app/test_take_away.py test_a_figure_too_large_is_refused_with_the_reason_and_nothing_is_written",
    ),
    "preferences that are corrupt, newer, not ours to write; a model that moved; two windows": (
        ("app/test_settings.py test_a_bad_file_gives_defaults_a_notice_and_a_backup "
        "test_a_folder_that_is_a_file_is_told_once test_a_failed_write_keeps_the_old_file "
        "test_names_of_files_that_are_no_utf8_come_back "
        "test_a_field_that_cannot_be_used_is_its_default_with_a_notice_and_a_backup "
        "test_what_is_no_file_is_set_aside_without_waiting"),
        ("app/test_window.py test_a_second_window_does_not_write_preferences "
        "test_a_window_that_cannot_save_ends_all_the_same"),
        f"{WINDOW_FAULTS} test_a_model_that_moved_is_told_and_another_can_be_opened",
        ("app/test_autosave.py test_damaged_files_are_kept_and_no_error "
        "test_what_cannot_be_read_is_told_kept_and_its_prompt_offered"), DAMAGED,
        ("app/test_place.py test_a_lock_that_nobody_holds_is_taken_over "
        "test_a_lock_that_a_process_holds_is_left_whatever_is_in_it "
        "test_what_is_no_lock_file_is_named_and_nothing_waits"),
        "app/test_crash.py test_a_pipe_under_the_logs_name_does_not_hold_the_start",
    ),
    "the hub offline, refusing, cancelled, out of disk; odd drops": (
        (f"{HUB} test_refusals_are_one_sentence_without_the_token test_cancel_stops_a_download_and_leaves_no_part "
        "test_offline_says_so test_what_is_no_hub_id_is_never_sent "
        "test_a_full_disk_is_one_sentence_and_leaves_no_part"),
        f"{RUNS} test_the_hubs_token_is_in_no_log_line_and_no_error",
        "app/test_window.py test_what_is_no_file_is_refused_without_opening_it test_odd_drops_are_told",
        f"{FILES} test_what_is_no_regular_file_is_refused_without_waiting",
    ),
}  # fmt: skip

PROMISES: dict[str, tuple[str, ...]] = {
    "opening runs nothing, touches nothing outside, asks no network": (
        f"{RUNS} test_opening_executes_nothing_and_touches_nothing_outside test_the_hook_sees_what_it_looks_for",
        f"{FAULTS} test_the_engine_opens_no_port_and_no_connection",
    ),
    "an exact model or one refusal": (
        f"{FOLDER} test_one_report_names_all_that_does_not_fit test_opens_what_the_reference_saved",
        "model/checkpoint/test_default_model.py test_every_tensor_is_the_references",
    ),
    "memory is told before it is taken": (
        f"{FOLDER} test_a_model_larger_than_memory_is_refused_unread",
        ("model/test_store.py test_the_estimate_is_what_a_run_takes "
        "test_a_budget_too_small_is_refused_before_anything_is_allocated"),
        f"{WINDOW_FAULTS} test_what_a_prompt_will_keep_is_shown_and_is_what_the_engine_estimates",
    ),
    "two seconds, no crash, still usable": (
        DAMAGED, f"{FUZZ} test_the_limits_are_real",
        f"{WINDOW_FAULTS} test_whatever_an_engine_does_the_window_says_so_and_the_next_action_works",
    ),
    "a cancel acts within a layer and leaves a whole state": (
        ("model/test_server.py test_a_running_request_is_cancelled_between_layers "
        "test_a_queued_request_is_cancelled_at_once"),
        (f"{RUN} test_cancelling_a_prefill_keeps_whole_chunks_and_a_usable_run "
        "test_cancelling_a_step_leaves_the_run_as_it_was"),
        "app/test_engine.py test_a_cancel_is_seen_at_once_and_ends_the_request",
        "model/export/test_figures.py test_a_figure_can_be_given_up_from_its_layout_to_its_last_bytes",
        "model/export/test_run_figures.py test_every_figure_can_be_given_up_while_it_is_drawn",
        "app/test_export_dialog.py test_a_cancel_says_so_at_once_and_an_export_that_does_not_end_holds_no_dialog",
    ),
    "the window lives while the engine works": (
        "app/test_engine.py test_large_answers_leave_the_window_its_turns",
        "app/test_stalls.py test_a_stall_is_logged_once_with_where_it_was",
        "model/test_server.py test_the_engine_lets_the_window_go_first",
    ),
    "exports are atomic and verified": (
        (f"{WRITING} test_of_several_files_all_appear_or_none test_a_damaged_transfer_is_found "
        "test_nothing_is_left_of_an_export_that_is_given_up"),
        f"{WINDOW_FAULTS} test_an_engine_killed_while_exporting_leaves_no_file",
    ),
    "numbers shown are numbers computed": (
        ("model/export/test_run_export.py test_csv_npz_and_hover_are_equal_bit_for_bit "
        "test_the_npz_holds_the_reference_attention"),
    ),
    "a crash loses seconds and leaves a report": (
        "app/test_autosave.py test_the_next_window_offers_it_and_brings_it_back",
        "app/test_crash.py test_a_hard_crash_leaves_a_report_that_the_next_window_names",
        "app/test_engine.py test_the_real_engine_is_killed_and_comes_back_with_the_run",
    ),
    "same seed, same tokens": (f"{RUN} test_the_same_seed_gives_the_same_tokens_and_another_seed_others",),
}  # fmt: skip


@cache
def functions(path: str) -> frozenset[str]:
    """The test functions of a file of tests/."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_bad_input_and_every_promise_is_here() -> None:
    assert (len(BAD_INPUTS), len(PROMISES)) == (45, 10)


@pytest.mark.parametrize("what", [*BAD_INPUTS, *PROMISES])
def test_the_tests_named_exist(what: str) -> None:
    for entry in (BAD_INPUTS | PROMISES)[what]:
        path, *names = entry.split()
        assert names
        assert set(names) <= functions(path)
