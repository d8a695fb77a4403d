# frozen_string_literal: true

require "heddle/arguments"
require "heddle/side_table"
require "heddle/net/tls"
require "heddle/net/tls/identity"

module Heddle
  module Net
    class TLS
      # The TLS settings of clients: the trusted authorities, the client's certificate, and the sessions to resume.
      # Several threads may use one context.
      class ClientContext
        # Maximum number of sessions for one set of options, one for each server. The session of the server that was
        # added first is dropped first.
        SESSIONS = 256
        # Maximum number of sets of options with contexts and sessions; the least recently used set is dropped first.
        MAX_CONTEXTS = 256
        private_constant :SESSIONS, :MAX_CONTEXTS

        @lock = Mutex.new
        @contexts = {}
        @sessions = {}
        # socket => key of the server in the table of sessions
        SESSION_KEYS = SideTable.new(:heddle_tls_session_keys)
        private_constant :SESSION_KEYS

        # The context with the default options, which trusts the system's certificates.
        # @return [ClientContext]
        def self.default = @default ||= new

        class << self
          # Returns the context for these options, so that clients with the same options share sessions and connections.
          # When a file in the options has changed, this method makes a new context; existing ones don't change.
          # @return [ClientContext]
          def for(options) = fetch_or_make(@contexts, options) { new(**options) }

          # @api private
          # @param options [Hash] all options except the protocols
          # @return [Hash] the sessions for these options, by server
          def sessions(options) = fetch_or_make(@sessions, options) { {} }

          private

          def fetch_or_make(table, options)
            key = [options, options.slice(:ca, :cert, :key).transform_values { |source| file_version(source) }]
            found = @lock.synchronize { (hit = table.delete(key)) && table[key] = hit }
            return found if found

            made = yield
            @lock.synchronize do
              table.shift if table.size >= MAX_CONTEXTS
              table[key] ||= made
            end
          end

          # @return [Object, nil] a value that differs after the file has changed; nil for PEM text
          def file_version(source)
            KeyFiles.stamp(source) unless source.nil? || source.to_s.include?("-----BEGIN")
          end
        end

        # @param ca [String, nil] a file or folder of trusted CA certificates in PEM, in place of the system's
        # @param cert [String, nil] the client's certificate: PEM text, or the path of a PEM file
        # @param key [String, nil] the certificate's key: PEM text, or the path of a PEM file; nil: `cert` contains the
        #   key
        # @param protocols [Array<String>] the protocols to offer by ALPN (RFC 7301)
        # @param verify [Boolean] false: accept any certificate of the server; only for tests
        # @param minimum ["1.2", "1.3"] the minimum TLS version
        # @raise [Error] if the OpenSSL library lacks a function that the C extension needs
        def initialize(ca: nil, cert: nil, key: nil, protocols: ["http/1.1"], verify: true, minimum: "1.2")
          missing = Native.load_tls(OBJECT)
          raise Error, "TLS can't be used: the TLS library of Ruby's openssl lacks the function #{missing}" if missing

          # OpenSSL would crash if a protocol were not a String
          protocols = Array(protocols).map { |name| Arguments.string("a protocol", name) }
          @options = { ca:, cert:, key:, verify:, minimum: }.compact
          @verify = verify
          @sessions = self.class.sessions(@options)
          @context = make(ca, cert, key, protocols, minimum)
        end

        # @param protocols [Array<String>]
        # @return [ClientContext] a context with these protocols and otherwise the same options; both share sessions
        def offering(protocols) = self.class.for({ **@options, protocols: })

        # @param socket [Socket] a connected socket, which the caller must close
        # @param host [String] the host name or address that must be in the certificate
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @return [OpenSSL::SSL::SSLSocket]
        # @raise [OpenSSL::SSL::SSLError, TLSTimeoutError, SystemCallError]
        def handshake(socket, host, deadline)
          secure = OpenSSL::SSL::SSLSocket.new(socket, @context)
          # SNI (RFC 6066, 3) allows host names without a final dot, but no addresses.
          secure.hostname = host.delete_suffix(".") unless host.match?(/\A(?:[\d.]+|.*:.*)\z/)
          key = "#{host}:#{socket.remote_address.inspect_sockaddr}" if socket.is_a?(Socket)
          session = key && @sessions[key]
          secure.session = session if session
          SESSION_KEYS[secure] = key
          connect(secure, socket, deadline)
          Identity.check(secure.peer_cert, host.delete_suffix(".")) if @verify
          secure
        rescue OpenSSL::SSL::SSLError
          @sessions.delete(key) if key
          raise
        end

        private

        def make(ca, cert, key, protocols, minimum)
          context = OpenSSL::SSL::SSLContext.new
          context.set_params(ca ? ca_parameters(ca) : {})
          context.verify_mode = OpenSSL::SSL::VERIFY_NONE unless @verify
          context.verify_hostname = false # {Identity} checks names and addresses after the handshake
          context.min_version = version(minimum)
          context.alpn_protocols = protocols
          context.add_certificate(*own_certificate(cert, key)) if cert
          context.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_CLIENT |
                                       OpenSSL::SSL::SSLContext::SESSION_CACHE_NO_INTERNAL_STORE
          context.session_new_cb = method(:keep_session)
          context.setup
          context
        end

        # Raises for an unknown version rather than allowing older versions.
        def version(text)
          VERSIONS.fetch(text.nil? ? "1.2" : text.to_s) { Arguments.refuse("tls minimum:", text, '"1.2" or "1.3"') }
        end

        def ca_parameters(ca)
          raise ArgumentError, "tls ca: the file or folder #{ca.inspect} does not exist" unless File.exist?(ca)

          { File.directory?(ca) ? :ca_path : :ca_file => ca, cert_store: nil }
        end

        def own_certificate(cert, key)
          pem = text_of(cert)
          certificate, *chain = OpenSSL::X509::Certificate.load(pem)
          [certificate, OpenSSL::PKey.read(key ? text_of(key) : pem), chain]
        end

        def text_of(source) = source.to_s.include?("-----BEGIN") ? source : File.read(source)

        # OpenSSL calls this method for each session ticket. With TLS 1.3 this happens after the handshake, while data
        # is read, so the method must not wait.
        def keep_session((secure, session))
          key = SESSION_KEYS[secure] or return

          @sessions.shift if @sessions.size >= SESSIONS && !@sessions.key?(key)
          @sessions[key] = session
        end

        def connect(secure, socket, deadline)
          loop do
            case secure.connect_nonblock(exception: false)
            when :wait_readable then await(socket, :wait_readable, deadline)
            when :wait_writable then await(socket, :wait_writable, deadline)
            else return
            end
          end
        end

        def await(socket, direction, deadline)
          left = deadline && (deadline - MonotonicClock.now)
          return if (left.nil? || left.positive?) && socket.public_send(direction, left)

          raise TLSTimeoutError, "the TLS handshake was not completed in time"
        end
      end
    end
  end
end
