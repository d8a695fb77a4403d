# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of the logs.
    LOGGING = [
      Option.new(name: :access_log, unit: :switch, default: true, example: "access_log false",
                 text: "whether each request is written to the log, one line a request"),
      Option.new(name: :log_format, unit: :word, default: :text, choices: %i[text json clf combined],
                 text: "how a line of the log looks", example: "log_format :json",
                 details: "`text` for a person; `json`, an object a line; `clf` and `combined`, Apache's formats, " \
                          "in which there is nothing but requests. See docs/observability.md."),
      Option.new(name: :log_file, unit: :path, default_words: "the standard output",
                 text: "the file that the log is appended to", example: 'log_file "log/heddle.log"',
                 details: "It is followed by its name: a file that logrotate has renamed is opened anew within a " \
                          "second, without a signal. Lines in the format text have the date, too. Errors go to the " \
                          "standard error all the same."),
      Option.new(name: :request_id, unit: :switch, default: false, example: "request_id true",
                 text: "whether each request gets a name, in its answer, in the log and in HTTP_X_REQUEST_ID",
                 details: "A name that comes as X-Request-Id is kept when it comes from one of " \
                          "trusted_proxies; others are replaced."),
      Option.new(name: :report_held_connections, unit: :switch, advanced: true,
                 default: ->(values) { values[:environment] == "development" }, default_words: "on in development",
                 example: "report_held_connections true",
                 text: "whether a connection of Active Record or Sequel is reported that is held for more than a " \
                       "second while its fiber waits for something else",
                 details: "A line on the standard error, once for each pair of places. See " \
                          "[databases](databases.md#idle-check-outs).")
    ].freeze
  end
end
