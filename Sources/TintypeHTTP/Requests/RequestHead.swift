// SPDX-License-Identifier: Apache-2.0

/// The request line and the header fields of a request.
///
/// A head keeps one copy of the received bytes and makes text of a field only when a caller looks it up.
package struct RequestHead: Sendable, Equatable {
    package let method: RequestMethod
    /// The path and the query as received, or `*` for `OPTIONS`.
    ///
    /// Bytes over 0x7F are percent-encoded. Scheme and authority are removed if the client sent a whole URL.
    package let target: String
    /// The number after the dot of the version: 0 or 1.
    package let minorVersion: Int
    /// Whether the client can send another request over the same connection.
    package let keepsAlive: Bool
    /// The length of the body, if the request declares one.
    package let contentLength: Int?
    /// Whether the client waits for a response with status 100 before it sends the body.
    package let expectsContinue: Bool

    private let bytes: [UInt8]
    private let places: [FieldPlace]
    private let hostPlace: Range<Int>?

    init(
        method: RequestMethod,
        target: String,
        minorVersion: Int,
        connection: RequestConnection,
        bytes: [UInt8],
        places: [FieldPlace],
        hostPlace: Range<Int>?
    ) {
        self.method = method
        self.target = target
        self.minorVersion = minorVersion
        self.keepsAlive = connection.keepsAlive(minorVersion: minorVersion)
        self.contentLength = connection.contentLength
        // HTTP/1.0 has no interim responses (RFC 9110, 10.1.1).
        self.expectsContinue = connection.expectsContinue && minorVersion > 0
        self.bytes = bytes
        self.places = places
        self.hostPlace = hostPlace
    }

    /// The host of the request, with its port if there is one; `nil` if a request with HTTP/1.0 has no `Host` field.
    package var host: String? { self.hostPlace.map { self.text($0) } }

    /// The number of header fields.
    package var fieldCount: Int { self.places.count }

    /// The value of the first field called `name`; the case of letters does not count.
    package subscript(name: String) -> String? {
        self.places.first { $0.isNamed(name, in: self.bytes) }.map { self.text($0.value) }
    }

    /// Returns the values of all fields called `name`, in their order.
    package func values(for name: String) -> [String] {
        self.places.compactMap { $0.isNamed(name, in: self.bytes) ? self.text($0.value) : nil }
    }

    /// Returns the value of a field that must not occur twice; `nil` if it does.
    package func onlyValue(for name: String) -> String? {
        let values = self.values(for: name)
        return values.count == 1 ? values[0] : nil
    }

    /// All fields, in their order.
    ///
    /// This makes text of each of them. The subscript looks up single fields at a lower cost.
    package var fields: HeaderFields {
        var fields = HeaderFields()
        fields.reserveCapacity(self.places.count)
        for place in self.places { fields.append(self.text(place.value), for: self.text(place.name)) }
        return fields
    }

    private func text(_ place: Range<Int>) -> String {
        String(decoding: self.bytes[place], as: UTF8.self)
    }
}

/// The places of a field's name and value in the bytes of a head, which are at most 65,535.
struct FieldPlace: Sendable, Equatable {
    private let nameStart: UInt16
    private let nameEnd: UInt16
    private let valueStart: UInt16
    private let valueEnd: UInt16

    init(name: Range<Int>, value: Range<Int>) {
        self.nameStart = UInt16(name.lowerBound)
        self.nameEnd = UInt16(name.upperBound)
        self.valueStart = UInt16(value.lowerBound)
        self.valueEnd = UInt16(value.upperBound)
    }

    var name: Range<Int> { Int(self.nameStart)..<Int(self.nameEnd) }
    var value: Range<Int> { Int(self.valueStart)..<Int(self.valueEnd) }

    func isNamed<Bytes: RandomAccessCollection<UInt8>>(_ name: String, in bytes: Bytes) -> Bool
    where Bytes.Index == Int {
        // Most names differ in their lengths.
        self.nameEnd - self.nameStart == name.utf8.count && ASCIIText.areSame(bytes[self.name], name)
    }
}
