// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import TintypeHTTP

/// The status line and the fields of an answer. The downloader has a type called `ResponseHead` as well.
package typealias AnswerHead = ResponseHead

/// The answer to a request.
package struct ServerAnswer: Sendable {
    /// The content of an answer.
    package enum Body: Sendable {
        case none
        case data(Data)

        /// The number of bytes.
        package var count: Int {
            switch self {
            case .none: 0
            case .data(let data): data.count
            }
        }
    }

    /// The status line and the fields; the connection adds its own.
    package let head: ResponseHead
    /// The content to send.
    package let body: Body
    /// The values for the access log.
    package let note: AnswerNote
    /// Whether the connection must not be used again.
    package let closesConnection: Bool

    package init(
        _ head: ResponseHead,
        body: Body = .none,
        note: AnswerNote = AnswerNote(),
        closesConnection: Bool = false
    ) {
        self.head = head
        self.body = body
        self.note = note
        self.closesConnection = closesConnection
    }

    /// The status code.
    package var status: Int { self.head.status }

    /// Returns an answer of plain text.
    package static func text(
        _ status: Int,
        _ text: String,
        fields: HeaderFields = [:],
        note: AnswerNote = AnswerNote(),
        closesConnection: Bool = false
    ) -> ServerAnswer {
        let data = Data(text.utf8)
        var head = ResponseHead(status: status)
        head.fields.append("text/plain; charset=utf-8", for: "Content-Type")
        head.fields.append("\(data.count)", for: "Content-Length")
        for field in fields { head.fields.append(field.value, for: field.name) }
        return ServerAnswer(head, body: .data(data), note: note, closesConnection: closesConnection)
    }
}

/// What an answer tells the access log and the counters beside its status.
package struct AnswerNote: Sendable {
    /// The tier or origin of the image: `memory`, `disk`, `network`, `file`; empty for other answers.
    package var cache = ""
    /// The format of the image; empty for other answers.
    package var format = ""
    /// The stable name of the error; empty without one.
    package var errorCode = ""
    /// The text for the log: the reason of an error, which clients do not see.
    package var message = ""

    package init(cache: String = "", format: String = "", errorCode: String = "", message: String = "") {
        self.cache = cache
        self.format = format
        self.errorCode = errorCode
        self.message = message
    }
}
