# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # Parses a section of header or trailer lines (RFC 9112, 5; RFC 9110, 5.5 and 5.6).
      class FieldParser
        LINE = /([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0A-\x1F\x7F]*)\r\n/n
        LINE_END = /\r\n/n
        SPACE = 32
        private_constant :LINE, :LINE_END, :SPACE

        # Names as common clients spell them, to the one frozen string for each.
        NAMES = %w[
          accept accept-charset accept-encoding accept-language authorization cache-control connection
          content-encoding content-length content-type cookie date dnt expect forwarded host if-match
          if-modified-since if-none-match if-range if-unmodified-since keep-alive last-event-id max-forwards
          origin pragma priority proxy-authorization range referer sec-ch-ua sec-ch-ua-mobile
          sec-ch-ua-platform sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-gpc
          sec-websocket-extensions sec-websocket-key sec-websocket-protocol sec-websocket-version te trailer
          transfer-encoding upgrade upgrade-insecure-requests user-agent via x-csrf-token x-forwarded-for
          x-forwarded-host x-forwarded-port x-forwarded-proto x-real-ip x-request-id x-requested-with
        ].each_with_object({}) do |name, names|
          name = name.b.freeze
          names[name] = name
          names[name.split("-").map(&:capitalize).join("-").b.freeze] = name
        end
        %w[DNT TE Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-GPC Sec-WebSocket-Extensions Sec-WebSocket-Key
           Sec-WebSocket-Protocol Sec-WebSocket-Version X-CSRF-Token X-Real-IP X-Request-ID].each do |name|
          NAMES[name.b.freeze] = NAMES.fetch(name.downcase.b)
        end
        NAMES.freeze
        private_constant :NAMES

        # @param configuration [Configuration]
        def initialize(configuration)
          @count_limit = configuration.header_count
          @keep_underscores = configuration.underscore_headers
        end

        # @param scanner [StringScanner] at the first line of a section that is complete
        # @return [Array<String>, Refusal] name in lower case, value, name, value, ..., without the names that
        #   hold an underscore; the scanner then stands behind the empty line
        def parse(scanner)
          fields = []
          count = 0
          while scanner.skip(LINE)
            count += 1
            name = scanner[1]
            value = scanner[2]
            last = value.getbyte(-1)
            # The only byte that is less than a space and gets here is a tab.
            value.rstrip! if last && last <= SPACE
            known = NAMES[name]
            unless known
              next if !@keep_underscores && name.include?("_")

              known = name.downcase
            end
            fields << known << value
          end
          return Fault.in_field(scanner.rest) unless scanner.skip(LINE_END)
          return too_many if count > @count_limit

          fields
        end

        private

        def too_many
          Refusal.new(431, "the request has more than #{@count_limit} header lines")
        end
      end
    end
  end
end
