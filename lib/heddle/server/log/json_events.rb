# frozen_string_literal: true

require "json"

module Heddle
  class Server
    class Log
      # One JSON object a line (RFC 8259), for programs that collect logs. Each has `time` (RFC 3339, UTC), `level` and
      # `event`; see docs/observability.md.
      class JsonEvents
        # @return [Boolean] whether lines about anything else don't belong where requests are logged
        def only_requests? = false

        # The fields of this line are in ext/heddle/http/log/json.c.
        # @param exchange [HTTP::Exchange] whose answer is complete, or given up
        # @return [String]
        def request(exchange)
          id = exchange.request_id
          HTTP::AccessLog.of_plain(HTTP::AccessLog::JSON, "", exchange, id) ||
            HTTP::AccessLog.line(HTTP::AccessLog::JSON, "", exchange, id, exchange.status, exchange.sent,
                                 TextEvents.remark(exchange))
        end

        # @param account [Rack::SocketCallbacks::Account] of a WebSocket that has ended
        # @return [String]
        def web_socket(account)
          values = account.to_h
          line("info", "websocket", **values.except(:seconds), duration: values[:seconds].round(6))
        end

        # @return [String]
        def rejected(address, status, reason)
          line("info", "rejected", status:, reason:, remote: address)
        end

        # @return [String]
        def failure(exchange, error)
          cause = error.cause
          line("error", "failure", **request_of(exchange), class: ErrorText.class_name(error),
                                                           message: ErrorText.message(error),
                                                           backtrace: TextEvents.backtrace(error),
                                                           cause: cause && named(cause))
        end

        # @return [String]
        def violation(exchange, text) = line("error", "violation", **request_of(exchange), message: text)

        # @return [String]
        def notice(text) = line("info", "notice", message: text)

        # @return [String]
        def banner(text) = line("info", "start", message: text)

        private

        # Each part may have an encoding of its own.
        def named(error) = "#{ErrorText.class_name(error)}: #{utf8(ErrorText.message(error))}"

        def request_of(exchange)
          { method: exchange.method, target: exchange.target.byteslice(0, 4_096), request_id: exchange.request_id }
        end

        def line(level, event, **values)
          time = Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
          values = values.compact.transform_values { |value| clean(value) }
          "#{Visible.json(JSON.generate({ time:, level:, event:, **values }))}\n"
        end

        # An application's message may be in any encoding, and JSON is UTF-8.
        def clean(value)
          case value
          when String then utf8(value)
          when Array then value.map { |one| clean(one) }
          else value
          end
        end

        def utf8(text)
          text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
          text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub("\uFFFD")
        end
      end
    end
  end
end
