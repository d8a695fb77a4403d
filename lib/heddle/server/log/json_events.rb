# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # Builds lines of one JSON object each (RFC 8259), for programs that collect logs. Each object has `time` (RFC
      # 3339, UTC), `level` and `event`; see docs/events.md.
      class JsonEvents
        # @return [Boolean] whether the output may contain only lines of requests
        def only_requests? = false

        # The C code in ext/heddle/http/log/json.c defines the fields of this line.
        # @param exchange [HTTP::Exchange] whose response is complete or abandoned
        # @return [String]
        def request(exchange)
          id = exchange.request_id
          HTTP::AccessLog.of_plain(HTTP::AccessLog::JSON, "", exchange, id) ||
            HTTP::AccessLog.line(HTTP::AccessLog::JSON, "", exchange, id, exchange.status, exchange.sent,
                                 TextEvents.remark(exchange))
        end

        # @return [String]
        def rejected(remote, status, reason)
          event(Events::TABLE.fetch(:request_rejected), { status:, reason:, remote: }.compact)
        end

        # @param event [Events::Event]
        # @param values [Hash{Symbol => Object}]
        # @return [String]
        def event(event, values)
          time = Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ")
          values = values.transform_values { |value| clean(value) }
          line = { time:, level: event.level, event: event.name, **values, message: event.text(values) }
          "#{PrintableText.json(JSON.generate(line))}\n"
        end

        private

        # JSON is UTF-8, but an application's message may have any encoding.
        def clean(value)
          case value
          when Numeric, true, false then value
          when Array then value.map { |one| clean(one) }
          else utf8(value.to_s)
          end
        end

        def utf8(text)
          text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
          text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub("\uFFFD")
        rescue EncodingError # Ruby can't convert a few encodings, such as UTF-7
          utf8(text.b)
        end
      end
    end
  end
end
