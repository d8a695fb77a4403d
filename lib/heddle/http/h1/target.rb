# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The four forms of a request target (RFC 9112, 3.2). The head parser handles the common one,
      # `/path?query`, by itself and asks here for the others.
      module Target
        ABSOLUTE = %r{\Ahttps?://([^/?]*)([^?]*)(?:\?(.*))?\z}ni
        ROOT = "/".b.freeze
        ASTERISK = "*".b.freeze
        EMPTY = "".b.freeze
        private_constant :ABSOLUTE, :ROOT, :ASTERISK

        class << self
          # @param method [String]
          # @param target [String] visible ASCII without `#`
          # @return [Array(String, String, String), Refusal] path, query, and the target's own authority or nil
          def split(method, target)
            return authority_form(target) if method == "CONNECT"
            return origin_form(target) if target.start_with?("/")
            return asterisk_form(method) if target == "*"

            match = ABSOLUTE.match(target)
            match ? absolute_form(method, match) : refuse("the request target is neither a path nor an http URL")
          end

          private

          def origin_form(target)
            path, query = target.split("?", 2)
            [path, query || EMPTY, nil]
          end

          def asterisk_form(method)
            return [ASTERISK, EMPTY, nil] if method == "OPTIONS"

            refuse("the request target * is for OPTIONS alone")
          end

          def authority_form(target)
            host, port = Authority.split(target)
            return refuse("the target of CONNECT is host:port") if host.nil? || host.empty? || port.empty?

            [target, EMPTY, target]
          end

          def absolute_form(method, match)
            host, = Authority.split(match[1])
            return refuse("the request target's host is not host[:port]") if host.nil? || host.empty?
            return [ASTERISK, EMPTY, match[1]] if method == "OPTIONS" && match[2].empty? && match[3].nil?

            [match[2].empty? ? ROOT : match[2], match[3] || EMPTY, match[1]]
          end

          def refuse(reason) = Refusal.new(400, reason)
        end
      end
    end
  end
end
