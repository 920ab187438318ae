// SPDX-License-Identifier: Apache-2.0

/// The values of the fields that determine where a request ends and whether its connection persists.
struct RequestConnection: Sendable, Equatable {
    private(set) var contentLength: Int?
    private(set) var expectsContinue = false
    private(set) var hostPlace: Range<Int>?

    private var hasTransferEncoding = false
    private var hasUnknownExpectation = false
    private var closes = false
    private var persists = false

    /// Reads a field of the head if its name is about the connection.
    mutating func read(_ place: FieldPlace, in bytes: UnsafeRawBufferPointer) throws(RequestRefusal) {
        switch place.name.count {
        case 4 where place.isNamed("Host", in: bytes):
            guard self.hostPlace == nil else { throw .repeatedHost }
            guard HostText.isValid(bytes[place.value]) else { throw .invalidHost }
            self.hostPlace = place.value
        case 6 where place.isNamed("Expect", in: bytes):
            let isContinue = ASCIIText.areSame(bytes[place.value], "100-continue")
            if isContinue { self.expectsContinue = true } else { self.hasUnknownExpectation = true }
        case 10 where place.isNamed("Connection", in: bytes):
            var rest = bytes[place.value]
            while !rest.isEmpty {
                let element = rest.prefix { $0 != UInt8(ascii: ",") }
                rest = rest[element.endIndex...].dropFirst()
                let option = ASCIIText.trimmed(element)
                if ASCIIText.areSame(option, "close") { self.closes = true }
                if ASCIIText.areSame(option, "keep-alive") { self.persists = true }
            }
        case 14 where place.isNamed("Content-Length", in: bytes):
            guard self.contentLength == nil else { throw .repeatedContentLength }
            let digits = bytes[place.value]
            guard digits.allSatisfy(ByteSet.digit.contains), let length = Int(String(decoding: digits, as: UTF8.self))
            else { throw .invalidContentLength }
            self.contentLength = length
        case 17 where place.isNamed("Transfer-Encoding", in: bytes): self.hasTransferEncoding = true
        default: break
        }
    }

    /// Refuses a complete head that leaves the end of its request in doubt, or asks for something unknown.
    func check(minorVersion: Int) throws(RequestRefusal) {
        guard self.hostPlace != nil || minorVersion == 0 else { throw .missingHost }
        if self.hasTransferEncoding {
            guard self.contentLength == nil else { throw .transferEncodingWithContentLength }
            throw minorVersion == 0 ? .transferEncodingBeforeVersion1_1 : .transferEncoding
        }
        // A server ignores the expectations of HTTP/1.0 (RFC 9110, 10.1.1).
        if self.hasUnknownExpectation, minorVersion > 0 { throw .unknownExpectation }
    }

    /// Returns whether the connection persists after the response (RFC 9112, 9.3).
    func keepsAlive(minorVersion: Int) -> Bool {
        !self.closes && (minorVersion > 0 || self.persists)
    }
}
