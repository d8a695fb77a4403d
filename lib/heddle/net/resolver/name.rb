# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # A host name in lower case, without its final dot.
      #
      # @api private
      class Name
        # RFC 1035, section 2.3.4: 255 bytes in wire format, without the first length octet and the final zero.
        MAX_LENGTH = 253

        # Names that RFC 6761 and RFC 7686 reserve. They must not be sent to name servers.
        NEVER_ASKED = /(?:\A|\.)(?:localhost|invalid|onion)\z/
        LOCALHOST = /(?:\A|\.)localhost\z/
        # Control characters, blanks and backslashes. Host names don't have them, and they could falsify log lines.
        FORBIDDEN = /[\x00-\x20\\\x7f]/n

        # @param host [String]
        # @return [Name, nil] nil: not a valid host name
        def self.parse(host)
          text = host.b.downcase
          absolute = text.end_with?(".")
          text = text.chomp(".")
          new(text.freeze, absolute) if valid?(text)
        end

        # @param text [String] bytes
        def self.valid?(text)
          return false if text.empty? || text.bytesize > MAX_LENGTH || FORBIDDEN.match?(text)

          text.split(".", -1).all? { |label| label.bytesize.between?(1, DNS::Name::MAX_LABEL) }
        end

        def initialize(text, absolute)
          @text = text
          @absolute = absolute
        end

        def to_s = @text

        def localhost? = LOCALHOST.match?(@text)

        # Is it forbidden to send the name to name servers?
        def reserved? = NEVER_ASKED.match?(@text)

        # The fully qualified names to look up, in the order that resolv.conf(5) describes under `search` and `ndots`.
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
