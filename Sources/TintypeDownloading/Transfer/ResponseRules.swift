// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeHTTP

/// The state of a response, for errors to report and for rules to judge.
struct ResponseState {
    let address: ResourceAddress
    var status: Int?
    var headers: HeaderFields = [:]
    /// Whether the whole head of the final response is here.
    var hasHead = false
    var receivedBytes = 0
}

/// The rules that a response must keep to answer a request.
///
/// Every function is pure: it judges the response that it gets.
struct ResponseRules {
    let method: DownloadRequest.Method
    /// The fields that were sent, except for the ones that ask for the rest of a body.
    let requestHeaders: HeaderFields
    let limits: TransferLimits
    /// Whether the request asked for the rest of a body.
    let asksForRest: Bool

    // MARK: The head

    /// Returns the declared length of a body, or `nil` without one.
    static func declaredLength(of response: ResponseState) throws(DownloadError) -> Int64? {
        switch DeclaredLength(response.headers) {
        case .none: return nil
        case .bytes(let count): return count
        case .invalid:
            throw .invalidResponse("its Content-Length is not a number or not unique", at: response.address)
        }
    }

    /// Returns the body that the head promises.
    func plan(status: Int, fields: HeaderFields, declared: Int64?, date: Date) -> TransferMachine.BodyPlan {
        var plan = TransferMachine.BodyPlan()
        plan.isWanted = self.limits.acceptableStatusCodes.contains(status)
        plan.responseTime = date
        plan.hasBody = self.method != .head && status != 204 && status != 304
        plan.declaredBytes = declared
        plan.hasWatchedFraming = !plan.hasBody || declared == 0 || declared == nil && fields.isChunked
        if plan.isWanted { plan.codings = ContentCodings(fields) }
        return plan
    }

    /// Throws if the head is not one that the request asked for.
    func checkHead(of response: ResponseState) throws(DownloadError) {
        // libcurl would undo it, and take one that breaks off for whole.
        guard !Self.hasTransferCoding(response.headers) else {
            throw .invalidResponse("it has a transfer coding that was not asked for", at: response.address)
        }
        // libcurl does not know the length or the coding in such a field (RFC 9112, 5.1).
        guard !response.headers.contains(where: { $0.name.last?.isWhitespace ?? true }) else {
            throw .invalidResponse("it has a field without a name, or with a space behind it", at: response.address)
        }
        // A part that was not asked for must not pass for the whole.
        if response.status == 206, !self.asksForRest, self.requestHeaders["Range"] == nil {
            throw .invalidResponse("it sent a part of the body unasked", at: response.address)
        }
        // A difference to an older version, or a part of one (RFC 3229, 10.4.1).
        if response.status == 226, self.requestHeaders["A-IM"] == nil {
            throw .invalidResponse("it sent a difference (226) that was not asked for", at: response.address)
        }
    }

    /// Throws if the request does not accept the media type.
    func checkContentType(of response: ResponseState) throws(DownloadError) {
        guard self.limits.accepts(contentType: response.headers["Content-Type"]) || response.status == 304 else {
            throw .unacceptableContentType(of: response)
        }
    }

    /// Whether the body has a transfer coding besides the chunked one, which everything must understand.
    private static func hasTransferCoding(_ fields: HeaderFields) -> Bool {
        fields.values(for: "Transfer-Encoding").contains { value in
            value.lowercased().split { ", \t".contains($0) }.contains { $0 != "chunked" && $0 != "identity" }
        }
    }

    // MARK: The whole response

    /// Whether the request accepts a status.
    func accepts(status: Int?) -> Bool { status.map(self.limits.acceptableStatusCodes.contains) ?? false }

    /// Throws if the request does not accept the status of the final response.
    func checkStatus(of response: ResponseState) throws(DownloadError) {
        guard let status = response.status, response.hasHead, !self.accepts(status: status) else { return }
        throw .badStatus(status, headers: response.headers, at: response.address)
    }

    /// Throws if libcurl reports success for a body that may not be whole.
    ///
    /// A declared length decides. Without one libcurl finds the end of an HTTP/1.1 body for sure, but not that of an
    /// HTTP/2 body.
    ///
    /// - Parameters:
    ///   - end: The end that libcurl saw.
    ///   - plan: The body that the head promised.
    ///   - isMultiplexed: Whether the body came over HTTP/2.
    ///   - total: The bytes of the whole body if the response completes it.
    ///   - response: The response.
    /// - Throws: ``DownloadError`` if the body may not be whole, or is empty against the rules.
    func check(
        _ end: BodyEnd,
        of plan: TransferMachine.BodyPlan,
        isMultiplexed: Bool,
        total: Int?,
        response: ResponseState
    ) throws(DownloadError) {
        if plan.hasBody, let declared = plan.declaredBytes {
            guard end.bytes == declared else {
                throw .cutShort(response, "after \(end.bytes) of \(declared) declared bytes")
            }
        } else if plan.hasBody, isMultiplexed, !end.hasEndedStream {
            throw .cutShort(response, "before its HTTP/2 stream did")
        }
        guard end.hasEndedCodings else { throw .cutShort(response, "before its coding did") }
        guard let status = response.status, response.receivedBytes > 0 || self.mayBeEmpty(status) else {
            throw .emptyBody(status: response.status, headers: response.headers, at: response.address)
        }
        if let total, response.receivedBytes != total {
            throw .cutShort(response, "after \(response.receivedBytes) of \(total) bytes")
        }
    }

    /// Throws if the request does not accept a response that hooks have changed.
    func check(_ response: DownloadResponse, at address: ResourceAddress) throws(DownloadError) {
        guard let status = response.status else {
            throw .invalidResponse("a hook has taken its status away", at: address)
        }
        guard self.accepts(status: status) else { throw .badStatus(status, headers: response.headers, at: address) }
        guard !response.body.isEmpty || self.mayBeEmpty(status) else {
            throw .emptyBody(status: status, headers: response.headers, at: address)
        }
    }

    /// Whether a response may have no body; responses with 304, and responses to writes, have none.
    private func mayBeEmpty(_ status: Int) -> Bool { self.method != .get || !(200..<300 ~= status) }
}
