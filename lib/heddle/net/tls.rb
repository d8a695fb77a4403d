# frozen_string_literal: true

require "heddle/native"
require "json"
require "openssl"
require "socket"

module Heddle
  module Net
    # TLS 1.2 and 1.3 (RFC 8446) for the connections of a listener. Ruby's openssl does the handshake, without waiting
    # and without a fiber. Then the C extension reads and writes through the OpenSSL connection.
    #
    #     certificates = Heddle::Net::TLS::Certificates.new([Heddle::Net::TLS::KeyFiles.new("site.pem", "site.key")])
    #     sockets.listen(server, tls: Heddle::Net::TLS.new(certificates))
    #
    # @api private except what sig/ declares
    class TLS
      # Raised when a certificate or key can't be used, or when Ruby's OpenSSL library lacks a function.
      class Error < OwnError; end

      # The possible minimum versions of a listener or a client.
      VERSIONS = { "1.2" => OpenSSL::SSL::TLS1_2_VERSION, "1.3" => OpenSSL::SSL::TLS1_3_VERSION }.freeze

      # The path of Ruby's openssl.so; nil if openssl is linked into the Ruby executable. Several OpenSSL libraries may
      # be installed; the C extension must use the one that openssl.so is linked with.
      OBJECT = $LOADED_FEATURES.grep(%r{/openssl\.(?:so|bundle)\z}).last
      private_constant :OBJECT

      # @param certificates [Certificates]
      # @param on_failure [#call, nil] called with an error that was not caused by the client
      # @raise [Error] if the OpenSSL library lacks a function that the C extension needs
      def initialize(certificates, on_failure: nil)
        missing = Native.load_tls(OBJECT)
        raise Error, "TLS can't be used: the TLS library of Ruby's openssl lacks the function #{missing}" if missing

        @certificates = certificates
        @on_failure = on_failure
      end

      # @return [Certificates]
      attr_reader :certificates

      # Makes the object that does the handshake on this descriptor. The C extension calls this method in the loop, and
      # closes the descriptor itself.
      # @param descriptor [Integer]
      # @return [OpenSSL::SSL::SSLSocket]
      def socket(descriptor)
        io = TCPSocket.for_fd(descriptor)
        io.autoclose = false
        OpenSSL::SSL::SSLSocket.new(io, @certificates.context)
      rescue StandardError => e
        @on_failure&.call(e)
        raise
      end

      # Continues the handshake as far as possible without waiting. The C extension calls this method in the loop.
      # @param socket [OpenSSL::SSL::SSLSocket]
      # @return [Symbol, OpenSSL::SSL::SSLSocket, nil] `:wait_readable` or `:wait_writable`; the socket: the handshake
      #   is complete; nil: it has failed
      def handshake(socket)
        socket.accept_nonblock(exception: false)
      rescue OpenSSL::SSL::SSLError, SystemCallError, IOError
        nil
      rescue StandardError => e
        @on_failure&.call(e)
        nil
      end

      # Prepares a socket that the application takes over. The C extension calls this method.
      # @param socket [OpenSSL::SSL::SSLSocket]
      # @param unread [String, nil] input that was received already, pushed back so that the application reads it first
      # @return [OpenSSL::SSL::SSLSocket]
      def self.take_over(socket, unread)
        socket.io.autoclose = true
        socket.sync_close = true
        socket.sync = true
        # In reverse order, because `ungetc` prepends the byte.
        unread&.bytes&.reverse_each { |byte| socket.ungetc(byte) }
        socket
      end
    end
  end
end

# Loaded now, because certificates may be read again when no descriptor is free for loading code.
require "heddle/net/tls/key_pair"
require "heddle/net/tls/key_files"
require "heddle/net/tls/self_signed"
require "heddle/net/tls/client_check"
require "heddle/net/tls/credentials"
require "heddle/net/tls/contexts"
require "heddle/net/tls/certificates"
