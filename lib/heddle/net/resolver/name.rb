# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # A host name in lower case, without its final dot.
      #
      # @api private
      class Name
        # RFC 1035, section 2.3.4, without the length octets at both ends.
        MAX_LENGTH = 253
        MAX_LABEL = 63

        # Reserved by RFC 6761 and RFC 7686: no name server may be asked.
        NEVER_ASKED = /(?:\A|\.)(?:localhost|invalid|onion)\z/
        LOCALHOST = /(?:\A|\.)localhost\z/
        # No host name has control characters, blanks or backslashes; in a log line they would mislead.
        FORBIDDEN = /[\x00-\x20\\\x7f]/n

        # @param host [String]
        # @return [Name, nil] nil if it can't be a host name
        def self.parse(host)
          text = host.b.downcase
          absolute = text.end_with?(".")
          text = text.chomp(".")
          new(text.freeze, absolute) if valid?(text)
        end

        # @param text [String] bytes
        def self.valid?(text)
          return false if text.empty? || text.bytesize > MAX_LENGTH || FORBIDDEN.match?(text)

          text.split(".", -1).all? { |label| label.bytesize.between?(1, MAX_LABEL) }
        end

        def initialize(text, absolute)
          @text = text
          @absolute = absolute
        end

        def to_s = @text

        def localhost? = LOCALHOST.match?(@text)

        # Whether no name server may be asked about it.
        def reserved? = NEVER_ASKED.match?(@text)

        # The full names to ask for, in order, as resolv.conf(5) describes `search` and `ndots`.
        # @param configuration [Configuration]
        # @return [Array<String>]
        def candidates(configuration)
          return [@text] if @absolute

          searched = configuration.search.map { |domain| "#{@text}.#{domain}".freeze }
          searched.select! { |full| Name.valid?(full) }
          (@text.count(".") >= configuration.ndots ? [@text, *searched] : [*searched, @text]).uniq
        end
      end
    end
  end
end
