# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # Finds out what is wrong with a line that a parser's pattern did not match. Only called for lines
      # that are refused, so it may be slow; it decides on words, never on whether to refuse.
      module Fault
        TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/n

        # What may not stand anywhere in a head: a bare LF, a bare CR, other controls. A CR at the very
        # end may yet be followed by its LF.
        STRAY = /(?<!\r)\n|\r(?!\n|\z)|[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]/n

        # The same, and the start of a folded line.
        STRAY_OR_FOLD = /#{STRAY}|\r\n[ \t]/n

        class << self
          # @param line [String] a header line and what follows it
          # @return [Refusal]
          def in_field(line)
            line = first_line(line)
            Refusal.new(400, field_reason(line))
          end

          # @param line [String] a request line and what follows it
          # @return [Refusal]
          def in_request_line(line)
            line = first_line(line)
            return stray(line) if line.match?(STRAY)

            method, target, version, *more = line.split(/ /n, -1)
            return Refusal.new(400, "the request line is not `method target HTTP/1.1`") if version.nil? || more.any?
            return Refusal.new(400, "the method is not a token") unless method.match?(/\A#{TOKEN}\z/n)
            return in_target(target) unless target.match?(/\A[!"\x24-\x7E]+\z/n)

            in_version(version)
          end

          # @param text [String] the start of a head or a header section that is not complete
          # @return [Refusal]
          def stray(text)
            at = text.index(STRAY_OR_FOLD)
            Refusal.new(400, stray_reason(at && text.byteslice(at, 2)))
          end

          private

          def in_target(target)
            if target.include?("#")
              return Refusal.new(400, "the request target has a fragment (#): a client keeps that")
            end

            Refusal.new(400, "the request target has characters that must be percent-encoded")
          end

          def in_version(version)
            if version.match?(%r{\AHTTP/\d\.\d\z}n)
              return Refusal.new(505, "this server speaks HTTP/1.1 and HTTP/1.0, and not #{version}")
            end

            Refusal.new(400, "the HTTP version is malformed: HTTP/1.1 would be right")
          end

          def field_reason(line)
            if line.match?(/\A[ \t]/n)
              return "a header line starts with white space (obs-fold): put the header on one line"
            end
            return stray_reason(line[STRAY]) if line.match?(STRAY)
            return "a header line has no colon" unless line.include?(":")
            return "a header line has no name" if line.start_with?(":")
            return "white space stands before the colon of a header line" if line.match?(/\A#{TOKEN}[ \t]+:/n)

            "a header name has characters that are not allowed"
          end

          def stray_reason(bytes)
            case bytes&.getbyte(0)
            when 10 then "a line ends with LF alone: every line ends with CR LF"
            when 13
              return "a header line starts with white space (obs-fold): put the header on one line" if bytes[1] == "\n"

              "a CR stands without its LF"
            else "the request head has control characters"
            end
          end

          # Up to its CR LF, so that what follows on the wire does not colour the diagnosis.
          def first_line(text)
            ending = text.byteindex("\r\n")
            ending ? text.byteslice(0, ending) : text
          end
        end
      end
    end
  end
end
