// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Glibc

/// The images that tests read.
public enum Fixtures {
    /// The folder of the sample files in the repository.
    public static let directory = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

    /// The folder of the large corpus, or `nil` if this machine does not have it.
    ///
    /// The folder is `$TINTYPE_CORPUS`, or by default `../shared/corpus` relative to the package. Tests that need it
    /// are skipped without it: `@Test(.enabled(if: Fixtures.corpus != nil))`.
    public static let corpus: URL? = {
        let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let named = getenv("TINTYPE_CORPUS").map { URL(filePath: String(cString: $0)) }
        let folder = named ?? package.deletingLastPathComponent().appending(path: "shared/corpus")
        var isDirectory = false
        let exists = FileManager.default.fileExists(atPath: folder.path, isDirectory: &isDirectory)
        return exists && isDirectory ? folder : nil
    }()

    /// Returns the URL of a sample file of the repository.
    public static func url(_ name: String) -> URL {
        self.directory.appending(path: name)
    }

    /// Returns the content of a sample file of the repository.
    public static func data(_ name: String) throws -> Data {
        try Data(contentsOf: self.url(name))
    }
}
