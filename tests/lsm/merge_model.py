"""Merge engines record by record, in plain Python: what the vectorised folds must give.

Records are ``(kind, sequence, values)``: kind ``+I -U +U -D``, values a dict by column. A map is a list of pairs here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.lsm.aggregate_model import Aggregator, CannotMerge, Row, order_of

Record = tuple[str, int, Row]


@dataclass
class Model:
    """A table's merge engine: ``types`` by column (first word of the SQL type), primary ``keys``, raw table ``options``."""

    types: dict[str, str]
    keys: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)

    def merge(self, records: list[Record]) -> Record | None:
        """The result for the records of one key, oldest first; a single one is returned as it is."""
        if len(records) == 1:
            return records[0]
        return getattr(self, "_" + self.options.get("merge-engine", "deduplicate").replace("-", "_"))(records)

    def flag(self, key: str) -> bool:
        return self.options.get(key, "false") == "true"

    def _deduplicate(self, records: list[Record]) -> Record | None:
        kept = [r for r in records if r[0] in {"+I", "+U"} or not self.flag("ignore-delete")]
        return kept[-1] if kept else None

    def _first_row(self, records: list[Record]) -> Record | None:
        for kind, _, _ in records:
            if kind in {"-U", "-D"} and not self.flag("ignore-delete"):
                raise CannotMerge("first-row")
        return next((r for r in records if r[0] in {"+I", "+U"}), None)

    def _functions(self) -> dict[str, Aggregator]:
        default = self.options.get("fields.default-aggregate-function")
        found = {}
        for name in self.types:
            function = self.options.get(f"fields.{name}.aggregate-function", default)
            if name in self.keys:
                continue
            if function is not None:
                found[name] = Aggregator(name, self.types[name], self.options, function)
        return found

    def _aggregation(self, records: list[Record]) -> Record:
        functions = self._functions()
        for name in self.types:
            if name in self.options.get("sequence.field", "").split(","):
                functions[name] = Aggregator(name, self.types[name], self.options, "last_value")
            elif name not in self.keys and name not in functions:
                functions[name] = Aggregator(name, self.types[name], self.options, "last_non_null_value")
        row: Row = dict.fromkeys(self.types)
        deleted = False
        for kind, _, values in records:
            deleted = kind == "-D" and self.flag("aggregation.remove-record-on-delete")
            if deleted:
                row = dict(values)
                continue
            for name in self.types:
                if name in self.keys:
                    row[name] = values[name]
                elif kind in {"+I", "+U"}:
                    row[name] = functions[name].agg(row[name], values[name])
                else:
                    row[name] = functions[name].retract(row[name], values[name])
        return ("-D" if deleted else "+I", records[-1][1], row)

    def _partial_update(self, records: list[Record]) -> Record:
        return PartialUpdateModel(self).merge(records)


class PartialUpdateModel:
    """State for one key."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.groups = []  # (ordering columns, protected columns)
        for key, value in model.options.items():
            if key.endswith(".sequence-group"):
                names = key[len("fields.") : -len(".sequence-group")].split(",")
                self.groups.append((names, value.split(",")))
        self.removing = set(filter(None, model.options.get("partial-update.remove-record-on-sequence-group", "").split(",")))
        ordering = {name for names, _ in self.groups for name in names}
        self.functions = {name: function for name, function in model._functions().items() if name not in ordering}
        self.row: Row = dict.fromkeys(model.types)
        self.sequence = 0
        self.delete_now = self.seen_add = self.seeded = False

    def merge(self, records: list[Record]) -> Record:
        for kind, sequence, values in records:
            self.delete_now = False
            if kind in {"+I", "+U"}:
                self.sequence = sequence
                self.add(values)
                self.seen_add = self.seeded = True
            else:
                self.retract(kind, sequence, values)
        return ("-D" if self.delete_now or not self.seen_add else "+I", self.sequence, self.row)

    def group_of(self, name: str) -> tuple[list[str], bool] | None:
        for names, protected in self.groups:
            if name in names:
                return names, True
            if name in protected:
                return names, False
        return None

    def is_newer(self, names: list[str], values: Row) -> bool:
        return [order_of(values[n], self.model.types[n]) for n in names] >= [order_of(self.row[n], self.model.types[n]) for n in names]

    def add(self, values: Row) -> None:
        for name in self.model.types:
            if name in self.model.keys:
                self.row[name] = values[name]
                continue
            group = self.group_of(name)
            function = self.functions.get(name)
            if group is None:
                if function is not None:
                    self.row[name] = function.agg(self.row[name], values[name])
                elif values[name] is not None:
                    self.row[name] = values[name]
                continue
            names, is_ordering = group
            if all(values[n] is None for n in names):
                continue
            if self.is_newer(names, values):
                if is_ordering:
                    for n in names:
                        self.row[n] = values[n]
                else:
                    self.row[name] = values[name] if function is None else function.agg(self.row[name], values[name])
            elif function is not None:
                self.row[name] = function.agg_reversed(self.row[name], values[name])

    def retract(self, kind: str, sequence: int, values: Row) -> None:
        if not self.seeded:
            self.row = dict(values)
            self.seeded = True
        if self.model.flag("ignore-delete"):
            return
        self.sequence = sequence
        if self.groups:
            self.retract_groups(kind, values)
        elif self.model.flag("partial-update.remove-record-on-delete"):
            if kind == "-D":
                self.delete_now = True
                self.row = dict(values)
        else:
            raise CannotMerge("partial-update")

    def retract_groups(self, kind: str, values: Row) -> None:
        for name in self.model.types:
            group = None if name in self.model.keys else self.group_of(name)
            if group is None:
                continue
            names, is_ordering = group
            function = self.functions.get(name)
            if all(values[n] is None for n in names):
                continue
            if self.is_newer(names, values):
                if is_ordering:
                    if kind == "-D" and self.removing & set(names):
                        self.delete_now = True
                        self.row = dict(values)
                        return
                    for n in names:
                        self.row[n] = values[n]
                else:
                    self.row[name] = None if function is None else function.retract(self.row[name], values[name])
            elif function is not None:
                self.row[name] = function.retract(self.row[name], values[name])
