# frozen_string_literal: true

module Heddle
  module Options
    # Options of the logs.
    LOGGING = [
      Option.new(name: :access_log, unit: :switch, default: true, example: "access_log false",
                 text: "log each request in one line",
                 reason: "Set it to off when the proxy in front logs requests"),
      Option.new(name: :log_format, unit: :word, default: :text, choices: %i[text json clf combined],
                 text: "format of the log: text, json, clf or combined", example: "log_format :json",
                 reason: "Set it to json when a log collector reads the log",
                 details: "`json` writes one object per line. `clf` and `combined` are Apache's formats; in these, " \
                          "the log contains only requests. See [Observability](observability.md)."),
      Option.new(name: :log_level, unit: :word, default: :info, choices: %i[debug info warn error],
                 text: "lowest level that is logged: debug, info, warn or error", example: "log_level :warn",
                 reason: "Set it to warn to log problems only, and no requests",
                 details: "Requests are logged at level info. See [Events](events.md)."),
      Option.new(name: :log_file, unit: :path, default_words: "the standard output",
                 text: "file that the log is appended to", example: 'log_file "log/heddle.log"',
                 reason: "Set it when nothing collects the standard output",
                 details: "When logrotate renames the file, Heddle opens a new one within a second and without a " \
                          "signal. With this option, lines in the format text include the date. Errors are also " \
                          "written to the standard error."),
      Option.new(name: :account, unit: :list, argument: "PATHS", none: "off", default: %w[on],
                 example: 'account "/checkout", "/admin"',
                 text: "measure what requests spend their time on: off, on, or a list of paths (measures all " \
                       "requests, and also reports the times of these in the header Server-Timing)",
                 reason: "Set it to a path to see in the browser why requests for it are slow",
                 details: "With paths, all requests are measured, as with on. A path includes all paths below it; / " \
                          "stands for all requests. Server-Timing reveals details of the server to clients. See [Why " \
                          "is it slow](observability.md#why-is-it-slow)."),
      Option.new(name: :slow_request, unit: :seconds, range: 0..86_400, example: "slow_request 1",
                 default: ->(values) { values[:environment] == "development" ? 0.5 : 0 },
                 default_words: "0.5 in development, else 0",
                 text: "when a request takes longer than this, write a trace of it and of other recent requests to a " \
                       "file; 0 for never",
                 reason: "Set it to find out what slow requests wait for",
                 details: "Waits for the client don't count. The log says why the request was slow and where the " \
                          "file is (for Perfetto or chrome://tracing). See [Recorder](observability.md#recorder)."),
      Option.new(name: :request_id, unit: :switch, default: false, example: "request_id true",
                 text: "assign each request an ID, and write it to the response, the log and the env " \
                       "(HTTP_X_REQUEST_ID)",
                 reason: "Set it when no proxy in front assigns IDs",
                 details: "Heddle keeps the X-Request-Id of a request from trusted_proxies, and replaces it in other " \
                          "requests.")
    ].freeze
  end
end
