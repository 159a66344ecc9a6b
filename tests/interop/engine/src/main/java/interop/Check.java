package interop;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.Snapshot;
import org.apache.paimon.codegen.CodeGenUtils;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.data.serializer.InternalSerializers;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.fs.Path;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.manifest.ManifestFileMeta;
import org.apache.paimon.manifest.ManifestList;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.ProjectedRow;

/** Reads every file of every snapshot and tag, and lists where a table is not as its metadata says. */
final class Check {
    private final FileStoreTable table;
    private final Set<String> problems = new LinkedHashSet<>();
    private final Set<String> notes = new LinkedHashSet<>();
    private final Set<String> seen = new LinkedHashSet<>();

    Check(FileStoreTable table) {
        this.table = table;
    }

    ObjectNode run() throws Exception {
        List<Snapshot> snapshots = new ArrayList<>(table.snapshotManager().safelyGetAllSnapshots());
        snapshots.sort(Comparator.comparing(Snapshot::id));
        for (int i = 1; i < snapshots.size(); i++) {
            expect(snapshots.get(i).id() == snapshots.get(i - 1).id() + 1, "no snapshot between %d and %d", snapshots.get(i - 1).id(), snapshots.get(i).id());
        }
        for (Snapshot snapshot : snapshots) {
            guarded("snapshot " + snapshot.id(), () -> snapshot(snapshot, true));
        }
        for (Snapshot snapshot : table.tagManager().taggedSnapshots()) {
            guarded("tag of snapshot " + snapshot.id(), () -> snapshot(snapshot, false)); // expiry takes its changelog, a tag keeps only its rows
        }
        guarded("reading the rows", () -> Reads.read(table, null, false, Reads.splits(table, null), row -> Cells.row(table.rowType(), row)));
        ObjectNode answer = Json.object().put("snapshots", snapshots.size()).put("dataFiles", seen.size());
        answer.set("problems", Json.array(problems));
        answer.set("notes", Json.array(notes));
        return answer;
    }

    private interface Step {
        void run() throws Exception;
    }

    private void guarded(String what, Step step) {
        try {
            step.run();
        } catch (Exception e) {
            problems.add(what + ": " + e);
        }
    }

    private void expect(boolean holds, String format, Object... args) {
        if (!holds) {
            problems.add(String.format(format, args));
        }
    }

    private boolean exists(Path path, Long size) throws Exception {
        if (!table.fileIO().exists(path)) {
            problems.add(path.getName() + " is missing");
            return false;
        }
        long actual = table.fileIO().getFileSize(path);
        expect(size == null || size == actual, "%s has %d bytes, not %d", path.getName(), actual, size);
        return true;
    }

    private void snapshot(Snapshot snapshot, boolean withChangelog) throws Exception {
        manifests(snapshot, withChangelog);
        List<ManifestEntry> live = Metadata.live(table, snapshot);
        Map<String, Long> rowCounts = new HashMap<>();
        for (ManifestEntry entry : live) {
            expect(rowCounts.put(entry.fileName(), entry.file().rowCount()) == null, "%s is in snapshot %d twice", entry.fileName(), snapshot.id());
            if (seen.add(entry.fileName())) {
                guarded(entry.fileName(), () -> dataFile(entry));
            }
        }
        long total = rowCounts.values().stream().mapToLong(Long::longValue).sum();
        expect(total == snapshot.totalRecordCount(), "snapshot %d counts %d rows, its files %d", snapshot.id(), snapshot.totalRecordCount(), total);
        levels(live);
        if (snapshot.indexManifest() != null) {
            indexFiles(snapshot, rowCounts);
        }
    }

    private void manifests(Snapshot snapshot, boolean withChangelog) throws Exception {
        Path directory = table.store().pathFactory().manifestPath();
        exists(new Path(directory, snapshot.baseManifestList()), snapshot.baseManifestListSize());
        exists(new Path(directory, snapshot.deltaManifestList()), snapshot.deltaManifestListSize());
        ManifestList lists = table.store().manifestListFactory().create();
        for (ManifestFileMeta meta : lists.readDataManifests(snapshot)) {
            manifest(new Path(directory, meta.fileName()), meta);
        }
        if (withChangelog && snapshot.changelogManifestList() != null) {
            exists(new Path(directory, snapshot.changelogManifestList()), snapshot.changelogManifestListSize());
            changelog(snapshot, lists.readChangelogManifests(snapshot));
        }
    }

    private List<ManifestEntry> manifest(Path path, ManifestFileMeta meta) throws Exception {
        if (!exists(path, meta.fileSize())) {
            return List.of();
        }
        List<ManifestEntry> entries = table.store().manifestFileFactory().create().read(meta.fileName(), meta.fileSize());
        long added = entries.stream().filter(entry -> entry.kind() == FileKind.ADD).count();
        expect(added == meta.numAddedFiles(), "%s adds %d files, not %d", meta.fileName(), added, meta.numAddedFiles());
        long deleted = entries.size() - added;
        expect(deleted == meta.numDeletedFiles(), "%s deletes %d files, not %d", meta.fileName(), deleted, meta.numDeletedFiles());
        for (ManifestEntry entry : entries) {
            expect(meta.minBucket() == null || (meta.minBucket() <= entry.bucket() && entry.bucket() <= meta.maxBucket()), "%s: bucket %d is out of range", meta.fileName(), entry.bucket());
            expect(meta.minLevel() == null || (meta.minLevel() <= entry.level() && entry.level() <= meta.maxLevel()), "%s: level %d is out of range", meta.fileName(), entry.level());
        }
        return entries;
    }

    private void changelog(Snapshot snapshot, List<ManifestFileMeta> metas) throws Exception {
        long rows = 0;
        for (ManifestFileMeta meta : metas) {
            for (ManifestEntry entry : manifest(new Path(table.store().pathFactory().manifestPath(), meta.fileName()), meta)) {
                rows += entry.file().rowCount();
                exists(DataFiles.path(table, entry), entry.file().fileSize());
            }
        }
        expect(snapshot.changelogRecordCount() == null || snapshot.changelogRecordCount() == rows, "snapshot %d counts %d changes, its files %d", snapshot.id(), snapshot.changelogRecordCount(), rows);
    }

    private void dataFile(ManifestEntry entry) throws Exception {
        DataFileMeta file = entry.file();
        for (String extra : file.extraFiles()) {
            exists(DataFiles.paths(table, entry).toAlignedPath(extra, file), null);
        }
        if (!exists(DataFiles.path(table, entry), file.fileSize())) {
            return;
        }
        byte[] container = Indexes.container(table, entry);
        if (container != null) {
            Indexes.payloads(table, entry, container);
        }
        TableSchema schema = table.schemaManager().schema(file.schemaId());
        FileFacts facts = new FileFacts(schema);
        DataFiles.read(table, entry, schema, facts.columns, facts::take);
        expect(facts.rows == file.rowCount(), "%s has %d rows, not %d", file.fileName(), facts.rows, file.rowCount());
        if (!facts.keyed || facts.rows == 0) {
            return;
        }
        expect(facts.disorder < 0, "%s: keys do not ascend at row %d", file.fileName(), facts.disorder);
        long deletes = file.deleteRowCount().orElse(facts.deletes);
        expect(facts.deletes == deletes, "%s has %d deletes, not %d", file.fileName(), facts.deletes, deletes);
        expect(facts.least == file.minSequenceNumber() && facts.greatest == file.maxSequenceNumber(), "%s has sequences %d to %d, not %d to %d", file.fileName(), facts.least, facts.greatest, file.minSequenceNumber(), file.maxSequenceNumber());
        expect(facts.order.compare(facts.first, file.minKey()) == 0, "%s: the least key is another", file.fileName());
        expect(facts.order.compare(facts.last, file.maxKey()) == 0, "%s: the greatest key is another", file.fileName());
    }

    /** What one pass over a data file finds out. */
    private static final class FileFacts {
        final boolean keyed;
        final RowType columns;
        final Comparator<InternalRow> order;
        private final int sequence;
        private final int[] keyColumns;
        private final InternalRowSerializer keySerializer;
        long rows;
        long deletes;
        long least = Long.MAX_VALUE;
        long greatest = Long.MIN_VALUE;
        long disorder = -1;
        InternalRow first;
        InternalRow last;

        FileFacts(TableSchema schema) {
            keyed = !schema.primaryKeys().isEmpty();
            List<DataField> fields = new ArrayList<>(schema.fields());
            sequence = fields.size();
            if (keyed) {
                fields.add(SpecialFields.SEQUENCE_NUMBER);
                fields.add(SpecialFields.VALUE_KIND);
            }
            columns = new RowType(fields);
            RowType key = schema.logicalTrimmedPrimaryKeysType();
            keyColumns = keyed ? schema.projection(schema.trimmedPrimaryKeys()) : new int[0];
            order = keyed ? CodeGenUtils.newRecordComparator(key.getFieldTypes())::compare : null;
            keySerializer = keyed ? InternalSerializers.create(key) : null;
        }

        void take(InternalRow row) {
            Cells.row(columns, row);
            rows++;
            if (!keyed) {
                return;
            }
            int kind = row.getByte(sequence + 1);
            deletes += kind == 1 || kind == 3 ? 1 : 0;
            least = Math.min(least, row.getLong(sequence));
            greatest = Math.max(greatest, row.getLong(sequence));
            InternalRow key = keySerializer.toBinaryRow(ProjectedRow.from(keyColumns).replaceRow(row)).copy();
            if (last != null && order.compare(last, key) >= 0 && disorder < 0) {
                disorder = rows - 1;
            }
            first = first == null ? key : first;
            last = key;
        }
    }

    /** Above level 0 the files of a level are one sorted run: no two share a key. */
    private void levels(Collection<ManifestEntry> live) {
        if (table.primaryKeys().isEmpty()) {
            return;
        }
        Comparator<InternalRow> order = CodeGenUtils.newRecordComparator(table.schema().logicalTrimmedPrimaryKeysType().getFieldTypes())::compare;
        Map<List<Object>, List<DataFileMeta>> runs = new LinkedHashMap<>();
        for (ManifestEntry entry : live) {
            if (entry.level() > 0) {
                runs.computeIfAbsent(List.of(entry.partition(), entry.bucket(), entry.level()), at -> new ArrayList<>()).add(entry.file());
            }
        }
        for (List<DataFileMeta> run : runs.values()) {
            run.sort((a, b) -> order.compare(a.minKey(), b.minKey()));
            for (int i = 1; i < run.size(); i++) {
                DataFileMeta before = run.get(i - 1);
                expect(order.compare(before.maxKey(), run.get(i).minKey()) < 0, "%s and %s overlap on level %d", before.fileName(), run.get(i).fileName(), before.level());
            }
        }
    }

    private void indexFiles(Snapshot snapshot, Map<String, Long> rowCounts) throws Exception {
        IndexFileHandler handler = table.store().newIndexFileHandler();
        exists(new Path(table.store().pathFactory().manifestPath(), snapshot.indexManifest()), null);
        for (IndexManifestEntry entry : handler.readManifest(snapshot.indexManifest())) {
            IndexFileMeta file = entry.indexFile();
            if (!exists(handler.filePath(entry), file.fileSize())) {
                continue;
            }
            if (file.indexType().equals("HASH")) {
                int hashes = handler.hashIndex(entry.partition(), entry.bucket()).readList(file).size();
                expect(hashes == file.rowCount(), "%s has %d hashes, not %d", file.fileName(), hashes, file.rowCount());
            } else if (file.indexType().equals("DELETION_VECTORS")) {
                vectors(file, handler.readAllDeletionVectors(entry), rowCounts);
            }
        }
    }

    private void vectors(IndexFileMeta file, Map<String, DeletionVector> vectors, Map<String, Long> rowCounts) {
        expect(vectors.size() == file.rowCount(), "%s has %d vectors, not %d", file.fileName(), vectors.size(), file.rowCount());
        vectors.forEach((dataFile, vector) -> {
            Long recorded = file.dvRanges().get(dataFile).cardinality();
            expect(recorded == null || recorded == vector.getCardinality(), "%s: %d rows of %s are deleted, not %d", file.fileName(), vector.getCardinality(), dataFile, recorded);
            Long rows = rowCounts.get(dataFile);
            if (rows == null) {
                notes.add(file.fileName() + ": a vector of " + dataFile + ", which is not there"); // the engine's own compactions leave some
                return;
            }
            long inside = java.util.stream.LongStream.range(0, rows).filter(vector::isDeleted).count();
            expect(inside == vector.getCardinality(), "%s: positions beyond the rows of %s", file.fileName(), dataFile);
        });
    }
}
