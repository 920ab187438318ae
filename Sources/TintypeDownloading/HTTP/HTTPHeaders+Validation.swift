extension HTTPHeaders {
    /// Throws where a field would end its own line and so forge another, or is no field at all.
    func checkSendable() throws(DownloadError) {
        for (name, value) in self {
            let isToken = !name.isEmpty && name.utf8.allSatisfy(Self.isTokenByte)
            let isLine = value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
            guard isToken, isLine else { throw .invalidHeader(name) }
        }
    }

    /// The characters of a token in RFC 9110.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
