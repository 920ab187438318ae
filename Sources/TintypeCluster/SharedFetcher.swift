// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeHTTP
import TintypeRedis

/// A fetcher whose failures and revalidations all machines of a cluster share.
///
/// A lasting failure is remembered for the other machines, so a missing source costs one request in the lifetime of the
/// failure. If several machines revalidate one response at once, only one of them asks the origin. Requests with
/// credentials, with rules of their own for the connection, or with `Cache-Control` go to the origin as they are.
struct SharedFetcher: ImageFetching {
    /// The lifetime of the outcome of a revalidation, for machines that revalidate the same response.
    private static let outcomeLifetime = Duration.seconds(2)
    private static let field = "outcome"

    let base: any ImageFetching
    let store: SharedStore
    let leases: Leases

    func response(for request: DownloadRequest, observer: FetchObserver) async throws -> DownloadResponse {
        guard Self.isShareable(request) else { return try await self.base.response(for: request, observer: observer) }
        let failures = self.store.name("failure", "{\(Self.digest(of: request, conditions: false))}")
        if !request.retriesFailures, let failure = await self.failure(failures), !request.accepts(failure) {
            throw failure
        }
        // A load of a source that no cache has already holds the lock of its entry.
        guard request.isRefresh || Self.isConditional(request) else {
            return try await self.fetch(request, observer, failures)
        }
        let family = self.store.name("fetch", "{\(Self.digest(of: request, conditions: true))}")
        let limit = self.store.configuration.maximumEntrySize
        let place = Leases.Place(family: family, field: Self.field, byteCount: limit, turn: TierTurn())
        let known = try? await self.leases.data(at: place)
        guard !Task.isCancelled else {
            await self.leases.end(place, .free)
            throw CancellationError()
        }
        if let known, let outcome = FetchOutcome(encoded: known) {
            // The origin's answer may be a failure for other requests only.
            if case .failure(let error) = outcome, request.retriesFailures || request.accepts(error) {
                return try await self.fetch(request, observer, failures)
            }
            return try outcome.get()
        }
        do {
            let response = try await self.fetch(request, observer, failures)
            if Self.isShareable(response) {
                await self.publish(.response(response), place)
            } else {
                await self.leases.end(place, .nothing)
            }
            return response
        } catch let error as DownloadError where Self.isOfOrigin(error) {
            await self.publish(.failure(error), place)
            throw error
        } catch let error as DownloadError {
            await self.leases.end(place, .nothing)
            throw error
        } catch {
            await self.leases.end(place, .free)
            throw error
        }
    }

    func priorityDidChange(
        of request: DownloadRequest,
        to priority: @escaping @Sendable () -> DownloadPriority
    ) async {
        await self.base.priorityDidChange(of: request, to: priority)
    }

    // MARK: Failures

    private func failure(_ name: String) async -> DownloadError? {
        // Without the store, the origin decides.
        let value = try? await self.store.run("GET", name, key: name, isReadOnly: true)
        guard case .bytes(let data) = value, case .failure(var error) = FetchOutcome(encoded: data) else { return nil }
        error.isRemembered = true
        self.store.count { $0.sharedFailures += 1 }
        return error
    }

    /// Asks the base, and remembers a lasting failure.
    private func fetch(
        _ request: DownloadRequest,
        _ observer: FetchObserver,
        _ failures: String
    ) async throws -> DownloadResponse {
        do {
            return try await self.base.response(for: request, observer: observer)
        } catch let error as DownloadError where Self.isOfOrigin(error) {
            let lifetime = self.store.configuration.failureLifetimes.lifetime(of: error, now: Date())
            if let lifetime, lifetime >= .milliseconds(1), let value = FetchOutcome.failure(error).encoded {
                let milliseconds = "\(lifetime.milliseconds)"
                // If it cannot be stored, the other machines ask the origin themselves.
                _ = try? await self.store.run("PSETEX", failures, milliseconds, value: value, key: failures)
            }
            throw error
        }
    }

    // MARK: Revalidations

    private func publish(_ outcome: FetchOutcome, _ place: Leases.Place) async {
        guard let value = outcome.encoded, value.count <= self.store.configuration.maximumEntrySize else {
            return await self.leases.end(place, .nothing)
        }
        let family = place.family
        do {
            _ = try await self.store.set([(Self.field, value)], of: family, lifetime: Self.outcomeLifetime)
            await self.leases.endStored(family, Self.field)
        } catch {
            await self.leases.end(place, Task.isCancelled ? .free : .nothing)
        }
    }

    // MARK: Requests

    private static let conditions: Set<String> = [
        "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range",
    ]

    private static let traces: Set<String> = ["traceparent", "tracestate"]

    private static func isConditional(_ request: DownloadRequest) -> Bool {
        request.headers.contains { self.conditions.contains($0.name.lowercased()) }
    }

    private static func isShareable(_ request: DownloadRequest) -> Bool {
        guard request.method == .get, request.credentials == nil, request.cookies == nil, request.token == nil,
            let scheme = request.url.scheme, ["http", "https"].contains(scheme), request.url.user() == nil,
            // Other ways to the origin, and other rules for its answer, are not part of the name of an outcome.
            !request.allowsInvalidCertificates, request.tls == nil, request.proxy == nil,
            request.unixSocketPath == nil, request.networkPolicy == nil, request.acceptableContentTypes == nil
        else { return false }
        return ["Authorization", "Cookie", "Cache-Control", "Pragma", "Range"].allSatisfy { request.headers[$0] == nil }
    }

    /// Whether HTTP permits a shared cache to store a response, as far as its fields say.
    private static func isShareable(_ response: DownloadResponse) -> Bool {
        let control = CacheControl(response.headers.values(for: "Cache-Control"))
        return !control.has("no-store") && !control.has("private") && response.headers["Set-Cookie"] == nil
    }

    /// Whether an origin has answered with a failure.
    ///
    /// Other failures may be the fault of one machine, such as a broken resolver, and must not fail the loads of all.
    private static func isOfOrigin(_ error: DownloadError) -> Bool {
        guard error.code == .badStatus, let status = error.status else { return false }
        return [404, 410, 429].contains(status) || status >= 500
    }

    /// Returns a name for a request: its URL and its fields decide what the origin answers.
    private static func digest(of request: DownloadRequest, conditions: Bool) -> String {
        // Each request has a trace of its own.
        let others: Set<String> = conditions ? self.traces : self.traces.union(self.conditions)
        let lines: [String] = request.headers.compactMap { field in
            let name = field.name.lowercased()
            return others.contains(name) ? nil : "\(name): \(field.value)"
        }
        let limit = request.maximumBodySize.map { "\($0)" } ?? ""
        let text = ([request.url.absoluteString, limit] + lines.sorted()).joined(separator: "\n")
        return CacheKey(text).digest
    }
}

extension DownloadRequest {
    /// Whether the status of a failure is acceptable for this request.
    fileprivate func accepts(_ failure: DownloadError) -> Bool {
        failure.status.map { self.acceptableStatusCodes?.contains($0) ?? false } ?? false
    }
}
