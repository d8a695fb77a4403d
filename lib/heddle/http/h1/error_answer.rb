# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The server's own answer to what it refuses: a status and a sentence for a person, after which the
      # connection ends.
      module ErrorAnswer
        class << self
          # @param refusal [Refusal]
          # @param date_line [DateLine]
          # @param content [Boolean] false for the answer to HEAD
          # @return [String] the whole answer
          def bytes(refusal, date_line, content: true)
            text = body(refusal)
            answer = String.new(Status.line(refusal.status), encoding: Encoding::BINARY)
            answer << date_line.line << "content-type: text/plain; charset=utf-8\r\n" \
                                        "content-length: #{text.bytesize}\r\n" \
                                        "connection: close\r\n\r\n"
            answer << text.b if content
            answer
          end

          # @param refusal [Refusal]
          # @return [String] the answer's content
          def body(refusal)
            phrase = Status::REASONS.fetch(refusal.status, "Error")
            "#{refusal.status} #{phrase}: #{refusal.reason}.\n"
          end
        end
      end
    end
  end
end
