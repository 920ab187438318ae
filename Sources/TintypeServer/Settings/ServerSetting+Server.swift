// SPDX-License-Identifier: Apache-2.0

extension ServerSetting {
    /// The settings of listeners, access and logs.
    static let ofServer: [ServerSetting] = [
        ServerSetting(
            "listen",
            .text("ADDRESS:PORT"),
            "the address to listen on; :8080 listens on all addresses, and port 0 picks a free port; default "
                + "127.0.0.1:8080",
            foreign: ["IMGPROXY_BIND", ForeignVariable("PORT") { ":" + $0 }]
        ) { $0.configuration.listenAddress = $1 },
        ServerSetting(
            "metrics-listen",
            .text("ADDRESS:PORT"),
            "an address of its own for /metrics; by default the address for images answers it",
            foreign: ["IMGPROXY_PROMETHEUS_BIND"]
        ) { $0.configuration.metricsAddress = $1 },
        ServerSetting(
            "host",
            .list("NAME"),
            "a name, without a port, to which the server answers in addition to localhost, 127.0.0.0/8 and [::1]; by "
                + "default only servers without keys on a loopback address refuse other names"
        ) { $0.configuration.hosts = $1 },
        ServerSetting(
            "insecure",
            .flag,
            "permits an address that other machines reach although there are no keys, so that everyone can use the "
                + "server"
        ) { $0.configuration.isInsecure = $1 },
        ServerSetting(
            "ui",
            .flag,
            "shows a page to try the server at /; by default only on loopback addresses without keys"
        ) { $0.configuration.showsPage = $1 },
        ServerSetting(
            "secret",
            .secret("TEXT"),
            "the token that each request for an image must have: Authorization: Bearer TEXT",
            foreign: ["IMGPROXY_SECRET"]
        ) { $0.configuration.secret = $1 },
        ServerSetting(
            "purge-secret",
            .secret("TEXT"),
            "the token that requests to purge must have; without it nobody can purge"
        ) { $0.configuration.purgeSecret = $1 },
        ServerSetting(
            "allow-origin",
            .text("ORIGIN"),
            "the value of Access-Control-Allow-Origin, such as *; default none",
            foreign: ["IMGPROXY_ALLOW_ORIGIN"]
        ) { $0.configuration.allowedOrigin = $1 },
        ServerSetting(
            "health-path",
            .text("PATH"),
            "a second path of /health",
            foreign: ["IMGPROXY_HEALTH_CHECK_PATH"]
        ) { $0.configuration.healthPath = $1 },
        ServerSetting(
            "log-format",
            .choice("text", "json", "none"),
            "the form of log lines; default text",
            foreign: [
                ForeignVariable("IMGPROXY_LOG_FORMAT") { value in
                    switch value {
                    case "pretty", "structured": "text"
                    case "gcp": "json"
                    default: value
                    }
                }
            ]
        ) { $0.configuration.logFormat = ImageServer.LogFormat(rawValue: $1) },
        ServerSetting(
            "log-level",
            .choice("info", "warning", "error"),
            "the least important lines in the log; info includes a line for each request; default info",
            foreign: [
                ForeignVariable("IMGPROXY_LOG_LEVEL") { value in
                    switch value {
                    case "debug": "info"
                    case "warn": "warning"
                    case "fatal", "panic": "error"
                    default: value
                    }
                }
            ]
        ) { $0.configuration.logLevel = ImageServer.LogLevel(rawValue: $1) ?? .info },
        ServerSetting(
            "explain-errors",
            .flag,
            "answers say in detail what is wrong; for development only",
            foreign: ["IMGPROXY_DEVELOPMENT_ERRORS_MODE"]
        ) { $0.configuration.explainsErrors = $1 },
    ]
}
