# frozen_string_literal: true

require "openssl"

module Heddle
  module Net
    class TLS
      # The certificates of a listener: the first one for clients that name no host, or one that none is for. Their
      # files are looked at again once a second at most, when a client connects; where one has changed all are read
      # anew, and where one of the new ones can't be used the old ones stay.
      class Certificates
        include MonotonicClock

        # Seconds.
        LOOK_EVERY = 1.0
        # For TLS 1.2: forward secrecy and authenticated encryption only. Those of 1.3 are all good.
        CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
        MINIMA = { "1.2" => OpenSSL::SSL::TLS1_2_VERSION, "1.3" => OpenSSL::SSL::TLS1_3_VERSION }.freeze
        # The protocols for ALPN, best first (RFC 7301).
        PROTOCOLS = %w[h2 http/1.1 http/1.0].freeze
        # Seconds after which session tickets have another key. One is good for two hours, and the two keys before the
        # newest still open it.
        TICKET_KEY_LIFE = 3_600
        private_constant :LOOK_EVERY, :CIPHERS, :MINIMA

        # Called now and then by the process that has made the keys, in place of {#context}.
        # @return [void]
        def self.renew_ticket_keys = TicketKeys.renew(TICKET_KEY_LIFE)

        # @return [Array<#load, #stamp>] where they come from
        attr_reader :sources

        # @param sources [Array<KeyFiles, SelfSigned>] one at least
        # @param minimum [String] the least version of TLS, "1.2" or "1.3"
        # @param protocols [Array<String>] by their registered names
        # @param clients [ClientCheck] what clients are asked for
        # @param on_reload [#call, nil] called with a sentence: the certificates were read again, or why not
        # @raise [Error]
        def initialize(sources, minimum: "1.2", protocols: PROTOCOLS, clients: ClientCheck.none, on_reload: nil)
          @sources = sources
          @clients = clients
          @minimum = MINIMA.fetch(minimum)
          @protocols = protocols
          @on_reload = on_reload
          @stamp = stamp
          @looked = now
          build
        end

        # @return [OpenSSL::SSL::SSLContext] for a new connection
        def context
          self.class.renew_ticket_keys
          reload if now - @looked >= LOOK_EVERY && changed?
          @default
        end

        # The next time that a context is asked for, the files are looked at.
        # @return [void]
        def look_again
          @looked = -Float::INFINITY
        end

        # @return [Array<KeyPair>] what is in use
        attr_reader :pairs

        # Reads the files anew; where that fails, the certificates in use stay.
        # @return [Boolean] whether it worked
        def reload
          @stamp = stamp
          build
          @on_reload&.call("the certificates were read anew: #{sources.join(", ")}")
          true
        rescue Error => e
          @on_reload&.call("the certificates stay as they were: #{e.message}")
          false
        end

        private

        def stamp = [*sources, @clients].map(&:stamp)

        def changed?
          @looked = now
          stamp != @stamp
        end

        # Two certificates for the same names but with keys of two types share a context: the client chooses.
        def build
          pairs = sources.map(&:load)
          authorities = @clients.load
          contexts = pairs.group_by(&:names).transform_values { |group| make(group, authorities) }
          by_name = {}
          contexts.each { |names, context| names.each { |name| by_name[name] ||= context } }
          @pairs = pairs
          @by_name = by_name
          @default = contexts.fetch(pairs.first.names)
        end

        def make(pairs, authorities)
          context = OpenSSL::SSL::SSLContext.new
          context.min_version = @minimum
          context.ciphers = CIPHERS
          context.options |= OpenSSL::SSL::OP_NO_RENEGOTIATION | OpenSSL::SSL::OP_NO_COMPRESSION
          # A client may leave without close_notify: the request's own framing shows whether bytes are missing.
          context.options |= OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF if defined?(OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF)
          # Clients resume by tickets, which they keep themselves.
          context.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_OFF
          @clients.apply(context, authorities)
          context.alpn_select_cb = method(:choose_protocol)
          context.servername_cb = method(:find)
          pairs.each { |pair| context.add_certificate(pair.certificate, pair.key, pair.chain) }
          context.setup
          TicketKeys.use(context)
          context
        end

        # A client that offers none of our protocols gets an alert, and no other protocol.
        def choose_protocol(offered)
          (@protocols & offered).first or raise OpenSSL::SSL::SSLError, "no protocol in common: #{offered.join(", ")}"
        end

        def find((_, name))
          return unless name

          name = name.downcase
          @by_name[name] || @by_name[name.sub(/\A[^.]+/, "*")]
        end
      end
    end
  end
end
