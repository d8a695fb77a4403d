# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # The base of all errors between a client and a server. A response with status 500 is not an error.
      class Error < OwnError; end

      # No connection could be made: the name was not resolved, the network failed, or the server refused it.
      class ConnectError < Error; end
      # The TLS handshake failed: the certificate is expired, for another host or of an unknown issuer, or there is no
      # common version.
      class TLSError < ConnectError; end
      # The proxy could not be reached, or has refused to connect to the server.
      class ProxyError < ConnectError; end
      # `deny_private` does not allow the server's address.
      class PrivateAddressError < ConnectError; end

      # The connection was lost before the response, or an HTTP/2 server has refused or reset the request. Unless the
      # error is an {OutcomeUnknownError}, the server has not processed the request, or the request may be repeated
      # safely (RFC 9110, 9.2.2).
      class ConnectionLostError < Error; end
      # The connection was lost, or an HTTP/2 server has reset the request, after at least a part of the request was
      # sent, and before the response. The server may or may not have processed the request, so the client does not send
      # it again.
      class OutcomeUnknownError < ConnectionLostError; end
      # The response was cut off.
      class IncompleteBodyError < Error; end

      # The received bytes are not a valid HTTP response.
      class ProtocolError < Error; end
      # The body, as sent or decompressed, is larger than `body_limit`.
      class BodyTooLargeError < Error; end
      # The body does not match its Content-Encoding.
      class DecodingError < Error; end
      # The server sent more redirects than `redirects` allows, or a redirect that the client can't follow.
      class RedirectError < Error; end

      # A time limit has passed. Each phase of a request has a subclass.
      class TimeoutError < Error; end
      # No connection of the origin was free in time (`timeout: { pool: … }`).
      class PoolTimeoutError < TimeoutError; end
      # Resolving the name and connecting took too long (`connect`). Also raised if another request was opening an
      # HTTP/2 connection for both requests, and took too long.
      class ConnectTimeoutError < TimeoutError; end
      # The TLS handshake took too long (`tls`).
      class TLSTimeoutError < TimeoutError; end
      # The server read nothing more of the request for too long (`write`).
      class WriteTimeoutError < TimeoutError; end
      # The first byte of the response came too late (`first_byte`).
      class FirstByteTimeoutError < TimeoutError; end
      # No further byte of the response came for too long (`read`).
      class ReadTimeoutError < TimeoutError; end
      # The request as a whole took too long (`total`).
      class TotalTimeoutError < TimeoutError; end
    end
  end
end
