extension EntryStore {
    /// What is known now, without looking at the folder; `nil` while not all entries are known.
    func statistics() -> DiskStatistics? {
        guard let folder = self.folderInPlace() else { return DiskStatistics(self, nil) }
        let region = (try? folder.withCatalogue { catalogue, _ in catalogue.region }) ?? folder.region
        if case .readOnly = folder.mode { return DiskStatistics(self, region) }
        return region.flags.contains(.isComplete) ? DiskStatistics(self, region) : nil
    }

    /// What is known now, whether or not it is all.
    var knownStatistics: DiskStatistics { DiskStatistics(self, self.openedFolder?.region) }
}
