# frozen_string_literal: true

require_relative "options_page"
require "heddle/events"

module Heddle
  # The documentation of the log's events, made of their table.
  module EventsPage
    PATH = File.expand_path("../../docs/events.md", __dir__)

    # The types of fields in JSON; all others are strings.
    TYPES = {
      integer: %i[clients code connections full late limit lines max_requests memory pid pool_size received
                  received_bytes requests reserves responses sent sent_bytes status threads transfers unreported
                  used waiting wanted worker workers],
      number: %i[age delay drain_delay duration max_age timeout],
      array: %i[backtrace certificates options places urls]
    }.freeze

    INTRODUCTION = <<~TEXT
      # Events

      Everything that the server and Heddle's libraries report has a name, a level, fields and a text. The log's format
      decides how an event looks ([Logs](observability.md#logs)):

      ```
      12:09:41 killing worker 0 (pid 4709): no heartbeat for 60 s
      {"time":"2026-11-22T12:09:41.020Z","level":"warn","event":"worker_killed","role":"worker","worker":0,"pid":4709,"reason":"no heartbeat for 60 s","message":"killing worker 0 (pid 4709): no heartbeat for 60 s"}
      ```

      `time`, `level`, `event` and `message` are in every line of the format `json`, except that lines of requests have no
      `message`. Alert on `level` and `event`: texts may change, names and fields change only with an entry in
      CHANGELOG.md.

      | level | meaning | stream |
      | - | - | - |
      | `error` | a request, a process or a command failed | standard error; with `log_file` the file, too |
      | `warn` | something needs attention, and the server continues | standard output, or the file |
      | `info` | requests, starts, stops and reloads | standard output, or the file |

      Errors and warnings are counted in the metric `heddle_events_total{event="…"}` of each worker and of the master.

      Outside of a server, for example in `Heddle.run`, events of the libraries go to the standard error as text.

      ## Requests

      | event | meaning | fields |
      | - | - | - |
      | `request` | a request was served | `method`, `target` (cut after 4 KiB), `status` (null without a response), `bytes` of content, `duration` in seconds, `remote` (the client, found through `trusted_proxies`), `protocol` (`HTTP/2`). Where known: `tls` (the version, such as `TLSv1.3`, if the connection itself is encrypted), `proxy` (the proxy's address), `host`, `user_agent`, `referer`, `request_id`, and `remark` (`not complete`, `taken over`) |
    TEXT

    FIELDS = <<~TEXT
      ## Other events

      Braces in a text are fields. The text leaves out a part in angle brackets if its field is unknown; the JSON line then
      has no such field. Fields are strings unless the table says otherwise. Times are in seconds, memory in bytes.
      `worker` is the number of a worker, as in the metrics, and `pid` its process ID.

    TEXT
    private_constant :INTRODUCTION, :FIELDS

    # @return [String]
    def self.text
      tables = Events::LEVELS.reverse.filter_map do |level|
        rows = Events::TABLE.each_value.select { |event| event.level == level }.map { |event| row(event) }
        "| event of level #{level} | text | fields |\n| - | - | - |\n#{rows.join}" if rows.any?
      end
      "#{INTRODUCTION}\n#{FIELDS}#{tables.join("\n")}"
    end

    def self.row(event)
      shown = event.template.gsub(/\{(\w+):[^}]+\}/, '{\1}').gsub("\n", " ")
      "| `#{event.name}` | `` #{shown} `` | #{event.fields.map { |name| field(name) }.join(", ")} |\n"
    end

    def self.field(name)
      type, = TYPES.find { |_, names| names.include?(name) }
      "`#{name}`#{" (#{type})" if type}"
    end
    private_class_method :row, :field
  end
end
