// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// The object that an `s3:` URL names.
package struct S3Object: Sendable {
    let bucket: String
    /// The key as S3 has it.
    let key: [UInt8]
    /// The version; `nil` for the newest one.
    let version: [UInt8]?

    /// Reads a URL such as `s3://bucket/folder/name.jpg?version`, whose key and version are decoded once.
    ///
    /// - Throws: ``DownloadError`` if the URL names no object, or if a client on the way would read the key as another
    ///   one.
    init(_ url: URL) throws(DownloadError) {
        let text = url.absoluteString
        let prefix = "s3://"
        guard text.prefix(prefix.count).lowercased() == prefix else {
            throw .notAnObject(url, "does not begin with s3://")
        }
        let rest = text.utf8.dropFirst(prefix.utf8.count)
        guard !rest.contains(UInt8(ascii: "#")) else {
            throw .notAnObject(url, "has a #, which a URL must have as %23")
        }
        let resource = rest.prefix { $0 != UInt8(ascii: "?") }
        let query = rest[resource.endIndex...].dropFirst()
        let bucket = resource.prefix { $0 != UInt8(ascii: "/") }
        self.bucket = String(decoding: bucket, as: UTF8.self)
        self.key = PercentEncoding.decode(resource[bucket.endIndex...].dropFirst())
        self.version = query.isEmpty ? nil : PercentEncoding.decode(query)
        guard Self.isBucket(self.bucket) else { throw .notAnObject(url, "has no name of a bucket behind s3://") }
        guard !self.key.isEmpty else { throw .notAnObject(url, "has no key behind the bucket") }
        guard FieldText.isPlain(self.key), FieldText.isPlain(self.version ?? []) else {
            throw .notAnObject(url, "has a control character in its key or version")
        }
        guard !Self.hasDots(self.key) else {
            throw .notAnObject(url, "has the segment . or .. in its key")
        }
    }

    /// Whether a key has the segment `.` or `..`, which every client of HTTP would take out of the path.
    package static func hasDots(_ key: [UInt8]) -> Bool {
        key.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
    }

    /// Whether a bucket can have that name; old buckets have names that are not host names.
    package static func isBucket(_ name: String) -> Bool {
        3...255 ~= name.utf8.count && name != "..." && !name.contains("..")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"):
                    true
                default: "-._".utf8.contains(byte)
                }
            }
    }
}

extension DownloadError {
    fileprivate static func notAnObject(_ url: URL, _ reason: String) -> DownloadError {
        DownloadError(
            code: .invalidURL,
            message: "The URL of an S3 object \(reason); write it as s3://bucket/folder/name.jpg.",
            url: url
        )
    }
}
