// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// Parses one hostile request head as a whole and in pieces, whose sizes the bytes determine, and reads its fields.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: start, count: count)
    let small = RequestHeadParser.Limits(requestLine: 64, head: 256, fieldCount: 4)
    for limits in [RequestHeadParser.Limits(), small] {
        var parser = RequestHeadParser(limits: limits)
        let whole = parser.parse(bytes)
        precondition(inPieces(bytes, limits) { _ in 1 } == whole, "single bytes give another outcome")
        precondition(inPieces(bytes, limits) { Int($0) % 61 } == whole, "pieces give another outcome")
        if case .head(let head, let byteCount) = whole {
            precondition(byteCount <= min(count, limits.head) && head.fieldCount <= limits.fieldCount)
            check(head)
        }
    }
    return 0
}

private func inPieces(
    _ bytes: UnsafeRawBufferPointer,
    _ limits: RequestHeadParser.Limits,
    size: (UInt8) -> Int
) -> RequestHeadParser.Outcome {
    var parser = RequestHeadParser(limits: limits)
    var start = 0
    while start < bytes.count {
        let end = min(bytes.count, start + max(1, size(bytes[start])))
        let outcome = parser.parse(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        switch outcome {
        case .incomplete:
            precondition(parser.isInHead)
            start = end
        case .head(let head, let byteCount): return .head(head, byteCount: start + byteCount)
        case .refused: return outcome
        }
    }
    return .incomplete
}

/// Reads all parts of a valid head.
private func check(_ head: RequestHead) {
    let now = Date(timeIntervalSince1970: 1_800_000_000)
    precondition(
        head.target.utf8.allSatisfy { 0x21...0x7E ~= $0 } && (head.target.hasPrefix("/") || head.target == "*")
    )
    precondition(head.minorVersion == 0 || head.host != nil)
    precondition(head.fields.count == head.fieldCount)
    precondition(head["Transfer-Encoding"] == nil && head.contentLength ?? 0 >= 0)
    let types = AcceptedTypes(head.values(for: "Accept"))
    precondition(
        0...1 ~= types.quality(of: "image/webp") && (!types.names("image/webp") || types.quality(of: "image/webp") > 0)
    )
    let length = head.target.utf8.count
    let selection = RangeSelection(head, length: length, entityTag: "\"a\"", lastModified: now, now: now)
    if case .part(let part) = selection {
        precondition(part.offset >= 0 && part.length > 0 && part.offset + part.length <= length)
    }
    _ = Preconditions.evaluate(head, entityTag: "\"a\"", lastModified: now, now: now)
    if let context = TraceContext(head) { precondition(TraceContext(context.traceparent) == context) }
    var lines = FieldLines()
    for field in head.fields { lines.append(field.value, for: field.name) }
}
