import FoundationEssentials
import Glibc

/// The large corpus of real pictures, where it is on this machine.
///
/// Its folder is `$TINTYPE_CORPUS`, or `../shared/corpus` beside the package.
enum Corpus {
    static let folder: URL? = {
        let package = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        let named = getenv("TINTYPE_CORPUS").map { URL(filePath: String(cString: $0)) }
        let folder = named ?? package.deletingLastPathComponent().appending(path: "shared/corpus")
        return FileManager.default.fileExists(atPath: folder.appending(path: "manifest.tsv").path) ? folder : nil
    }()

    static var isPresent: Bool { self.folder != nil }

    /// The pictures of the manifest.
    static let pictures: [CorpusPicture] = {
        guard let folder, let manifest = try? Data(contentsOf: folder.appending(path: "manifest.tsv")) else {
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
