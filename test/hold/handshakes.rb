# frozen_string_literal: true

require_relative "../support/certificates"
require_relative "resources"

module Hold
  # TLS handshakes that do not end. The other client comes without TLS.
  class TLSHandshakes < Resource
    # The beginning of a record of 512 bytes.
    HELLO = ["160301020001000001fc0303"].pack("H*").freeze
    private_constant :HELLO

    def self.options(folder)
      certificate, key = TestCertificates.write(folder, "hold", TestCertificates.make("localhost"))
      ["-b", "tls://#{HOST}:0?cert=#{certificate}&key=#{key}"]
    end

    private

    def open_socket(address)
      Thread.pass until (port = @server.output[%r{https://[^\s/]+:(\d+)}, 1])
      TCPSocket.new(HOST, port.to_i, address, 0)
    end

    def begin_holding(socket) = socket.write(HELLO)
  end

  # Headers of the PROXY protocol that do not end. Proxies have no limit for each address, and the other client comes
  # from elsewhere.
  class ProxyHeaders < Resource
    def self.bind = "#{HOST}:0?proxy_protocol=on"
    def self.proxies = "127.0.0.0/24"

    private

    def begin_holding(socket) = socket.write("PROXY TCP4 192.0.2.1 ")
  end
end
