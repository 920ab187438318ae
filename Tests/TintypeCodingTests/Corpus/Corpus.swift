import FoundationEssentials
import TestSupport

/// The large corpus of real pictures, where it is on this machine.
enum Corpus {
    static var isPresent: Bool { Fixtures.corpus != nil }

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
