// SPDX-License-Identifier: Apache-2.0

import TintypeHTTP

/// A coding that a body may have (RFC 9110, 8.4.1).
enum ContentCoding: Sendable, Hashable {
    case gzip
    case deflate
    case brotli
    case zstandard

    /// The coding called `name`, in lower case, or `nil` for one that nothing here undoes.
    init?(_ name: String) {
        switch name {
        case "gzip", "x-gzip": self = .gzip
        case "deflate": self = .deflate
        case "br": self = .brotli
        case "zstd": self = .zstandard
        default: return nil
        }
    }
}

/// The codings that a `Content-Encoding` field names.
enum ContentCodings: Sendable, Hashable {
    /// No coding: the bytes are the representation.
    case identity
    /// The codings, in the order in which they were applied.
    case known([ContentCoding])
    /// There is one that nothing here undoes.
    ///
    /// Servers invent such names ("utf-8", "none") for bodies that are not coded at all, so the bytes are
    /// taken as they are.
    case unknown

    init(_ headers: HeaderFields) {
        var codings: [ContentCoding] = []
        for value in headers.values(for: "Content-Encoding") {
            for element in value.utf8.split(separator: UInt8(ascii: ",")) {
                let isSpace = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
                guard let name = String(element.drop(while: isSpace).prefix { !isSpace($0) })?.lowercased(),
                    !name.isEmpty, name != "identity"
                else { continue }
                guard let coding = ContentCoding(name) else {
                    self = .unknown
                    return
                }
                codings.append(coding)
            }
        }
        self = codings.isEmpty ? .identity : .known(codings)
    }
}

/// Undoes one content coding, piece by piece.
///
/// Not sendable: only the loop's thread touches it.
protocol ContentCodec: AnyObject {
    /// Whether the coded stream has come to its end.
    var isComplete: Bool { get }
    /// The bytes of memory that it takes now, its window included.
    var heldByteCount: Int { get }

    /// Decodes from `input` into `output`, which has room.
    ///
    /// - Returns: The bytes taken and written; both are 0 where more input is needed. `nil` for what is no such
    ///   stream.
    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodecProgress?
}

/// The progress of a codec.
struct CodecProgress {
    let taken: Int
    let written: Int
}

extension ContentCoding {
    /// The trait of the package that this build lacks and the coding needs, or `nil`.
    var missingTrait: String? {
        #if !Brotli
        if self == .brotli { return "Brotli" }
        #endif
        #if !Zstandard
        if self == .zstandard { return "Zstandard" }
        #endif
        return nil
    }

    /// Returns a codec that undoes the coding, or `nil` if memory runs out or the build lacks a trait.
    func makeCodec() -> (any ContentCodec)? {
        switch self {
        case .gzip: return InflateCodec(.gzip)
        case .deflate: return InflateCodec(.zlibOrRaw)
        case .brotli:
            #if Brotli
            return BrotliCodec()
            #else
            return nil
            #endif
        case .zstandard:
            #if Zstandard
            return ZstandardCodec()
            #else
            return nil
            #endif
        }
    }
}
