// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype
import TintypeFrameworkNames
import TintypePrometheus

// The samples of Docs/observing.md, with stand-ins for the packages that they name.

protocol LogTarget: Sendable {
    func warning(_ message: String, _ metadata: [String: String])
    func notice(_ message: String, _ metadata: [String: String])
}

func record(_ label: String, _ dimension: String, _ duration: Duration) {}
func span(_ name: String, _ id: UInt64, duration: Duration, attributes: [String: Duration]) {}

enum Observing {
    typealias Logger = any LogTarget

    struct ServerObserver: LoadObserver {
        let logger: Logger

        func loader(didObserve activity: LoadActivity) {
            switch activity.kind {
            case .finished(let source, let metrics):
                guard activity.product == .image else { return }
                record("image_load", source.rawValue, metrics.total)
                let parts = [
                    "decode": metrics.decode, "queue": metrics.queue, "transfer": metrics.transfer?.total ?? .zero,
                ]
                span("load", activity.loadID, duration: metrics.total, attributes: parts)
            case .failed(let error):
                self.logger.warning("load failed", ["code": error.code.description, "message": error.message])
            case .refused(let error):
                self.logger.notice("load refused", ["code": error.code.description])
            case .started, .joined, .hit, .downloadStarted, .downloadFinished, .decoded, .stored, .cancelled:
                break
            }
        }
    }

    static func observed(by logger: Logger) async -> String {
        var configuration = LoaderActor.Configuration()
        configuration.observers = [ServerObserver(logger: logger)]
        let loader = LoaderActor(configuration: configuration)
        let text = await loader.statistics().prometheusText()
        return text
    }
}
