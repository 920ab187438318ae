import FoundationEssentials
import Glibc
import Tintype

/// A file could not be written.
struct OutputError: Error {
    let message: String
}

/// Writes results to files: whole, or not at all.
enum OutputFile {
    /// Writes `data` to `path` atomically; missing folders are made.
    static func write(_ data: Data, to path: String) throws(OutputError) {
        do {
            let folder = URL(filePath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try data.write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw OutputError(
                message: "\(path) can't be written (\(Self.reason(error))); check the folder and its space."
            )
        }
    }

    static func isDirectory(_ path: String) -> Bool {
        var isDirectory = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory
    }

    private static func reason(_ error: any Error) -> String {
        guard let error = error as? CocoaError else { return "\(error)" }
        return switch error.code {
        case .fileNoSuchFile, .fileReadNoSuchFile: "its folder does not exist"
        case .fileWriteFileExists: "its folder is a file"
        case .fileWriteNoPermission: "permission denied"
        case .fileWriteOutOfSpace: "the disk is full"
        case .fileWriteVolumeReadOnly: "the disk is read-only"
        default: "\(error.code.rawValue)"
        }
    }
}
