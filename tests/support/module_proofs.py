"""The modules that have no unit test of their own, under the test that proves them.

Most are edges that only make sense together: a tool with its schema, a command with the operation that it asks for."""

from __future__ import annotations

from typing import Final

MODULES_BY_PROOF: Final[dict[str, tuple[str, ...]]] = {
    "tests/contract/test_authorisation.py": ("mcp_server/operations/caller.py",),
    "tests/contract/test_agent_boundary.py": ("syncd/workspaces/agent_access.py",),
    "tests/contract/test_graph_contract.py": (
        "mcp_server/tools/graph.py",
        "mcp_server/tools/graph_answers.py",
        "mcp_server/tools/graph_calls.py",
        "mcp_server/tools/graph_schema.py",
    ),
    "tests/contract/test_guard.py": (
        "mcp_server/guard/guard.py",
        "mcp_server/http/allowed_hosts.py",
        "mcp_server/http/head_timeout.py",
        "mcp_server/http/refusals.py",
    ),
    "tests/contract/test_kb_contract.py": (
        "mcp_server/tools/kb.py",
        "mcp_server/tools/kb_calls.py",
        "mcp_server/tools/kb_schema.py",
    ),
    "tests/contract/test_mcp.py": ("mcp_server/protocol/mcp_protocol.py",),
    "tests/contract/test_memory_contract.py": (
        "mcp_server/tools/memory.py",
        "mcp_server/tools/memory_schema.py",
    ),
    "tests/contract/test_memory_over_http.py": ("mcp_server/operations/wire_format.py",),
    "tests/contract/test_progress.py": (
        "mcp_server/operations/operation.py",
        "mcp_server/protocol/progress.py",
    ),
    "tests/contract/test_resources.py": (
        "mcp_server/protocol/completion.py",
        "mcp_server/protocol/prompts.py",
        "mcp_server/protocol/resources.py",
    ),
    "tests/contract/test_rest.py": (
        "mcp_server/rest/openapi.py",
        "mcp_server/rest/routes.py",
        "mcp_server/server.py",
    ),
    "tests/contract/test_subscriptions.py": ("mcp_server/protocol/subscriptions.py",),
    "tests/contract/test_thoughts_contract.py": (
        "mcp_server/tools/thoughts.py",
        "mcp_server/tools/thoughts_schema.py",
        "syncd/workspaces/workspace.py",
    ),
    "tests/integration/test_consolidation_daemon.py": ("syncd/daemon/vault_services.py",),
    "tests/integration/test_daemon.py": (
        "syncd/app.py",
        "syncd/daemon/open_parts.py",
        "syncd/owner/index.py",
    ),
    "tests/integration/test_degraded_modes.py": ("syncd/daemon/health.py",),
    "tests/integration/test_files_served.py": ("syncd/files/file_import.py",),
    "tests/integration/test_real_files.py": (
        "syncd/files/conversion/readers/pdf.py",
        "syncd/files/conversion/readers/powerpoint.py",
    ),
    "tests/integration/test_sync_pipeline.py": (
        "index/scope/index.py",
        "index/scope/vector_reuse.py",
        "syncd/indexes/index_builds.py",
        "syncd/sync/pipeline.py",
    ),
    "tests/integration/test_telemetry.py": (
        "index/tracing.py",
        "mcp_server/http/metrics_page.py",
        "mcp_server/http/request_log.py",
        "syncd/daemon/metrics.py",
        "syncd/telemetry/metric_samples.py",
        "syncd/telemetry/request_traces.py",
    ),
    "tests/integration/test_undo_daemon.py": (
        "syncd/cli/notes/history.py",
        "syncd/owner/history.py",
    ),
    "tests/unit/index/catalog/test_catalog.py": ("index/catalog/sqlite_file.py",),
    "tests/unit/index/catalog/test_recent_documents.py": ("index/catalog/schema.py",),
    "tests/unit/index/encoders/test_bundled_model.py": (
        "index/encoders/onnx_graph.py",
        "index/encoders/onnx_session.py",
    ),
    "tests/unit/index/encoders/test_cross_encoder.py": ("index/encoders/model_files.py",),
    "tests/unit/index/encoders/test_embedder.py": (
        "index/encoders/settings.py",
        "index/errors.py",
    ),
    "tests/unit/index/encoders/test_sentence_transformer.py": ("index/encoders/onnx_export.py",),
    "tests/unit/index/graph/test_graph.py": ("index/graph/vertex.py",),
    "tests/unit/index/graph/test_unlinked_names.py": ("index/encoders/word_frequency.py",),
    "tests/unit/index/observations/test_observation_rows.py": (
        "index/observations/observation_store.py",
        "index/observations/perspectives.py",
        "index/observations/similarity_baseline.py",
        "index/scope/integrity_check.py",
        "index/scope/prepared_document.py",
    ),
    "tests/unit/index/search/test_hybrid_search.py": ("index/scope/reader.py",),
    "tests/unit/index/storage/test_resident_rows.py": (
        "index/storage/arrow_rows.py",
        "index/storage/chunk_rows.py",
        "index/storage/lancedb_table.py",
    ),
    "tests/unit/index/test_document_ids.py": ("index/names.py",),
    "tests/unit/index/text/test_chunking.py": ("index/model.py",),
    "tests/unit/index/text/test_summary_and_tags.py": (
        "index/text/sentences.py",
        "index/text/stopwords.py",
        "index/text/words.py",
    ),
    "tests/unit/mcp_server/guard/test_cloudflare_access.py": ("syncd/settings/access.py",),
    "tests/unit/mcp_server/rest/test_git_webhook.py": ("syncd/remote/push_webhook.py",),
    "tests/unit/mcp_server/rest/test_upload_form.py": ("mcp_server/http/body_limits.py",),
    "tests/unit/mcp_server/test_stdio_bridge.py": ("syncd/stdio.py",),
    "tests/unit/syncd/captures/test_note_update.py": (
        "syncd/captures/batch_writer.py",
        "syncd/captures/inbox.py",
        "syncd/captures/writer.py",
    ),
    "tests/unit/syncd/cli/daemon/test_audit.py": ("syncd/owner/audit.py",),
    "tests/unit/syncd/cli/daemon/test_git.py": (
        "syncd/owner/git.py",
        "syncd/settings/automation.py",
    ),
    "tests/unit/syncd/cli/daemon/test_status.py": ("syncd/version.py",),
    "tests/unit/syncd/cli/doctor/test_doctor.py": ("syncd/cli/daemon/doctor.py",),
    "tests/unit/syncd/cli/framework/test_completion.py": ("syncd/cli/framework/commands.py",),
    "tests/unit/syncd/cli/framework/test_help_text.py": ("syncd/cli/manual_page.py",),
    "tests/unit/syncd/cli/graph/test_graph.py": (
        "syncd/cli/graph/nodes.py",
        "syncd/owner/graph/nodes.py",
        "syncd/owner/graph/reports.py",
    ),
    "tests/unit/syncd/cli/notes/test_consolidation.py": ("syncd/owner/consolidation.py",),
    "tests/unit/syncd/cli/notes/test_files.py": (
        "syncd/owner/uploads.py",
        "syncd/uploads/local_files.py",
    ),
    "tests/unit/syncd/cli/notes/test_notes.py": ("syncd/owner/notes.py",),
    "tests/unit/syncd/cli/notes/test_promotion.py": ("syncd/owner/promotion.py",),
    "tests/unit/syncd/cli/notes/test_review.py": ("syncd/owner/review.py",),
    "tests/unit/syncd/cli/test_main.py": (
        "syncd/cli/daemon/keys_and_config.py",
        "syncd/cli/daemon/ready_message.py",
        "syncd/cli/framework/arguments.py",
        "syncd/owner/operations.py",
        "syncd/owner/workspaces_and_keys.py",
    ),
    "tests/unit/syncd/commits/test_committer.py": (
        "syncd/commits/commit_builder.py",
        "syncd/commits/commit_selection.py",
        "syncd/git/ignored_paths.py",
    ),
    "tests/unit/syncd/consolidation/analysis/test_capture_attention.py": (
        "syncd/consolidation/analysis/contradictions.py",
        "syncd/consolidation/analysis/findings.py",
    ),
    "tests/unit/syncd/consolidation/analysis/test_contradiction_rules.py": (
        "syncd/consolidation/analysis/change_words.py",
        "syncd/consolidation/analysis/sentence_claims.py",
    ),
    "tests/unit/syncd/consolidation/test_consolidation.py": (
        "syncd/consolidation/finding_proposals.py",
        "syncd/consolidation/graph_proposals.py",
        "syncd/consolidation/note_proposals.py",
        "syncd/consolidation/proposal_execution.py",
        "syncd/consolidation/proposal_plans.py",
    ),
    "tests/unit/syncd/consolidation/test_report_note.py": (
        "syncd/notes/inline_syntax.py",
        "syncd/notes/quoted_text.py",
    ),
    "tests/unit/syncd/consolidation/test_workspace_scan.py": (
        "index/catalog/workspace_overview.py",
        "syncd/consolidation/analysis/topic_groups.py",
    ),
    "tests/unit/syncd/documents/test_capture_note.py": (
        "syncd/notes/tag_names.py",
        "syncd/notes/timestamps.py",
    ),
    "tests/unit/syncd/documents/test_entity_lines.py": ("syncd/notes/block_ids.py",),
    "tests/unit/syncd/documents/test_parser.py": ("syncd/notes/markdown_outline.py",),
    "tests/unit/syncd/enrichment/test_backfill.py": (
        "syncd/cli/notes/enrichment.py",
        "syncd/enrichment/enricher.py",
    ),
    "tests/unit/syncd/files/conversion/readers/test_office_archive.py": (
        "syncd/files/conversion/readers/reader_result.py",
    ),
    "tests/unit/syncd/files/test_uploaded_files.py": ("syncd/files/file_note_writer.py",),
    "tests/unit/syncd/git/test_repository.py": (
        "syncd/git/child_process.py",
        "syncd/git/head_moves.py",
        "syncd/git/repository_folder.py",
        "syncd/git/stale_locks.py",
    ),
    "tests/unit/syncd/graph/test_attention_report.py": (
        "index/text/key_terms.py",
        "index/text/summary_draft.py",
        "syncd/graph/missing_relations.py",
        "syncd/graph/similar_nodes.py",
    ),
    "tests/unit/syncd/graph/test_memory_json.py": (
        "syncd/cli/graph/memory_json.py",
        "syncd/graph/memory_json_reader.py",
        "syncd/owner/graph/memory_json.py",
    ),
    "tests/unit/syncd/graph/test_nodes.py": (
        "syncd/graph/node_edits.py",
        "syncd/graph/node_request.py",
        "syncd/graph/workspace_report.py",
    ),
    "tests/unit/syncd/graph/test_perspectives.py": (
        "index/observations/observation_search.py",
        "syncd/cli/graph/perspectives.py",
        "syncd/owner/graph/perspectives.py",
    ),
    "tests/unit/syncd/history/test_note_history.py": ("syncd/git/note_commits.py",),
    "tests/unit/syncd/indexes/test_coverage.py": ("syncd/vault/listing.py",),
    "tests/unit/syncd/installation/test_backup.py": ("syncd/cli/daemon/backup.py",),
    "tests/unit/syncd/installation/test_service_manager.py": ("syncd/cli/daemon/service.py",),
    "tests/unit/syncd/jobs/test_queue.py": (
        "syncd/jobs/queued_job.py",
        "syncd/jobs/staged_files.py",
        "syncd/settings/knowledge_base.py",
    ),
    "tests/unit/syncd/jobs/test_scheduler.py": ("syncd/jobs/run_history.py",),
    "tests/unit/syncd/links/test_link_rewriting.py": (
        "syncd/links/link_resolution.py",
        "syncd/links/note_link_positions.py",
    ),
    "tests/unit/syncd/memos/test_memos.py": ("index/memos/queries.py",),
    "tests/unit/syncd/notes/test_front_matter.py": ("syncd/notes/property_reader.py",),
    "tests/unit/syncd/owner/test_jobs.py": ("syncd/daemon/background_jobs.py",),
    "tests/unit/syncd/promotion/test_link_updates.py": (
        "syncd/links/canvas_link_positions.py",
        "syncd/links/unlinked_mentions.py",
    ),
    "tests/unit/syncd/promotion/test_manual_moves.py": ("syncd/promotion/moved_note_detection.py",),
    "tests/unit/syncd/promotion/test_marked_captures.py": ("syncd/promotion/destination_conflicts.py",),
    "tests/unit/syncd/promotion/test_promotions.py": (
        "syncd/promotion/plan.py",
        "syncd/promotion/return_to_inbox.py",
        "syncd/promotion/vault_snapshot.py",
    ),
    "tests/unit/syncd/remote/test_branch_sync.py": (
        "syncd/remote/upstream_branch.py",
        "syncd/vault/write_reservations.py",
    ),
    "tests/unit/syncd/review/test_archive.py": ("syncd/review/archive_rules.py",),
    "tests/unit/syncd/review/test_suggestions.py": ("index/search/related_documents.py",),
    "tests/unit/syncd/sync/test_index_pass.py": ("syncd/sync/note_adoption.py",),
    "tests/unit/syncd/telemetry/test_log.py": ("syncd/settings/logs_and_traces.py",),
    "tests/unit/syncd/uploads/test_upload_sessions.py": ("syncd/uploads/chunk_files.py",),
    "tests/unit/syncd/history/test_audit_log_verification.py": ("syncd/history/digest_chain.py",),
    "tests/unit/syncd/history/test_audit_log_events.py": ("syncd/history/unlogged_changes.py",),
    "tests/unit/syncd/history/test_audit_log_writes.py": ("syncd/history/audited_vault.py",),
    "tests/unit/syncd/history/test_audit_log_tools.py": ("mcp_server/tools/families.py",),
    "tests/unit/syncd/remote/test_branch_sync_secrets.py": ("syncd/remote/outgoing_secrets.py",),
}
PROOF_OF: Final = {module: proof for proof, modules in MODULES_BY_PROOF.items() for module in modules}
