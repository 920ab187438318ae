import Glibc
import TintypeHTTP

/// The path in a `file:` URL: bytes, as Linux names files, which need not be UTF-8.
struct FilePath: Sendable {
    /// The bytes with a zero behind them.
    private let bytes: [CChar]
    /// The path for messages; what is not UTF-8 is replaced.
    let text: String

    /// The absolute path that a URL of this machine names.
    init(_ address: ResourceAddress) throws(DownloadError) {
        var rest = address.resource
        // A query or a fragment is no part of a file's name; in a name they are escaped.
        if let end = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) { rest = rest[..<end] }
        if rest.hasPrefix("//") {
            let afterSlashes = rest.dropFirst(2)
            let host = afterSlashes.prefix { $0 != "/" }
            guard host.isEmpty || host.lowercased() == "localhost" else {
                throw DownloadError(
                    code: .invalidURL,
                    message: "The file URL names the host \(host); only files of this machine can be read.",
                    url: DownloadError.url(address)
                )
            }
            rest = afterSlashes[host.endIndex...]
        }
        let bytes = PercentEncoding.decode(rest.utf8)
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0) else {
            throw DownloadError(
                code: .invalidURL,
                message:
                    "The file URL \(DownloadError.shown(address)) has no absolute path; write file:///folder/name.",
                url: DownloadError.url(address)
            )
        }
        self.bytes = bytes.map { CChar(bitPattern: $0) } + [0]
        self.text = String(decoding: bytes, as: UTF8.self)
    }

    /// Opens the file; returns the descriptor, or -1 with `errno` set.
    func open(_ flags: CInt) -> CInt {
        self.bytes.withUnsafeBufferPointer { path in
            path.baseAddress.map { Glibc.open($0, flags) } ?? -1
        }
    }
}
