# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # The class and the message of an application's exception, which may be anything: its methods may fail, and a
      # message may quote the whole body of a request.
      module ErrorText
        # Characters of a message.
        LIMIT = 16_384

        class << self
          # @param error [Exception]
          # @return [String] one line
          def class_name(error)
            Visible.line(error.class)
          rescue StandardError
            "an exception"
          end

          # @param error [Exception]
          # @return [String] cut after {LIMIT} characters
          def message(error)
            text = error.message.to_s
            return text if text.length <= LIMIT

            text[0, LIMIT] << " ... (#{text.bytesize} bytes)".encode(text.encoding)
          rescue StandardError => e
            "(its message can't be made: #{class_name(e)})"
          end
        end
      end
    end
  end
end
