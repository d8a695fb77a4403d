# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of the logs.
    LOGGING = [
      Option.new(name: :access_log, unit: :switch, default: true, example: "access_log false",
                 text: "log each request in one line",
                 reason: "Set it off when the proxy in front logs requests"),
      Option.new(name: :log_format, unit: :word, default: :text, choices: %i[text json clf combined],
                 text: "format of the log: text, json, clf or combined", example: "log_format :json",
                 reason: "Set json when a collector reads the log",
                 details: "`json` is an object per line; `clf` and `combined` are Apache's formats, which have only " \
                          "requests. See [Observability](observability.md)."),
      Option.new(name: :log_level, unit: :word, default: :info, choices: %i[debug info warn error],
                 text: "lowest level that is logged: debug, info, warn or error", example: "log_level :warn",
                 reason: "Set warn when only problems are to be logged, and no requests",
                 details: "Requests are of the level info. See [Events](events.md)."),
      Option.new(name: :log_file, unit: :path, default_words: "the standard output",
                 text: "file that the log is appended to", example: 'log_file "log/heddle.log"',
                 reason: "Set it when nothing collects the standard output",
                 details: "Heddle opens a file that logrotate has renamed again within a second, without a signal. " \
                          "Lines in the format text have the date, too. Errors go to the standard error, too."),
      Option.new(name: :account, unit: :list, argument: "PATHS", none: "off", default: %w[on],
                 example: 'account "/checkout", "/admin"',
                 text: "record where the time of each request goes: on, off, or the paths whose responses also " \
                       "report it as Server-Timing",
                 reason: "Set a path to see in the browser why its requests are slow",
                 details: "A path includes those below it; / is every request. The header tells clients about the " \
                          "server. See [Why is it slow](observability.md#why-is-it-slow)."),
      Option.new(name: :slow_request, unit: :seconds, range: 0..86_400, example: "slow_request 1",
                 default: ->(values) { values[:environment] == "development" ? 0.5 : 0 },
                 default_words: "0.5 in development, else 0",
                 text: "write a trace of the last requests to a file if a request takes longer than this; 0 for never",
                 reason: "Set it while you search for what slow requests wait for",
                 details: "A line of the log says why it was slow, and names the file, which is for Perfetto or " \
                          "chrome://tracing. See [Recorder](observability.md#recorder)."),
      Option.new(name: :request_id, unit: :switch, default: false, example: "request_id true",
                 text: "assign each request an ID, and return it in the response, the log and HTTP_X_REQUEST_ID",
                 reason: "Set it when no proxy in front assigns IDs",
                 details: "An X-Request-Id from one of trusted_proxies is kept; others are replaced.")
    ].freeze
  end
end
