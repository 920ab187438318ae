/// Finds the path in a `file:` URL.
enum FilePath {
    /// The absolute path that a URL of this machine names.
    static func path(of address: ResourceAddress) throws(DownloadError) -> String {
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
        return String(decoding: bytes, as: UTF8.self)
    }
}
