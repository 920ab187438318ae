// SPDX-License-Identifier: Apache-2.0

/// The status line and the header fields of a response, ready to be sent.
///
/// A head that is the same for many responses is stored as bytes and copied into each of them.
package struct AnswerHead: Sendable, Equatable {
    package let status: Int
    package var fields: FieldLines

    /// Creates a head; a status without three digits becomes 500.
    package init(status: Int, fields: FieldLines = FieldLines()) {
        self.status = 100...999 ~= status ? status : 500
        self.fields = fields
    }

    /// Appends the status line, `date` and the fields to `buffer`.
    ///
    /// The connection adds its own fields and the empty line.
    package func append(to buffer: inout [UInt8], date: DateLine) {
        buffer.append(contentsOf: "HTTP/1.1 ".utf8)
        for divisor in [100, 10, 1] { buffer.append(UInt8(ascii: "0") + UInt8(self.status / divisor % 10)) }
        buffer.append(UInt8(ascii: " "))
        buffer.append(contentsOf: Self.reason(for: self.status).utf8)
        buffer.append(contentsOf: "\r\n".utf8)
        buffer.append(contentsOf: date.bytes)
        buffer.append(contentsOf: self.fields.bytes)
    }

    /// Returns the phrase for a status; empty if the server never sends it.
    package static func reason(for status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 200: "OK"
        case 204: "No Content"
        case 206: "Partial Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 402: "Payment Required"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 499: "Client Closed Request"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}
