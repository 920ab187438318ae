// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeCaching
import TintypeHTTP

/// The answer to a request.
struct ServerAnswer: Sendable {
    /// The content of an answer.
    enum Body: Sendable {
        case none
        case data(Data)
        /// A part of a file: the offset of its first byte in the file, and its length.
        case file(CachedFile, offset: Int, count: Int)

        /// The number of bytes.
        var count: Int {
            switch self {
            case .none: 0
            case .data(let data): data.count
            case .file(_, _, let count): count
            }
        }

        /// The bytes; fewer if a file cannot be read, as if the connection had broken.
        var bytes: Data {
            switch self {
            case .none: return Data()
            case .data(let data): return data
            case .file(let file, let offset, let count):
                var bytes = [UInt8](repeating: 0, count: count)
                var end = 0
                while end < count {
                    let size = bytes.withUnsafeMutableBytes { bytes in
                        pread(file.descriptor, bytes.baseAddress?.advanced(by: end), count - end, off_t(offset + end))
                    }
                    guard size > 0 else { break }
                    end += size
                }
                return Data(bytes.prefix(end))
            }
        }

        /// Returns a part of the content.
        ///
        /// Bytes in memory are copied, because a slice would keep all of them alive.
        func part(_ range: ByteRange) -> Body {
            switch self {
            case .none: return .none
            case .data(let data):
                let start = data.startIndex + range.offset
                return .data(data.subdata(in: start..<start + range.length))
            case .file(let file, let offset, _):
                return .file(file, offset: offset + range.offset, count: range.length)
            }
        }
    }

    /// The status line and the fields, to which the connection adds its own.
    let head: AnswerHead
    /// The content to send.
    let body: Body
    /// The values for the access log.
    let note: AnswerNote

    init(_ head: AnswerHead, body: Body = .none, note: AnswerNote = AnswerNote()) {
        self.head = head
        self.body = body
        self.note = note
    }

    /// The status code.
    var status: Int { self.head.status }

    /// Returns an answer with a text, which is plain by default.
    static func text(
        _ status: Int,
        _ text: String,
        type: String = "text/plain; charset=utf-8",
        fields: HeaderFields = [:],
        note: AnswerNote = AnswerNote()
    ) -> ServerAnswer {
        let data = Data(text.utf8)
        var head = AnswerHead(status: status)
        head.fields.append(type, for: "Content-Type")
        head.fields.append("\(data.count)", for: "Content-Length")
        for field in fields { head.fields.append(field.value, for: field.name) }
        return ServerAnswer(head, body: .data(data), note: note)
    }
}

/// The values of an answer for the access log and the counters, in addition to its status.
struct AnswerNote: Sendable {
    /// The tier or origin of the image: `memory`, `disk`, `network`, `file`; empty for other answers.
    var cache = ""
    /// The format of the image; empty for other answers.
    var format = ""
    /// The source of the image; empty for other answers.
    var source = ""
    /// The stable name of the error; empty without one.
    var errorCode = ""
    /// The text for the log: the reason of an error, which clients do not see.
    var message = ""
}
