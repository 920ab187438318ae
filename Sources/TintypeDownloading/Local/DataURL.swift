// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// Reads `data:` URLs (RFC 2397).
enum DataURL {
    /// The content of a data URL as a response; its media type is the `Content-Type`.
    static func response(at address: ResourceAddress, url: URL, limit: Int) throws(DownloadError) -> DownloadResponse {
        var rest = address.resource.utf8
        if let end = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<end] }
        guard let comma = rest.firstIndex(of: UInt8(ascii: ",")) else { throw .invalidDataURL("has no comma") }
        var mediaType = String(decoding: PercentEncoding.decode(rest[..<comma]), as: UTF8.self)
        let payload = rest[rest.index(after: comma)...]
        let isBase64 = mediaType.lowercased().hasSuffix(";base64")
        if isBase64 { mediaType.removeLast(";base64".count) }
        // Three characters stand for at least one byte, however they are written.
        guard payload.count / 3 <= limit else {
            throw .bodyTooLarge(limit: limit, declared: nil, at: address)
        }
        let bytes = PercentEncoding.decode(payload)
        let body = isBase64 ? try Self.decodeBase64(bytes) : Data(bytes)
        guard body.count <= limit else { throw .bodyTooLarge(limit: limit, declared: Int64(body.count), at: address) }
        let headers: HeaderFields = ["Content-Type": Self.fullMediaType(mediaType)]
        guard !body.isEmpty else { throw .emptyBody(status: nil, headers: headers, at: address) }
        return DownloadResponse(body: body, url: url, status: nil, headers: headers)
    }

    private static func fullMediaType(_ mediaType: String) -> String {
        if mediaType.isEmpty { return "text/plain;charset=US-ASCII" }
        return mediaType.hasPrefix(";") ? "text/plain\(mediaType)" : mediaType
    }

    /// Padding may be left out, and white space may be anywhere.
    private static func decodeBase64(_ bytes: [UInt8]) throws(DownloadError) -> Data {
        let spaces: [UInt8] = [0x20, 0x09, 0x0A, 0x0C, 0x0D]
        var digits = bytes.filter { !spaces.contains($0) }
        while digits.last == UInt8(ascii: "=") { digits.removeLast() }
        digits.append(contentsOf: repeatElement(UInt8(ascii: "="), count: (4 - digits.count % 4) % 4))
        guard let data = Data(base64Encoded: Data(digits)) else { throw .invalidDataURL("is not valid base64") }
        return data
    }
}
