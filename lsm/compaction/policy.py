"""Compaction options of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lsm.levels.universal import EarlyFullCompaction, ForceUpLevel0, OffPeakHours, UniversalCompaction
from manifest.schema.table_kind import TableKind

CompactStrategy: TypeAlias = UniversalCompaction | ForceUpLevel0


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Compaction options of a table."""

    strategy: CompactStrategy
    number_of_levels: int
    min_file_size: int
    force_rewrite: bool = False

    @classmethod
    def of(cls, kind: TableKind) -> CompactionPolicy:
        """Return the policy of a primary-key table."""
        options = kind.options
        early = EarlyFullCompaction(
            options.compaction_optimization_interval,
            options.compaction_total_size_threshold,
            options.compaction_incremental_size_threshold,
        )
        universal = UniversalCompaction(
            options.compaction_max_size_amplification_percent,
            options.compaction_size_ratio,
            options.num_sorted_run_compaction_trigger,
            None if early == EarlyFullCompaction() else early,
            OffPeakHours(options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour, options.compaction_offpeak_ratio),
        )
        forced = options.needs_lookup or options.compaction_force_up_level_0
        trigger = options.num_sorted_run_compaction_trigger
        interval = max(trigger, options.lookup_compact_max_interval or 2 * trigger) if options.lookup_compact == "gentle" else None
        return cls(
            ForceUpLevel0(universal, interval if options.needs_lookup else None) if forced else universal,
            options.max_level + 1,
            int(kind.target_file_size * options.compaction_small_file_ratio),
            options.compaction_force_rewrite_all_files,
        )
