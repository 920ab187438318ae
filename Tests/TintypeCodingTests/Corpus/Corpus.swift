import FoundationEssentials
import TestSupport

/// The large corpus of real pictures, where it is on this machine.
enum Corpus {
    /// Whether tests read the corpus: where it is there, and the thread sanitizer, which has nothing to find, is not.
    static var isRead: Bool { Fixtures.corpus != nil && !ThisProcess.isThreadSanitized }

    /// The pictures of the manifest.
    static let pictures: [CorpusPicture] = {
        guard let folder = Fixtures.corpus, let manifest = try? Data(contentsOf: folder.appending(path: "manifest.tsv"))
        else {
            return []
        }
        // Notes may hold any character but these two.
        return manifest.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { line in
            CorpusPicture(line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false))
        }
    }()

    /// The pictures of some folders.
    static func pictures(
        in folders: String...,
        where matches: (CorpusPicture) -> Bool = { _ in true }
    ) -> [CorpusPicture] {
        self.pictures.filter { folders.contains($0.folder) && matches($0) }
    }
}
