# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # The OpenSSL contexts for a listener's {Credentials}. Certificates with the same host names share a context.
      class Contexts
        # The ciphers for TLS 1.2: only those with forward secrecy and authenticated encryption. All ciphers of TLS 1.3
        # have both properties.
        CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
        private_constant :CIPHERS

        # @return [OpenSSL::SSL::SSLContext] the context that every connection begins with
        attr_reader :default

        # @param credentials [Credentials]
        # @param minimum [Integer] the minimum version of TLS
        # @param protocols [Array<String>] for ALPN, best first
        # @param clients [ClientCheck]
        # @raise [Error]
        def initialize(credentials, minimum:, protocols:, clients:)
          @authorities = credentials.authorities
          @minimum = minimum
          @protocols = protocols
          @clients = clients
          # Certificates with the same names may have keys of different types. OpenSSL chooses the type that the client
          # supports.
          contexts = credentials.pairs.group_by(&:names).to_h { |names, pairs| [names, make(pairs, names)] }
          @by_name = {}
          contexts.each { |names, context| names.each { |name| @by_name[name] ||= context } }
          @default = contexts.fetch(credentials.pairs.first.names)
          # OpenSSL has a pointer to the ServerNames object, so the object must live as long as the default context. It
          # does: the context's callbacks are methods of this Contexts object, which refers to it by @server_names.
          @server_names = ServerNames.new(@by_name)
          @server_names.choose_for(@default)
        end

        private

        def make(pairs, names)
          context = OpenSSL::SSL::SSLContext.new
          context.min_version = @minimum
          context.ciphers = CIPHERS
          context.options |= OpenSSL::SSL::OP_NO_RENEGOTIATION | OpenSSL::SSL::OP_NO_COMPRESSION
          # Clients may close without close_notify, because HTTP's framing shows whether bytes are missing.
          context.options |= OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF if defined?(OpenSSL::SSL::OP_IGNORE_UNEXPECTED_EOF)
          # No session cache, because clients resume sessions by tickets.
          context.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_OFF
          @clients.apply(context, @authorities, names)
          context.alpn_select_cb = method(:choose_protocol)
          context.servername_cb = method(:find)
          pairs.each { |pair| context.add_certificate(pair.certificate, pair.key, pair.chain) }
          context.setup
          TicketKeys.use(context)
          context
        rescue OpenSSL::OpenSSLError => e
          raise Error, "the certificate for #{names.first} can't be used: #{e.message}"
        end

        # A client that offers none of our protocols gets a TLS alert.
        def choose_protocol(offered)
          (@protocols & offered).first or
            raise OpenSSL::SSL::SSLError, "no common protocol; the client offers #{offered.join(", ")}"
        end

        # Selects the context for the host name that the client sends, and so confirms it (RFC 6066, 3). With OpenSSL,
        # {ServerNames} has already selected the context. LibreSSL lacks the function that {ServerNames} needs
        # (SSL_CTX_set_client_hello_cb).
        def find((_, name))
          return unless name

          name = name.downcase
          @by_name[name] || @by_name[name.sub(/\A[^.]+/, "*")]
        end
      end
    end
  end
end
