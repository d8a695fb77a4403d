# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # `uri-host[:port]` (RFC 9110, 7.2; RFC 3986, 3.2.2), as Host headers and request targets have it.
      module Authority
        NAMED = /\A((?:[A-Za-z0-9\-._~!$&'()*+,;=]|%\h\h)+)(?::(\d*))?\z/n
        BRACKETED = /\A(\[([^\]]*)\])(?::(\d*))?\z/n
        FUTURE = /\Av\h+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+\z/ni
        IPV4 = /\A(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!\z)|\z)){4}\z/n
        GROUP = /\A\h{1,4}\z/n
        private_constant :NAMED, :BRACKETED, :FUTURE, :IPV4, :GROUP

        class << self
          # @param text [String]
          # @return [Array(String, String), nil] host, with its brackets if it has them, and port, empty if there
          #   is none; nil if the text is no authority. An empty text is one: a target without an authority.
          def split(text)
            return ["", ""] if text.empty?

            if text.start_with?("[")
              match = BRACKETED.match(text)
              return unless match && (ipv6?(match[2]) || FUTURE.match?(match[2]))

              [match[1], match[3].to_s]
            else
              match = NAMED.match(text)
              match && [match[1], match[2].to_s]
            end
          end

          private

          def ipv6?(text)
            left, right, more = text.split("::", -1)
            return false if left.nil? || more

            groups = left.split(":", -1)
            groups.concat(right.split(":", -1)) if right
            if groups.last&.include?(".")
              return false unless IPV4.match?(groups.pop)

              groups.push("0", "0")
            end
            groups.all?(GROUP) && (right ? groups.size < 8 : groups.size == 8)
          end
        end
      end
    end
  end
end
