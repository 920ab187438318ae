// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// The outcome of a request to an origin, as the machines of a cluster share it.
enum FetchOutcome: Sendable {
    case response(DownloadResponse)
    case failure(DownloadError)

    /// The description in JSON, which precedes the body; its size precedes both.
    private struct Head: Codable {
        struct Failure: Codable {
            let code: String
            let category: String
            let codeStatus: Int
            let message: String
        }

        var failure: Failure?
        var url: String?
        var status: Int?
        var names: [String]
        var values: [String]
        var redirectCount = 0
        var requestTime: Double?
        var responseTime: Double?

        init(_ headers: HeaderFields) {
            self.names = headers.map(\.name)
            self.values = headers.map(\.value)
        }

        var headers: HeaderFields {
            var headers = HeaderFields()
            for (name, value) in zip(self.names, self.values) { headers.append(value, for: name) }
            return headers
        }
    }

    private static let longestMessage = 16 << 10

    /// The stored form, or `nil` if the outcome cannot be encoded.
    var encoded: Data? {
        var head: Head
        var body = Data()
        switch self {
        case .response(let response):
            head = Head(response.headers)
            head.url = response.url.absoluteString
            head.status = response.status
            head.redirectCount = response.metrics.redirectCount
            head.requestTime = response.requestTime.timeIntervalSince1970
            head.responseTime = response.responseTime.timeIntervalSince1970
            body = response.body
        case .failure(let error):
            head = Head(error.headers)
            head.url = error.url?.absoluteString
            head.status = error.status
            head.failure = Head.Failure(
                code: error.code.description,
                category: error.code.category.rawValue,
                codeStatus: error.code.httpStatus,
                message: error.message
            )
        }
        guard let text = try? JSONEncoder().encode(head) else { return nil }
        return withUnsafeBytes(of: UInt32(text.count).littleEndian) { Data($0) } + text + body
    }

    /// Reads the stored form; `nil` for bytes of another form.
    init?(encoded: Data) {
        let encoded = Data(encoded)
        guard encoded.count >= 4 else { return nil }
        let size = (0..<4).reduce(0) { $0 | Int(encoded[$1]) << (8 * $1) }
        guard encoded.count - 4 >= size,
            let head = try? JSONDecoder().decode(Head.self, from: encoded[4..<4 + size]),
            head.names.count == head.values.count
        else { return nil }
        let url = head.url.flatMap { URL(string: $0) }
        if let failure = head.failure {
            // Clients see the status and the code, and counters keep each code.
            guard let category = TintypeErrorCode.Category(rawValue: failure.category),
                (400...599).contains(failure.codeStatus), head.status.map({ (100...999).contains($0) }) ?? true,
                failure.code.utf8.count <= 64, failure.code.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
                failure.message.utf8.count <= Self.longestMessage
            else { return nil }
            self = .failure(
                DownloadError(
                    code: TintypeErrorCode(failure.code, category, httpStatus: failure.codeStatus),
                    message: failure.message,
                    url: url,
                    status: head.status,
                    headers: head.headers
                )
            )
            return
        }
        guard let url, let requestTime = head.requestTime, let responseTime = head.responseTime else { return nil }
        self = .response(
            DownloadResponse(
                body: Data(encoded[(4 + size)...]),
                url: url,
                status: head.status,
                headers: head.headers,
                redirectCount: head.redirectCount,
                requestTime: Date(timeIntervalSince1970: requestTime),
                responseTime: Date(timeIntervalSince1970: responseTime)
            )
        )
    }

    /// Returns the response, or throws the error.
    func get() throws(DownloadError) -> DownloadResponse {
        switch self {
        case .response(let response): return response
        case .failure(let error): throw error
        }
    }
}
