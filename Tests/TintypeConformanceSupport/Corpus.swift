// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import TintypeTestSupport

/// The large corpus of real images, if this machine has it.
public enum Corpus {
    /// Whether tests read the corpus, which they skip with the thread sanitizer because it would find nothing.
    public static var isRead: Bool { Fixtures.corpus != nil && !ThisProcess.isThreadSanitized }

    /// The images of the manifest.
    public static let images: [CorpusImage] = {
        guard let folder = Fixtures.corpus, let manifest = try? Data(contentsOf: folder.appending(path: "manifest.tsv"))
        else {
            return []
        }
        // Notes may contain any character except these two.
        return manifest.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { line in
            CorpusImage(line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false))
        }
    }()

    /// Returns the images of some folders.
    public static func images(
        in folders: String...,
        where matches: (CorpusImage) -> Bool = { _ in true }
    ) -> [CorpusImage] {
        self.images.filter { folders.contains($0.folder) && matches($0) }
    }

    /// Returns the URL of a corpus file.
    public static func url(of path: String) throws -> URL {
        guard let folder = Fixtures.corpus else {
            throw TestSupportError("The corpus is not on this machine; set TINTYPE_CORPUS to its folder.")
        }
        return folder.appending(path: path)
    }

    /// Returns the lines of a corpus table as columns, without the head line.
    public static func table(_ name: String) -> [[String]] {
        guard let url = try? self.url(of: name), let data = try? Data(contentsOf: url) else { return [] }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").dropFirst().map { line in
            line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }
}
