"""Compaction options of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lsm.levels.sorted_runs import LevelRun
from lsm.levels.universal import EarlyFullCompaction, ForceUpLevel0, GrowingTrigger, OffPeakHours, UniversalCompaction
from manifest.options.core_options import RUNS_BEFORE_STOP
from manifest.schema.table_kind import TableKind

CompactStrategy: TypeAlias = UniversalCompaction | ForceUpLevel0


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """Compaction options of a table."""

    strategy: CompactStrategy
    number_of_levels: int
    min_file_size: int
    force_rewrite: bool = False
    stop_trigger: int | None = None

    def is_crowded(self, runs: Sequence[LevelRun]) -> bool:
        """Return whether writers wait for the compaction of ``runs``."""
        return len(runs) >= (self.stop_trigger or self.strategy.trigger_of(runs) + RUNS_BEFORE_STOP)

    @classmethod
    def of(cls, kind: TableKind) -> CompactionPolicy:
        """Return the policy of a primary-key table."""
        options = kind.options
        early = EarlyFullCompaction(
            options.compaction_optimization_interval,
            options.compaction_total_size_threshold,
            options.compaction_incremental_size_threshold,
        )
        min_file_size = int(kind.target_file_size * options.compaction_small_file_ratio)
        forced = options.needs_lookup or options.compaction_force_up_level_0
        # These tables leave nothing on level 0, so their runs are few. An explicit trigger means what it means in Paimon.
        growth = None if forced or options.has_compaction_trigger else GrowingTrigger(level0_size=min_file_size)
        if growth and options.num_sorted_run_stop_trigger is not None:
            growth = replace(growth, most=min(growth.most, options.num_sorted_run_stop_trigger))
        universal = UniversalCompaction(
            options.compaction_max_size_amplification_percent,
            options.compaction_size_ratio,
            options.num_sorted_run_compaction_trigger,
            None if early == EarlyFullCompaction() else early,
            OffPeakHours(options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour, options.compaction_offpeak_ratio),
            growth,
        )
        trigger = options.num_sorted_run_compaction_trigger
        interval = max(trigger, options.lookup_compact_max_interval or 2 * trigger) if options.lookup_compact == "gentle" else None
        return cls(
            ForceUpLevel0(universal, interval if options.needs_lookup else None) if forced else universal,
            options.max_level + 1,
            min_file_size,
            options.compaction_force_rewrite_all_files,
            None if growth and options.num_sorted_run_stop_trigger is None else options.stop_trigger,
        )
