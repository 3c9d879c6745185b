"""The tests that prove each row of the attack table. A renamed or missing test fails here; the numbers are the table's.

For each row, at least one of its tests was seen to fail without the defence.
"""

from __future__ import annotations

import pytest

from tests.rigs.named_tests import problem

CARD_ATTACKS = "cards/test_attacks.py"
VISIBLE = "text/test_visible.py"
LOOKALIKES = "text/test_lookalikes.py"
VIEW = "bot/test_card_view.py"
QUOTING = "bot/test_quoting.py"
BOT_CARDS = "bot/test_cards.py"
CLICKS = "bot/test_buttons.py"
REPLIES = "bot/test_sending.py"
TALK = "bot/test_mentions.py"
GATE = "gate/test_gate.py"
SHOWN = "gate/test_shown_is_run.py"
DESK = "approvals/test_desk.py"
POLICY = "approvals/test_policy.py"
HOSTILE = "store/test_hostile.py"
RECORD = "store/test_audit_attacks.py"
ANCHOR = "store/test_audit_anchor.py"
DRIVER = "turns/test_driver.py"
FLOW = "e2e/test_flow.py"
ATTACKS = "e2e/test_attacks.py"
BAD_INPUT = "e2e/test_bad_input.py"
PROVIDER = "e2e/test_openai_provider.py"
PEOPLE = "e2e/test_people.py"
STORY = "e2e/test_record.py"
FILES = "agent/tools/test_files.py"
REVISED = "gate/test_revised_calls.py"
VOTES = "approvals/test_votes.py"
GRANTS = "approvals/test_grants.py"
SHARES = "gate/test_fair_shares.py"
EXITS = "gate/test_tools_that_exit.py"
GENERATORS = "gate/test_generator_tools.py"
RESULTS = "gate/test_tool_results.py"
BLOCKING = "gate/test_blocking_tools.py"
MCP = "agent/test_mcp.py"
PROTOCOL = "agent/test_mcp_protocol.py"
SCHEMAS = "gate/test_mcp_arguments.py"
LARGE = "e2e/test_large_calls.py"
TODAY = "approvals/test_todays_rules.py"
EDITS = "approvals/test_edits.py"
CLOCK = "test_clock.py"
TOLD = "text/secrets/test_told.py"
REFUSALS = "bot/test_refusals.py"
WHOLE_REFUSALS = "e2e/test_refusals.py"
UNKNOWN = "bot/test_servers_not_known_yet.py"
EARLIER = "bot/test_earlier_posts.py"
OUTAGES = "bot/test_outages.py"
LATE = "turns/test_outages.py"
CRASH = "e2e/test_crash.py"
INNER = "gate/test_inner_agents.py"
SURVEY = "agent/test_tool_survey.py"
UNDECLARED = "e2e/test_undeclared_tools.py"
MARKED = "gate/test_marked_tools.py"
SECRETS = "text/secrets/test_masker.py"

WORDS = "approvals/test_shell_words.py"
LOOKING = "agent/tools/test_looking.py"
EDITING = "agent/tools/test_editing.py"
COMMANDS = "agent/tools/test_commands.py"
WEB = "agent/tools/test_web.py"

ROWS: dict[str, tuple[str, ...]] = {
    "1 fences and forged cards": (
        f"{QUOTING}::test_a_block_is_exactly_one_block_whatever_is_in_it",
        f"{VIEW}::test_nothing_quoted_is_ever_outside_of_code",
        f"{VIEW}::test_names_of_tools_and_arguments_take_no_effect",
        f"{CARD_ATTACKS}::test_an_argument_cannot_take_the_label_of_our_words",
        f"{ATTACKS}::test_markup_in_arguments_words_and_names_takes_no_effect",
        f"{ATTACKS}::test_the_models_words_beside_a_call_cannot_imitate_the_card",
    ),
    "2 markdown": (
        f"{QUOTING}::test_escaped_text_reads_as_it_stands",
        f"{CARD_ATTACKS}::test_markup_never_reaches_the_trusted_part",
        f"{VIEW}::test_nothing_quoted_is_ever_outside_of_code",
        f"{ATTACKS}::test_markup_in_arguments_words_and_names_takes_no_effect",
    ),
    "3 mentions": (
        f"{BOT_CARDS}::test_no_mention_in_arguments_ever_pings",
        f"{REPLIES}::test_links_do_not_unfurl_and_mentions_do_not_ping",
        f"{ATTACKS}::test_nobody_is_pinged_by_card_edit_or_reply",
        f"{ATTACKS}::test_a_refused_click_pings_nobody",
    ),
    "4 hidden characters": (
        f"{VISIBLE}::test_hidden_characters_are_escaped_and_reported",
        f"{VISIBLE}::test_every_format_and_space_character_of_unicode_is_covered",
        f"{CARD_ATTACKS}::test_hidden_characters_are_shown_and_warned_about",
        f"{ATTACKS}::test_hidden_characters_are_visible_escapes_with_a_warning",
    ),
    "5 look-alikes": (
        f"{LOOKALIKES}::test_a_warning_names_what_it_is",
        f"{LOOKALIKES}::test_punycode_hosts_are_decoded_and_both_are_shown",
        f"{CARD_ATTACKS}::test_lookalikes_and_punycode_are_warned_about",
        f"{ATTACKS}::test_look_alike_letters_are_named",
    ),
    "6 control characters": (
        f"{VISIBLE}::test_nothing_hidden_is_left_and_nothing_is_lost",
        f"{ATTACKS}::test_hidden_characters_are_visible_escapes_with_a_warning",
        f"{ATTACKS}::test_a_lone_surrogate_is_shown_or_refused_in_words",
        f"{ATTACKS}::test_a_result_that_cannot_be_written_down_does_not_break_the_turn",
    ),
    "7 the tail beyond the cut": (
        f"{CARD_ATTACKS}::test_the_tail_of_a_long_argument_is_shown_and_the_whole_is_attached",
        f"{CARD_ATTACKS}::test_accept_is_not_offered_for_what_cannot_be_shown",
        f"{VIEW}::test_a_heavy_card_uses_the_space_and_not_more",
        f"{BOT_CARDS}::test_twenty_thousand_characters_are_attached_whole",
        f"{FLOW}::test_twenty_thousand_characters_are_all_reachable",
        f"{BAD_INPUT}::test_without_files_a_long_card_offers_no_accept_and_says_why",
        f"{BAD_INPUT}::test_an_accept_that_was_not_offered_is_not_taken",
        f"{ATTACKS}::test_the_tail_behind_a_flood_of_harmless_text_is_on_the_card_or_attached",
    ),
    "8 a flood before the tail": (
        f"{CARD_ATTACKS}::test_blank_lines_before_the_tail_are_collapsed_and_counted",
        f"{CARD_ATTACKS}::test_harmless_lines_before_the_tail_do_not_hide_it",
        f"{ATTACKS}::test_the_tail_behind_a_flood_of_harmless_text_is_on_the_card_or_attached",
    ),
    "9 arguments changed after approval": (
        f"{GATE}::test_arguments_changed_after_approval_do_not_run",
        f"{GATE}::test_what_a_hook_makes_of_the_arguments_is_what_is_shown",
        f"{GATE}::test_an_agents_own_approval_handler_approves_nothing",
    ),
    "10 what an approved call names changes": (
        f"{PEOPLE}::test_a_file_that_changed_since_the_card_is_asked_about_again",
        f"{FILES}::test_a_file_that_changed_after_the_card_is_not_written_and_asked_about_again",
        f"{REVISED}::test_what_has_changed_since_it_was_approved_is_asked_again",
        f"{REVISED}::test_running_it_again_looks_at_the_operands_again",
    ),
    "11 old cards, replays, two clicks": (
        f"{DESK}::test_second_click_is_told_who_decided",
        f"{DESK}::test_two_hundred_decisions_at_once_have_one_winner",
        f"{GATE}::test_a_decision_of_another_turn_is_not_ours",
        f"{FLOW}::test_two_hundred_clicks_have_one_outcome",
        f"{ATTACKS}::test_an_old_card_does_not_answer_a_newer_request",
        f"{ATTACKS}::test_a_click_on_another_message_does_not_decide_a_card",
        f"{ATTACKS}::test_a_replayed_interaction_decides_nothing_twice",
        f"{ATTACKS}::test_a_replayed_mention_is_the_same_turn",
    ),
    "12 the wrong person, a forged id or one of another server": (
        f"{DESK}::test_only_whom_the_request_names_may_decide",
        f"{DESK}::test_forged_misplaced_and_other_servers_ids_are_unknown",
        f"{CLICKS}::test_a_role_is_judged_as_it_is_at_the_click",
        f"{FLOW}::test_the_wrong_person_is_refused_privately",
        f"{ATTACKS}::test_a_click_with_an_id_of_another_conversation_is_unknown",
        f"{ATTACKS}::test_a_forged_id_is_an_unknown_request",
        f"{ATTACKS}::test_a_click_by_somebody_of_another_server_is_unknown",
        f"{ATTACKS}::test_a_role_lost_between_card_and_click_counts_for_nothing",
    ),
    "13 four eyes, bots and webhooks": (
        f"{PEOPLE}::test_whoever_asked_may_not_decide_with_four_eyes",
        f"{VOTES}::test_four_eyes_keep_the_asker_from_deciding",
        f"{VOTES}::test_a_bot_never_decides_even_if_it_is_named",
        f"{TALK}::test_bots_webhooks_and_everyone_are_not_heard",
        f"{CLICKS}::test_a_bot_cannot_decide",
        f"{ATTACKS}::test_a_bot_cannot_decide",
        f"{ATTACKS}::test_bots_and_webhooks_are_not_heard",
    ),
    "14 words that claim approval": (
        f"{GATE}::test_claims_in_the_chat_approve_nothing",
        f"{ATTACKS}::test_words_in_the_chat_approve_nothing",
    ),
    "15 shell commands": (
        f"{WORDS}::test_an_allow_rule_never_covers_more_than_one_plain_command",
        f"{WORDS}::test_nothing_may_stand_before_the_command_of_an_allow_rule",
        f"{WORDS}::test_a_deny_rule_covers_a_command_wherever_and_however_it_is_written",
        f"{WORDS}::test_a_command_that_the_shell_computes_or_nobody_can_read_meets_every_deny_rule",
        f"{WORDS}::test_any_line_is_read_and_a_plain_one_is_what_shlex_reads",
        "gate/test_workspace_tools.py::test_a_remembered_yes_for_a_command_covers_no_other_command",
    ),
    "16 the same name from elsewhere": (
        f"{GRANTS}::test_any_other_call_asks_again",
        f"{REVISED}::test_the_same_tool_from_another_source_is_another_tool",
    ),
    "17 absent, null and default": (
        f"{GATE}::test_rules_see_defaulted_arguments",
        f"{GATE}::test_rules_see_what_validation_made_of_the_arguments",
        f"{ATTACKS}::test_absent_null_and_default_arguments_meet_the_same_rule",
        f"{ATTACKS}::test_a_number_is_the_same_however_it_is_written",
        f"{ATTACKS}::test_what_no_rule_is_about_runs",
    ),
    "18 duplicate call ids": (
        f"{GATE}::test_duplicate_call_ids_are_refused",
        f"{ATTACKS}::test_duplicate_call_ids_are_refused",
        f"{PROVIDER}::test_duplicate_ids_in_one_response_are_refused_and_nothing_runs",
    ),
    "19 a hundred calls": (
        f"{GATE}::test_a_hundred_calls_run_nothing_and_the_model_is_told",
        f"{ATTACKS}::test_a_hundred_calls_in_one_response_run_nothing",
    ),
    "20 nobody left to decide": (
        f"{PEOPLE}::test_a_role_that_is_gone_means_nobody_and_the_admins_are_told",
        f"{VOTES}::test_an_approver_that_is_gone_means_nobody",
        f"{VOTES}::test_a_vote_of_somebody_who_may_no_longer_decide_is_void",
    ),
    "21 timeouts": (
        f"{DESK}::test_the_deadline_rejects_what_is_open_and_is_not_a_person",
        f"{DESK}::test_a_click_at_the_deadline_finds_it_expired_and_settles_it",
        f"{GATE}::test_a_timeout_is_told_as_a_timeout",
        f"{ATTACKS}::test_a_timeout_is_not_a_persons_refusal_and_a_late_click_is_told",
        f"{ATTACKS}::test_clicks_around_the_deadline_have_one_outcome",
    ),
    "22 secrets": (
        f"{STORY}::test_secrets_are_masked_wherever_people_look_and_the_tool_gets_them",
        f"{SECRETS}::test_a_secret_chosen_to_hide_a_command_hides_none",
        f"{SECRETS}::test_edit_is_not_offered_for_what_is_masked_or_was_masked_before",
        f"{SECRETS}::test_only_runs_of_harmless_characters_ever_vanish",
    ),
    "23 paths out of the workspace": (
        "agent/tools/test_workspace.py::test_a_path_that_is_not_plain_is_refused_whatever_was_approved",
        "agent/tools/test_workspace.py::test_a_link_is_not_followed_anywhere_on_the_way",
        f"{LOOKING}::test_what_a_link_leads_to_is_neither_read_nor_searched",
        f"{EDITING}::test_no_edit_and_no_patch_leaves_the_workspace",
        f"{COMMANDS}::test_the_bots_own_files_are_out_of_reach",
    ),
    "24 addresses inside": (
        f"{WEB}::test_an_address_outside_the_public_internet_is_refused",
        f"{WEB}::test_a_host_that_is_a_number_is_refused_in_every_spelling",
        f"{WEB}::test_a_host_that_the_system_reads_as_this_machine_is_refused",
        f"{WEB}::test_a_redirect_is_checked_like_the_first_address",
        f"{WEB}::test_the_connection_goes_to_the_address_that_was_checked",
    ),
    "25 the bot's own files": (
        "agent/tools/test_workspace_config.py::test_it_may_not_hold_the_bots_own_files",
        f"{COMMANDS}::test_the_bots_own_files_are_out_of_reach",
        f"{COMMANDS}::test_a_folder_of_the_bot_below_one_that_is_shown_stays_empty",
        f"{COMMANDS}::test_a_folder_with_files_of_the_bot_is_not_shown_to_commands",
    ),
    "26 the environment": (f"{COMMANDS}::test_the_environment_is_minimal",),
    "27 hostile ids, SQL and modals": (
        f"{VIEW}::test_a_malformed_custom_id_is_nothing",
        f"{HOSTILE}::test_hostile_text_in_every_field_comes_back",
        f"{ATTACKS}::test_a_forged_id_is_an_unknown_request",
        f"{ATTACKS}::test_a_submitted_modal_with_hostile_content_decides_nothing",
        f"{ATTACKS}::test_hostile_text_reaches_the_tool_as_it_is_and_the_database_lives",
    ),
    "28 a plugin or an MCP server that hangs, floods or raises": (
        f"{BLOCKING}::test_a_sync_tool_that_never_ends_is_given_up_at_its_time_limit",
        f"{MCP}::test_a_server_that_falls_silent_in_a_call_may_have_run_it_and_is_started_again",
        f"{MCP}::test_a_server_that_never_answers_is_not_waited_for",
        f"{MCP}::test_a_server_that_dies_or_fails_in_a_call_leaves_the_turn_alive_and_is_started_again",
        f"{PROTOCOL}::test_a_server_that_floods_is_cut_short",
        f"{SCHEMAS}::test_a_hostile_schema_takes_no_long_time_and_leaves_the_call_to_the_server",
        f"{RESULTS}::test_a_long_result_is_cut_in_the_middle",
        f"{GENERATORS}::test_a_generator_that_never_ends_is_a_failed_result",
        f"{EXITS}::test_an_exit_an_interrupt_or_a_panic_is_a_failed_result",
    ),
    "29 policy or store fail": (
        f"{POLICY}::test_a_failing_predicate_is_not_an_approval",
        f"{GATE}::test_a_failing_policy_runs_nothing_and_says_so",
        f"{GATE}::test_a_failing_store_runs_nothing",
        f"{DESK}::test_a_failing_store_approves_nothing",
        f"{CLICKS}::test_a_failing_desk_is_said_and_decides_nothing",
        f"{ATTACKS}::test_a_condition_that_fails_runs_nothing_and_is_said",
        f"{ATTACKS}::test_a_database_that_fails_at_the_click_approves_nothing_and_says_so",
    ),
    "30 the record edited, removed or cut off": (
        f"{RECORD}::test_any_changed_byte_of_any_column_is_found_and_its_row_named",
        f"{RECORD}::test_a_row_removed_in_the_middle_is_found",
        f"{RECORD}::test_a_row_inserted_with_a_right_hash_is_named",
        f"{RECORD}::test_two_swapped_rows_are_found",
        f"{RECORD}::test_a_cut_at_the_end_is_found_by_the_anchor",
        f"{RECORD}::test_a_tail_written_anew_with_right_hashes_is_found_by_the_anchor",
        f"{RECORD}::test_a_changed_text_is_found",
        f"{ANCHOR}::test_rows_cut_while_the_bot_was_down_are_recorded_for_ever",
        f"{ANCHOR}::test_rows_cut_while_the_bot_is_running_are_recorded",
        f"{ANCHOR}::test_kill_9_in_the_middle_of_commits_leaves_an_intact_record",
    ),
    "31 links": (
        f"{REPLIES}::test_links_do_not_unfurl_and_mentions_do_not_ping",
        f"{ATTACKS}::test_links_in_replies_and_cards_do_not_unfurl",
    ),
    "32 floods of mentions": (
        f"{DRIVER}::test_three_turns_of_a_person_are_under_way_and_others_are_not_kept_waiting",
        f"{DRIVER}::test_a_conversation_is_refused_more_than_its_queue_holds",
        f"{TALK}::test_a_mention_over_the_limits_is_refused_in_words",
        f"{ATTACKS}::test_a_flood_by_one_person_is_queued_within_limits_and_others_are_served",
        f"{ATTACKS}::test_a_flood_in_one_thread_is_queued_within_limits",
    ),
    "33 a value that card and rules do not see": (
        f"{SHOWN}::test_an_alias_cannot_carry_another_value_past_card_and_rules",
        f"{SHOWN}::test_a_deny_rule_sees_what_the_tool_would_get",
        f"{SHOWN}::test_whatever_the_tool_gets_is_what_was_shown_or_the_call_is_refused",
        f"{SHOWN}::test_arguments_that_never_settle_are_refused",
    ),
    "34 values that the card cannot see": (f"{SHOWN}::test_a_remembered_yes_covers_only_what_was_shown",),
    "35 the order of keys": (
        f"{SHOWN}::test_the_tool_gets_the_order_that_was_shown",
        f"{SHOWN}::test_free_arguments_come_in_an_order_that_the_model_cannot_choose",
    ),
    "36 a held call whose tool asks": (
        f"{SHOWN}::test_the_words_of_a_held_call_are_shown_before_it_runs",
        f"{GATE}::test_a_held_call_whose_tool_asks_is_put_on_a_card_with_the_tools_words",
    ),
    "39 rights that were taken away": (
        f"{TODAY}::test_a_person_that_todays_rules_do_not_name_cannot_decide_an_older_card",
        f"{TODAY}::test_a_person_who_is_no_longer_listed_for_direct_messages_decides_nothing",
        f"{TODAY}::test_a_grant_does_not_outlive_the_rights_of_its_giver",
        f"{PEOPLE}::test_a_role_that_the_operator_removed_no_longer_decides_cards_that_were_open",
    ),
    "42 one person edits and accepts": (
        f"{EDITS}::test_with_four_eyes_somebody_else_has_to_accept_an_edit",
        f"{EDITS}::test_with_four_eyes_the_only_approver_cannot_edit_because_nobody_could_accept",
    ),
    "44 passwords that a command or a sentence names": (
        f"{TOLD}::test_a_password_in_a_command_a_statement_or_a_sentence_is_masked",
        f"{TOLD}::test_a_telegram_token_is_masked",
    ),
    "45 a clock that is set back": (
        f"{CLOCK}::test_a_clock_that_is_set_back_moves_no_deadline",
        f"{CLOCK}::test_a_click_after_the_shown_deadline_is_late_although_the_clock_was_set_back",
        f"{CLOCK}::test_a_click_is_late_if_the_clock_was_set_back_while_the_bot_was_down",
    ),
    "41 tools of one name": (
        f"{SURVEY}::test_a_toolset_whose_tool_has_a_taken_name_stops_the_start",
        f"{SURVEY}::test_an_mcp_tool_with_the_name_of_a_plugins_tool_stops_the_start",
        "agent/test_plugins.py::test_names_are_unique_across_plugins_and_built_in_tools",
    ),
    "37 one person's slow tools": (
        f"{SHARES}::test_nobody_waits_for_the_tools_of_two_people_with_thirty_calls_each",
        f"{SHARES}::test_tools_that_were_given_up_and_still_run_count_and_the_person_is_told",
        f"{SHARES}::test_the_time_limit_starts_when_the_tool_starts",
    ),
    "38 exits, interrupts and panics": (
        f"{EXITS}::test_an_exit_an_interrupt_or_a_panic_is_a_failed_result",
        f"{EXITS}::test_the_same_in_a_preview_is_a_failed_result",
        f"{EXITS}::test_the_same_in_a_condition_or_a_validator_runs_nothing_and_is_said",
        f"{EXITS}::test_a_task_that_a_tool_left_alone_cannot_end_the_loop_of_the_tools",
    ),
    "40 generators": (
        f"{GENERATORS}::test_the_items_of_a_generator_are_the_result",
        f"{GENERATORS}::test_a_generator_has_no_longer_than_any_tool_and_stops_nobody",
        f"{GENERATORS}::test_a_generator_that_never_ends_is_a_failed_result",
    ),
    "43 half a megabyte of arguments": (
        f"{LARGE}::test_a_large_call_never_keeps_the_loop_busy",
        "approvals/test_large_values.py::test_only_work_on_a_large_value_runs_in_a_thread",
    ),
    "47 results that cannot be passed on": (f"{RESULTS}::test_a_result_that_cannot_be_passed_on_fails_its_call_alone",),
    "48 async tools that block": (
        f"{BLOCKING}::test_an_async_tool_that_blocks_stops_neither_the_bot_nor_the_next_call",
        f"{BLOCKING}::test_an_async_tool_that_blocks_is_given_up_at_its_time_limit",
        f"{BLOCKING}::test_a_condition_a_preview_or_a_validator_that_blocks_stops_nobody",
    ),
    "49 a denied tool in a sub-agent": (
        f"{INNER}::test_a_rule_denies_a_call_of_an_agent_inside_a_tool",
        f"{INNER}::test_each_way_to_run_an_agent_passes_the_gate",
        f"{INNER}::test_an_agent_in_a_thread_that_a_tool_starts_passes_the_gate",
        "gate/test_agents_beside_tools.py::test_an_agent_that_no_tool_runs_passes_the_gate_and_asks_nobody",
        "library/test_run.py::test_an_agent_inside_a_tool_asks_through_the_ui_of_the_run_without_being_changed",
    ),
    "50 an imported agent's tool that declares nothing": (
        f"{UNDECLARED}::test_a_shell_that_declares_nothing_waits_for_a_person",
        f"{MARKED}::test_a_tool_that_declares_nothing_asks_unless_it_is_marked_read_only",
        f"{MARKED}::test_a_tool_of_a_capability_asks",
    ),
    "51 an MCP server dies inside a call": (
        f"{MCP}::test_a_server_that_dies_in_a_call_leaves_a_call_that_may_have_run",
        f"{MCP}::test_a_server_that_is_killed_in_a_call_is_started_again_by_the_next_call_of_the_run",
        f"{MCP}::test_an_mcp_toolset_of_a_plugin_that_dies_in_a_call_may_have_run_too",
        f"{MCP}::test_a_refusal_of_a_server_is_a_failure_and_not_a_call_that_may_have_run",
    ),
    "52 the order of starts": (f"{SHOWN}::test_accepted_calls_start_in_the_order_of_the_card",),
    "53 refused requests that are repeated": (
        f"{REFUSALS}::test_where_the_bot_cannot_reply_the_model_is_not_asked",
        f"{REFUSALS}::test_two_people_who_mention_it_there_again_and_again_cost_one_refusal_each",
        f"{REFUSALS}::test_a_refusal_that_the_permissions_do_not_show_is_not_repeated_either",
        f"{REFUSALS}::test_closed_direct_messages_are_tried_once",
        f"{REFUSALS}::test_every_refused_response_counts_typing_and_commands_too",
        f"{REFUSALS}::test_with_many_refusals_only_what_matters_is_sent",
        f"{REFUSALS}::test_with_very_many_refusals_no_mention_is_taken",
        f"{LATE}::test_a_reply_that_is_refused_for_good_is_tried_once_also_after_a_restart",
        f"{LATE}::test_a_settled_card_that_may_not_be_changed_is_tried_once",
        f"{WHOLE_REFUSALS}::test_a_mention_in_a_closed_channel_costs_one_refusal_and_no_model_request",
        f"{WHOLE_REFUSALS}::test_a_mention_that_discord_refuses_unexpectedly_costs_three_refusals",
    ),
    "54 before the server's data have arrived": (
        f"{UNKNOWN}::test_a_rightful_approver_is_not_refused",
        f"{UNKNOWN}::test_an_admin_is_not_refused_and_others_still_are",
        f"{UNKNOWN}::test_a_mention_counts_with_the_roles_of_its_author",
        f"{UNKNOWN}::test_the_rights_of_the_author_are_looked_up",
        f"{UNKNOWN}::test_a_mention_is_taken_even_if_the_author_cannot_be_looked_up",
    ),
    "55 killed between posting and noting": (
        f"{EARLIER}::test_the_card_is_found_again_and_takes_the_decision",
        f"{EARLIER}::test_of_several_cards_only_the_newest_keeps_its_buttons",
        f"{EARLIER}::test_a_reply_is_found_again",
        f"{EARLIER}::test_of_a_long_reply_only_the_missing_parts_are_posted",
        f"{CRASH}::test_a_post_that_was_not_noted_is_found_again_after_discord_forgot_its_nonce",
    ),
    "56 outages": (
        f"{OUTAGES}::test_one_failure_at_the_opening_of_the_thread_does_not_move_the_conversation",
        f"{OUTAGES}::test_a_long_outage_does_not_move_it_either_and_the_reply_opens_the_thread",
        f"{OUTAGES}::test_a_card_that_meets_a_busy_discord_is_delayed_and_not_failed",
        f"{OUTAGES}::test_an_outage_at_the_login_does_not_end_the_bot",
        f"{OUTAGES}::test_an_outage_of_the_gateway_at_the_start_does_not_end_the_bot",
        f"{LATE}::test_a_delayed_card_is_posted_later_and_can_be_decided",
        f"{LATE}::test_a_card_that_is_delayed_past_its_deadline_expires_and_the_asker_is_told",
    ),
}

REQUIRED = {*range(1, 46), *range(47, 57)}


def numbers() -> set[int]:
    return {int(row.split()[0]) for row in ROWS}


def test_every_required_row_is_there() -> None:
    assert numbers() == REQUIRED


@pytest.mark.parametrize("row", ROWS)
def test_the_tests_of_a_row_exist_and_run(row: str) -> None:
    named = [node_id.partition("::") for node_id in ROWS[row]]
    assert named, f"nothing proves row {row}"
    found = [trouble for file, _, name in named if (trouble := problem(file, name))]
    assert found == [], f"name the tests that prove row {row} now"
