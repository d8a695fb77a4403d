# frozen_string_literal: true

require "heddle/native"
require "heddle/net/datagram_socket"

module Heddle
  # Sockets, connections, names and TLS. Knows no HTTP.
  #
  # @api private
  module Net
    autoload :Connector, "heddle/net/connector"
    autoload :HappyEyeballs, "heddle/net/happy_eyeballs"
    autoload :PoolShares, "heddle/net/pool_shares"
    autoload :PrivateAddressError, "heddle/net/connector"
    autoload :Resolver, "heddle/net/resolver"
    autoload :ConnectTimeoutError, "heddle/net/connector"
    autoload :TLSTimeoutError, "heddle/net/connector"

    # Opens a connection to a server. It belongs to no loop and no thread: in a loop only the calling fiber waits, in a
    # plain thread the thread waits. One fiber or thread at a time may use it. A forked child can't use it.
    #
    # Tries all addresses of the name, one every 250 ms, IPv6 and IPv4 alternately; the first that accepts is used
    # (Happy Eyeballs, RFC 8305).
    #
    #     connection = Heddle::Net.connect("example.com:443", tls: true)
    #     connection.write("GET / HTTP/1.0\r\nHost: example.com\r\n\r\n")
    #     connection.readpartial(65_536)
    #
    # @param endpoint [String] `host:port`, `[::1]:port`, or `unix:/path`
    # @param tls [Boolean, Hash, TLS::ClientContext] true: with the system's certificates; a Hash: see
    #   {TLS::ClientContext#initialize}
    # @param timeout [Numeric, nil] seconds for resolving the name and connecting, and as many for the TLS handshake
    # @param allow [#call, nil] called with each numeric address before it is tried; false: the address is not used
    # @return [OutboundConnection]
    # @raise [SystemCallError, Socket::ResolutionError, ConnectTimeoutError, TLSTimeoutError, OpenSSL::SSL::SSLError]
    def self.connect(endpoint, tls: false, timeout: 10, allow: nil)
      Connector.new(endpoint, tls: tls, timeout: timeout, allow: allow).connect
    end
  end
end
